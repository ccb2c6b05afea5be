// The state of a dataset: a level, which gives the colour and the shape, and a word.
import { h } from "./dom.js";

const SHAPES = { ok: "●", warn: "▲", bad: "■", idle: "○" };
const OF_STATE = {
  running: ["ok", "Running"], ok: ["ok", "Running"], behind: ["warn", "Behind"], late: ["warn", "Late"], slow: ["warn", "Slow"], stale: ["warn", "Stale"],
  restarting: ["warn", "Restarting"], quiet: ["idle", "Quiet"], waiting: ["idle", "Waiting"], "never ran": ["idle", "Never ran"], stopped: ["idle", "Stopped"],
  failed: ["bad", "Failed"], failing: ["bad", "Failing"], "not running": ["idle", "Not running"], damaged: ["bad", "Damaged"], live: ["ok", "Live"], inlined: ["idle", "Inlined"], finished: ["idle", "Finished"], unknown: ["idle", "Unknown"],
};

export const healthOf = (state) => OF_STATE[state] ?? ["idle", state];

export function badge(level, word, title) {
  return h("span", { class: `state ${level}`, title }, h("span", { "aria-hidden": "true", class: "shape" }, SHAPES[level] ?? SHAPES.idle), word);
}

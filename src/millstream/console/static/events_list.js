// The feed: what happened, the latest first.
import { dataset, empty, h } from "./dom.js";
import { ago } from "./format.js";

const LEVELS = { failed: "bad", driver_died: "bad", behind: "warn", stale: "warn", run_started: "ok", finished: "ok", query_failed: "bad", stopped: "idle", restarting: "warn", restarted: "warn", expectation_failed: "warn", schema_changed: "warn", taken_over: "warn", recovered: "ok", started: "ok" };
const SHAPES = { ok: "●", warn: "▲", bad: "■", idle: "○" };

export function events(found, most) {
  if (!found.length) return empty("Nothing has been recorded yet.");
  return h("ul", { class: "items" }, found.slice(0, most).map((event) => {
    const level = LEVELS[event.kind] ?? (event.code ? "bad" : "idle");
    return h("li", { class: "item" },
      h("span", { class: `shape ${level}`, "aria-hidden": "true" }, SHAPES[level]),
      h("div", {}, h("p", { class: "first" }, event.dataset ? [h("b", {}, dataset(event.dataset)), " "] : null, event.kind.replaceAll("_", " ")),
        event.detail || event.what ? h("p", { class: "more" }, event.what || event.detail) : null,
        event.fix ? h("p", { class: "more" }, h("b", {}, "Fix: "), event.fix) : null,
        event.file ? h("p", { class: "more" }, "at ", h("code", {}, `${event.file}:${event.line}`)) : null),
      h("span", { class: "t" }, ago(event.at)));
  }));
}

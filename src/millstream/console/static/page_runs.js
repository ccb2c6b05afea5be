// Runs: every start and stop, with what changed since the run before.
import { get } from "./api.js";
import { card, empty, h, update } from "./dom.js";
import { events } from "./events_list.js";
import { duration, number, time, NOTHING } from "./format.js";
import { badge } from "./health.js";
import { table } from "./table.js";

const LEVELS = { stopped: "idle", finished: "ok", failed: "bad", overtaken: "warn", running: "ok", died: "bad" };
export const title = () => "Runs";

export function open(main) {
  const places = { runs: h("div"), events: h("div") };
  main.append(places.runs, places.events);
  return {
    refresh: async (app) => {
      const { runs } = await get("runs");
      update(places.runs, [runs, app.overview.status.driver], () => card("Runs", runs.length ? number(runs.length) : null, runs.length ? list(runs, app.overview.status.driver) : empty("No run has been recorded in this home.")));
      update(places.events, app.events, (found) => card("Events", null, events(found, 60)));
    },
  };
}

function changes(run, before) {
  if (!before) return "the first that is recorded";
  const found = [];
  if (run.app_hash !== before.app_hash) found.push("the app");
  if (run.git_commit !== before.git_commit) found.push("the git commit");
  if (run.version !== before.version) found.push(`Millstream ${before.version} → ${run.version}`);
  for (const name of new Set([...Object.keys(run.settings), ...Object.keys(before.settings)])) {
    if (run.settings[name]?.value !== before.settings[name]?.value) found.push(`${name}: ${before.settings[name]?.value ?? NOTHING} → ${run.settings[name]?.value ?? NOTHING}`);
  }
  return found.length ? found.join("; ") : "nothing changed";
}

function list(runs, driver) {
  const state = (run) => run.outcome || (driver && run.pid === driver.pid && run.host === driver.host ? "running" : "died");
  return table("Runs", [
    { title: "run", cell: (run) => number(run.id) }, { title: "state", left: true, cell: (run) => badge(LEVELS[state(run)] ?? "idle", state(run)) }, { title: "started", cell: (run) => time(run.started_at) },
    { title: "ran for", cell: (run) => (run.ended_at ? duration((new Date(run.ended_at) - new Date(run.started_at)) / 1000) : state(run) === "running" ? duration((Date.now() - new Date(run.started_at)) / 1000) : NOTHING) },
    { title: "driver", left: true, cell: (run) => `pid ${run.pid} on ${run.host}` }, { title: "app", left: true, cell: (run) => h("code", { title: run.app_hash }, run.app_hash.slice(0, 8)) }, { title: "commit", left: true, cell: (run) => (run.git_commit ? h("code", { title: run.git_commit }, run.git_commit.slice(0, 8)) : NOTHING) },
    { title: "settings", left: true, wrap: true, cell: (run) => (Object.keys(run.settings).length ? h("details", {}, h("summary", {}, number(Object.keys(run.settings).length)), h("dl", { class: "settings" }, Object.entries(run.settings).map(([name, each]) => [h("dt", {}, h("code", {}, name)), h("dd", {}, each.value, " ", h("span", { class: "kd" }, each.origin))]))) : NOTHING) },
    { title: "what changed", left: true, wrap: true, cell: (run) => h("span", { class: "quiet" }, changes(run, runs[runs.indexOf(run) + 1])) },
  ], runs);
}

// Alerts: what was sent, waits, is dead or silenced; retry and silence for those who may operate.
import { get, post, Refused } from "./api.js";
import { card, dataset, empty, h, problem, update } from "./dom.js";
import { ago, clock, number, time, NOTHING } from "./format.js";
import { badge } from "./health.js";
import * as place from "./place.js";
import { table } from "./table.js";

const LEVELS = { pending: "warn", delivered: "ok", dead: "bad", silenced: "idle" };
export const title = () => "Alerts";

export function open(main, { parameters }) {
  const places = { counts: h("section", { class: "tiles", "aria-label": "Deliveries by state" }), trouble: h("div", { "aria-live": "polite" }), silences: h("div"), list: h("div") };
  const shown = { state: parameters.get("state") };
  main.append(places.counts, places.trouble, places.silences, places.list);
  let app = null;
  const act = async (path, body) => {
    try {
      await post(path, body);
      places.trouble.replaceChildren();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      places.trouble.replaceChildren(problem(error.fault));
    }
    await refresh(app);
  };
  const choose = (state) => {
    shown.state = shown.state === state ? null : state;
    place.note({ state: shown.state });
    refresh(app);
  };
  const refresh = async (found) => {
    app = found;
    const alerts = await get("alerts", { state: shown.state, most: 200 });
    const may = app.role === "operate";
    update(places.counts, [alerts.counts, shown.state], () => Object.entries(alerts.counts).map(([state, count]) => h("button", { type: "button", class: "card tile", "data-key": `state-${state}`, "aria-pressed": shown.state === state ? "true" : "false", onclick: () => choose(state) },
      h("span", { class: "k" }, badge(LEVELS[state], state)), h("p", { class: "v" }, number(count)), h("p", { class: "n" }, shown.state === state ? "only these are shown" : "show only these"))));
    const names = app.datasets.filter((each) => each.kind === "alert").map((each) => each.name);
    update(places.silences, [alerts.silences, may, names], () => silences(alerts.silences, may ? names : null, act));
    update(places.list, [alerts.deliveries, alerts.left_out, may], () => card("Deliveries", alerts.left_out ? `the newest; ${number(alerts.left_out)} more` : number(alerts.deliveries.length),
      may && (alerts.counts.dead || alerts.counts.silenced) ? h("div", { class: "bar-of" }, h("button", { type: "button", class: "button", onclick: () => act("alerts/retry", {}) }, "Retry all that are dead or silenced")) : null,
      alerts.deliveries.length ? deliveries(alerts.deliveries, may, act) : empty(shown.state ? `None is ${shown.state}.` : "No alert has been sent yet.")));
  };
  return { refresh };
}

function silences(all, names, act) {
  const list = all.map((each) => h("li", { class: "item" }, h("span", { class: "idle", "aria-hidden": "true" }, "○"),
    h("p", {}, h("b", {}, each.alert ?? "Every alert"), Object.keys(each.key).length ? ` about ${Object.entries(each.key).map(([name, value]) => `${name} ${value}`).join(", ")}` : "", " is silenced until ", time(each.until)),
    names ? h("button", { type: "button", class: "button", onclick: () => act("alerts/silence", { alert: each.alert ?? "", key: each.key, for: "0s" }) }, "Send again") : null));
  const which = h("select", { name: "alert", "aria-label": "Alert" }, h("option", { value: "" }, "every alert"), (names ?? []).map((name) => h("option", {}, name)));
  const key = h("input", { placeholder: "column=value", "aria-label": "Only about this key, such as vehicle=v07", size: 18 });
  const long = h("select", { "aria-label": "For how long" }, ["15 minutes", "1 hour", "4 hours", "1 day", "7 days"].map((text) => h("option", { selected: text === "1 hour" }, text)));
  const about = () => {
    const [name, ...rest] = key.value.split("=");
    return key.value.trim() ? { [name.trim()]: rest.join("=").trim() } : {};
  };
  const form = names ? h("div", { class: "bar-of" }, h("label", {}, "Silence ", which), h("label", {}, "about ", key), h("label", {}, "for ", long), h("button", { type: "button", class: "button main", onclick: () => act("alerts/silence", { alert: which.value, key: about(), for: long.value }) }, "Silence")) : null;
  return card("Silences", all.length ? number(all.length) : "none", all.length ? h("ul", { class: "items" }, list) : null, form);
}

const pairs = (row) => Object.entries(row).map(([name, value]) => `${name} ${typeof value === "object" ? JSON.stringify(value) : value}`).join(", ") || NOTHING;

function deliveries(all, may, act) {
  return table("Deliveries", [
    { title: "alert", cell: (each) => h("span", { class: "nm" }, dataset(each.alert)) }, { title: "about", left: true, cell: (each) => pairs(each.key) },
    { title: "state", left: true, cell: (each) => badge(LEVELS[each.state], each.state) }, { title: "event time", cell: (each) => time(each.event_time) }, { title: "to", left: true, cell: (each) => each.destination },
    { title: "attempts", cell: (each) => number(each.attempts) }, { title: "done", cell: (each) => (each.done_at ? [ago(each.done_at), " ago"] : each.next_at ? `again at ${clock(each.next_at)}` : NOTHING) },
    { title: "row", left: true, cell: (each) => h("span", { title: JSON.stringify(each.row) }, pairs(each.row).slice(0, 80)) },
    { title: "why", left: true, cell: (each) => [each.reason, each.repeats ? `${number(each.repeats)} more in the cooldown` : ""].filter(Boolean).join("; ") || NOTHING },
    ...(may ? [{ title: "", cell: (each) => (each.state === "delivered" ? "" : h("button", { type: "button", class: "button", "data-key": `retry-${each.id}`, onclick: () => act("alerts/retry", { id: each.id }) }, "Retry")) }] : []),
  ], all);
}

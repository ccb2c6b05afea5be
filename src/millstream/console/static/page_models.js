// Models: how good each is over time, its versions, what scores with it; roll back for those who may operate.
import { get, post, Refused } from "./api.js";
import { charts } from "./chart.js";
import { card, dataset, empty, h, problem, update } from "./dom.js";
import { bytes, clock, number, plural, time, NOTHING } from "./format.js";
import { badge } from "./health.js";
import * as place from "./place.js";
import { table } from "./table.js";

const LEVELS = { "in use": "ok", "rolled back": "warn", "": "idle" };
const SHOWN = 12;
export const title = () => "Models";
const digits = (value) => (value === null || value === undefined ? NOTHING : number(value, 4));
const measured = (metrics) => Object.entries(metrics).map(([name, value]) => `${name} ${digits(value)}`).join(" · ") || NOTHING;

export function open(main) {
  const places = { trouble: h("div", { "aria-live": "polite" }), list: h("div", { class: "stack" }), compare: h("div") };
  main.append(places.trouble, places.list, places.compare);
  const drawn = [], sections = new Map();
  let app = null;
  const closeCharts = () => drawn.splice(0).forEach((each) => each.close());
  const act = async (model, version) => {
    try {
      await post("models/roll-back", { model, version, agreed: true });
      places.trouble.replaceChildren();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      places.trouble.replaceChildren(problem(error.fault));
    }
    await refresh(app);
  };
  const refresh = async (found) => {
    app = found;
    const { models, standing } = await get("models"), may = app.role === "operate";
    const names = models.map((model) => model.name);
    update(places.list, names, () => {
      sections.clear();
      return names.length ? names.map((name) => {
        const part = h("div");
        sections.set(name, { part, key: null, all: false, plots: null });
        return part;
      }) : card("Models", null, empty("No model of this app has learnt anything yet."));
    });
    models.forEach((model, index) => {
      const section = sections.get(model.name);
      const redraw = () => update(section.part, [model, standing[index], may, section.key, section.all], () => {
        section.plots?.close();
        const [shown, plots] = draw(model, standing[index], may ? act : null, section, redraw);
        section.plots = plots;
        if (plots) drawn.push(plots);
        return shown;
      });
      redraw();
    });
    update(places.compare, names, () => (names.length > 1 ? compare(names) : null));
  };
  return { refresh, close: closeCharts };
}

function draw(model, standing, act, section, redraw) {
  const keys = [...new Set(model.versions.map((each) => each.key))].filter((key) => key !== null).sort();
  const key = keys.includes(section.key) ? section.key : keys[0] ?? null;
  const versions = model.versions.filter((each) => each.key === key), drifts = model.drifts.filter((each) => each.key === key);
  const choose = keys.length ? h("label", {}, "key ", h("select", { "aria-label": `Key of ${model.name}`, "data-key": `key-${model.name}`, onchange: (event) => { section.key = event.target.value; redraw(); } }, keys.map((each) => h("option", { selected: each === key }, each)))) : null;
  const facts = h("dl", { class: "facts across" },
    [["in use", standing.version ?? NOTHING], ...(keys.length ? [["models", number(standing.models)]] : []), ["learnt", plural(standing.learnt, "row")], ["over all rows", measured(standing.metrics)], ["over the last rows", measured(standing.recent)],
      ["drift", standing.drifts ? h("span", { class: "warn" }, `▲ ${plural(standing.drifts, "time")}, last ${clock(standing.drifted_at)}`) : "none seen"]].map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
  const [plots, lines] = overTime(versions, drifts);
  const scorers = model.scorers.map((each) => h("li", { class: "item" }, h("span", { class: "ok", "aria-hidden": "true" }, "●"), h("p", {}, h("b", {}, dataset(each.query)), each.version ? [" scores with ", h("code", {}, each.version), each.is_pinned ? ", always" : ", until there is a newer one"] : " waits for the first version")));
  const returns = model.rollbacks.map((each) => h("li", { class: "item" }, h("span", { class: "warn", "aria-hidden": "true" }, "▲"), h("p", {}, "Rolled back to ", h("code", {}, each.to), each.after ? [" after the rows of ", time(each.after)] : ", when a driver runs"), h("span", { class: "t" }, time(each.asked_at))));
  const list = [...returns.reverse(), ...scorers];
  return [card(h("span", { class: "nm large" }, dataset(model.name)), keys.length ? `a model for each ${model.key.join(", ")}` : "one model of all rows", choose ? h("div", { class: "bar-of" }, choose) : null, facts,
    lines.length ? h("div", { class: "charts" }, lines) : null, list.length ? h("ul", { class: "items" }, list) : null, table(`Versions of ${model.name}`, columns(model, act), section.all ? versions : versions.slice(0, SHOWN)),
    versions.length > SHOWN && !section.all ? h("div", { class: "bar-of" }, h("button", { type: "button", class: "button", "data-key": `all-${model.name}`, onclick: () => { section.all = true; redraw(); } }, `Show all ${number(versions.length)} versions`)) : null), plots];
}

function overTime(versions, drifts) {
  const past = [...versions].reverse(), names = [...new Set(past.flatMap((each) => Object.keys(each.metrics)))];
  if (past.length < 2 || !names.length) return [null, []];
  const times = past.map((each) => new Date(each.version) / 1000), marks = drifts.map((each) => new Date(each.at) / 1000);
  const plots = charts("models", () => {});
  const boxes = names.map((name) => plots.chart(name, [{ name: "last rows", values: past.map((each) => each.recent[name] ?? null) }, { name: "all rows", values: past.map((each) => each.metrics[name] ?? null), color: "--idle" }], times, { unit: digits, marks, note: marks.length ? `┊ drift, ${plural(marks.length, "time")}` : "" }));
  boxes.forEach(plots.watch);
  return [plots, boxes];
}

function columns(model, act) {
  const button = (version) => {
    const place = h("span"), ask = h("button", { type: "button", class: "button", "data-key": `back-${model.name}-${version.version}`, onclick: () => {
      const keep = h("button", { type: "button", class: "button", onclick: () => place.replaceChildren(ask) }, "Keep");
      place.replaceChildren(h("span", { class: "quiet" }, "Forget what was learnt since? "), h("button", { type: "button", class: "button main", onclick: () => act(model.name, version.version) }, "Forget"), " ", keep);
      keep.focus();
    } }, "Roll back");
    place.append(ask);
    return place;
  };
  return [
    { title: "version", cell: (each) => h("code", {}, each.version) }, { title: "state", left: true, cell: (each) => (each.state ? badge(LEVELS[each.state], each.state) : "") }, { title: "learnt", cell: (each) => number(each.learnt) },
    { title: "over all rows", left: true, cell: (each) => measured(each.metrics) }, { title: "over the last rows", left: true, cell: (each) => measured(each.recent) }, { title: "made with", left: true, cell: (each) => each.made_with }, { title: "size", cell: (each) => bytes(each.size) },
    { title: "digest", left: true, cell: (each) => h("code", { title: each.digest }, each.digest.slice(0, 8)) }, ...(act ? [{ title: "", left: true, cell: (each) => (each.state === "in use" ? "" : button(each)) }] : []),
  ];
}

function compare(names) {
  const chosen = new URLSearchParams(location.search), answer = h("div", { "aria-live": "polite" });
  const which = (label, fallback) => h("select", { "aria-label": label, "data-key": label }, names.map((name) => h("option", { selected: name === (chosen.get(label) ?? fallback) }, name)));
  const champion = which("champion", names[0]), challenger = which("challenger", names[1]);
  const ask = async () => {
    place.note({ champion: champion.value, challenger: challenger.value });
    try {
      const found = await get("models/compare", { a: champion.value, b: challenger.value });
      answer.replaceChildren(compared(found));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      answer.replaceChildren(h("div", { class: "bar-of" }, problem(error.fault)));
    }
  };
  if (chosen.get("champion") && chosen.get("challenger")) ask();
  return card("Champion and challenger", "on the rows that both have scored", h("div", { class: "bar-of" }, h("label", {}, "Compare ", champion), h("label", {}, "with ", challenger), h("button", { type: "button", class: "button main", onclick: ask }, "Compare")), answer);
}

function compared(found) {
  const spans = [["all rows", found.all], ["the last rows", found.last]];
  const rows = spans.flatMap(([name, span]) => span.sides.map((side) => ({ name, span, side })));
  return h("div", {}, h("dl", { class: "facts across" }, spans.map(([name, span]) => h("div", {}, h("dt", {}, `differ, ${name}`), h("dd", {}, span.rows ? `${number(span.differ)} of ${number(span.rows)} (${number((100 * span.differ) / span.rows, 1)} %)` : NOTHING)))),
    table("Comparison", [{ title: "model", cell: ({ side }) => side.model }, { title: "rows", left: true, cell: ({ name }) => name }, { title: "with a label", cell: ({ span }) => number(span.labelled) },
      { title: "measured", left: true, cell: ({ side }) => measured(side.metrics) }, { title: "alone right, or nearer", cell: ({ side }) => number(side.better) }], rows));
}

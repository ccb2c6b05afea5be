// One dataset: charts with one cursor, then rows, versions, quality, why, and the code that made it.
import { asideTotal, subtitle } from "./app_view.js";
import { get, of, Refused } from "./api.js";
import { charts } from "./chart.js";
import { card, dataset, empty, h, problem, tabs, update } from "./dom.js";
import { bytes, clock, duration, exact, number, plural, rate, time, NOTHING } from "./format.js";
import { badge } from "./health.js";
import { pace, ROWS_MS } from "./pace.js";
import * as place from "./place.js";
import { aside } from "./set_aside.js";
import { rowsNote, rowsTable, table } from "./table.js";
import { whyInWords } from "./why.js";

const TABS = [["rows", "Rows"], ["versions", "Versions"], ["schema", "Schema"], ["quality", "Quality"], ["why", "Why"], ["code", "Code and readers"]];

export const title = ({ name }) => name;

export function open(main, { name, parameters }) {
  const shown = { name, tab: parameters.get("tab") ?? "rows", versions: { earlier: parameters.get("earlier"), later: parameters.get("later") }, version: parameters.get("version"), charts: null, due: pace(), number: 0 };
  const places = { summary: h("div"), charts: h("div"), tabs: h("div"), panel: h("div", { id: "panel", role: "tabpanel", tabindex: "0" }) };
  main.append(places.summary, places.charts, h("section", { class: "card" }, places.tabs, places.panel));
  const draw = async (app, force = false) => {
    const each = app.datasets.find((found) => found.name === name);
    if (!each) {
      places.summary.replaceChildren(problem({ code: "UNKNOWN_DATASET", what: `there is no dataset ${name}`, fix: "press / and type a part of its name" }));
      places.charts.replaceChildren();
      places.tabs.parentNode.hidden = true;
      return;
    }
    shown.app = app;
    update(places.summary, each, summary);
    update(places.tabs, shown.tab, () => tabs("About this dataset", TABS, shown.tab, choose));
    places.panel.setAttribute("aria-labelledby", `tab-${shown.tab}`);
    await Promise.all([history(shown, places.charts, each), panel(shown, places.panel, each, force)]);
  };
  const choose = (tab) => {
    shown.tab = tab;
    place.note({ tab: tab === "rows" ? null : tab });
    draw(shown.app, true);
  };
  shown.again = () => draw(shown.app, true);
  return { refresh: (app) => draw(app), tick: (app) => draw(app), close: () => shown.charts?.close() };
}

function summary(each) {
  const facts = [
    ["in", each.in === null ? null : `${rate(each.in)} rows/s`], ["out", each.out === null ? null : `${rate(each.out)} rows/s`],
    ["behind", each.behindRows === null ? null : `${number(each.behindRows)} rows${each.behindS ? `, ${duration(each.behindS)}` : ""}`],
    ["batch", each.batch < 0 ? null : `${number(each.batch)}${each.batchMs ? `, ${duration(each.batchMs / 1000)}` : ""}`],
    ["rows in all", each.version === null ? null : exact(number(each.total), each.total)], ["set aside", asideTotal(each) ? Object.entries(each.aside).map(([name, count]) => `${number(count)} ${name}`).join(" · ") : null],
    ["complete to", each.completeTo ? time(each.completeTo) : null], ["committed", each.committedAt ? time(each.committedAt) : null],
    ["state", each.stateRows ? `${plural(each.stateRows, "row")}${each.stateBytes ? `, ${bytes(each.stateBytes)}` : ""}` : null],
  ].filter(([, value]) => value);
  return h("section", { class: "card", "aria-label": "In short" }, h("h2", {}, h("span", { class: "nm large" }, each.name), badge(each.level, each.word), h("span", {}, subtitle(each)), each.key?.length ? h("span", {}, `key ${each.key.join(", ")}`) : null),
    each.why || each.fix ? h("div", { class: "bar-of" }, h("div", { class: `fix ${each.level}` }, each.why ? h("p", {}, h("b", {}, "Why: "), each.why) : null, each.at ? h("p", {}, "at ", h("code", {}, each.at)) : null, each.fix ? h("p", {}, h("b", {}, "Fix: "), each.fix) : null)) : null,
    h("dl", { class: "facts across" }, facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))));
}

async function history(shown, node, each) {
  if (each.kind === "view") return;
  const chosen = place.range();
  if (!shown.due("history", `${location.search} ${document.documentElement.dataset.theme} ${each.batch}`, chosen.step)) return;
  const { points: batches } = await get(of(each.name, "/history"), { since: chosen.since.toISOString(), until: chosen.until.toISOString() });
  update(node, [batches, location.search, document.documentElement.dataset.theme], () => {
    shown.charts?.close();
    if (!batches.length) return card("History", chosen.text.toLowerCase(), empty(each.committedAt ? `No batch in this time; the last one was at ${clock(each.committedAt)}. Choose a longer time above.` : "No batch has been committed yet."));
    shown.charts = charts(each.name, (from, to) => place.go(place.address({ range: null, from: from.toISOString(), to: to.toISOString() })));
    const box = h("div", { class: "charts" }, drawings(shown.charts.chart, batches, each));
    shown.charts.watch(box);
    requestAnimationFrame(() => shown.charts.fit());
    return card("History", `${chosen.text.toLowerCase()}, ${plural(batches.length, "point")}; drag over a chart to look closer`, box);
  });
}

export const seconds = (text) => (text ? new Date(text) / 1000 : null);

function drawings(chart, batches, each) {
  const times = batches.map((batch) => seconds(batch.at));
  const values = (read) => batches.map(read);
  const found = [];
  const add = (name, series, options) => {
    const some = series.filter((each) => each.values.some((value) => value !== null && value !== undefined));
    if (some.length) found.push(chart(name, some, times, options));
  };
  add("Rows per second", [{ name: "in", values: values((batch) => batch.input_rate) }, { name: "out", values: values((batch) => batch.output_rate), color: "--okline" }]);
  const phases = [...new Set(batches.flatMap((batch) => Object.keys(batch.phases ?? {})))].slice(0, 4);
  add("Time of a batch", [{ name: "all", values: values((batch) => (batch.duration_ms === null ? null : batch.duration_ms / 1000)) }, ...phases.map((phase) => ({ name: phase, values: values((batch) => (batch.phases[phase] ?? 0) / 1000) }))], { unit: duration });
  add("Behind", [{ name: "rows", values: values((batch) => batch.behind_rows) }]);
  add("Behind, oldest row", [{ name: "age", values: values((batch) => batch.behind_s) }], { unit: duration });
  add("Event time behind the clock", [{ name: "newest event", values: values((batch) => batch.event_time_delay_s) }, { name: "complete to", color: "--warnline", values: values((batch) => (batch.complete_to ? Math.max(seconds(batch.at) - seconds(batch.complete_to), 0) : null)) }], { unit: duration });
  add("Rows of state", [{ name: "rows", values: values((batch) => batch.state_rows) }]);
  add("Bytes of state", [{ name: "bytes", values: values((batch) => batch.state_bytes) }], { unit: bytes });
  return [...found, ...qualityCharts(chart, batches)];
}

// Rows that were set aside over time, by verdict and by rule.
export function qualityCharts(chart, batches) {
  const times = batches.map((batch) => seconds(batch.at)), found = [];
  for (const [title, field] of [["Rows set aside", "verdicts"], ["Failed expectations", "rules"]]) {
    const names = [...new Set(batches.flatMap((batch) => Object.keys(batch[field])))].slice(0, 5);
    if (names.length) found.push(chart(title, names.map((name) => ({ name, values: batches.map((batch) => batch[field][name] ?? 0) })), times));
  }
  return found;
}

async function panel(shown, node, each, force) {
  const drawer = { rows: rows, versions, schema, quality, why, code }[shown.tab] ?? rows;
  // Rows are read by a process of their own: not for each batch, not if a version was chosen, and
  // not while somebody types.
  const isSlow = ["rows", "quality", "versions"].includes(shown.tab), isFixed = shown.tab === "rows" && shown.version !== null;
  const isUsed = node.contains(document.activeElement) || (shown.tab === "versions" && shown.versions.earlier !== null);
  const wanted = isFixed ? shown.version : `${each.version} ${each.batch}`;
  if (!force && isUsed && shown.number) return;
  if (!shown.due(`${shown.tab} ${isFixed}`, wanted, isSlow ? ROWS_MS : 1000) && !force) return;
  const number = ++shown.number;
  try {
    const drawn = await drawer(shown, each);
    if (shown.number === number) node.replaceChildren(...[drawn].flat().filter(Boolean));
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    if (shown.number === number) node.replaceChildren(h("div", { class: "bar-of" }, problem(error.fault)));
  }
}

async function rows(shown, each) {
  if (each.kind === "view" || each.kind === "serve") return empty(each.kind === "view" ? "A view is not stored: its query is inlined into every reader." : "A served answer is in its store; look a key up on the page Served.");
  if (each.version === null) return empty("No row is stored yet.");
  const [found, detail] = await Promise.all([get(of(each.name, "/rows"), { version: shown.version, most: 100 }), get(of(each.name))]);
  const at = shown.version === null ? "as of now" : `of version ${shown.version}`;
  const choices = detail.versions.map((version) => h("option", { value: version.version, selected: String(version.version) === shown.version }, `version ${version.version}, ${clock(version.at)}`));
  const select = h("select", { "aria-label": "Version", onchange: (event) => go(event.target.value) }, h("option", { value: "" }, "now"), choices);
  const input = h("input", { type: "number", min: 0, max: each.version, placeholder: "any", "aria-label": "Any version", value: shown.version ?? "", onchange: (event) => go(event.target.value) });
  const go = (version) => {
    shown.version = version === "" ? null : String(Math.min(Math.max(0, Number(version)), each.version));
    place.note({ version: shown.version });
    shown.again();
  };
  const query = `SELECT * FROM ${each.name}${shown.version === null ? "" : ` VERSION AS OF ${shown.version}`}`;
  return [h("div", { class: "bar-of" }, h("label", {}, "As of ", select), h("label", {}, "or version ", input), h("span", { class: "quiet" }, `${rowsNote(found)}, ${at}`), shown.version === null ? h("button", { type: "button", class: "button", onclick: () => shown.again() }, "Read again") : null, h("span", { class: "sp" }), h("a", { class: "button", href: `/sql?${new URLSearchParams({ q: query })}` }, "Ask with SQL")),
    found.rows.length ? rowsTable(`Rows of ${each.name} ${at}`, found) : empty("It has no rows.")];
}

async function versions(shown, each) {
  if (each.version === null) return empty("Only tables and landed sources have versions, once they have run.");
  const batches = await get(of(each.name, "/batches"), { most: 100 });
  const latest = each.version, chosen = { later: shown.versions.later ?? String(latest), earlier: shown.versions.earlier ?? String(batches[1]?.version ?? Math.max(latest - 1, 0)) };
  const field = (which) => h("input", { type: "number", min: 0, max: latest, value: chosen[which], "aria-label": `The ${which} version` });
  const earlier = field("earlier"), later = field("later"), answer = h("div", { id: "difference", "aria-live": "polite" });
  const compare = async () => {
    shown.versions = { earlier: earlier.value, later: later.value };
    place.note({ tab: "versions", earlier: earlier.value, later: later.value });
    answer.replaceChildren(empty("Comparing …"));
    try {
      const found = await get(of(each.name, "/difference"), { earlier: earlier.value, later: later.value });
      const added = found.rows.filter((row) => row[0] === "added").length;
      answer.replaceChildren(h("p", { class: "bar-of" }, h("b", {}, `${number(added)} added, ${number(found.rows.length - added)} removed`), h("span", { class: "quiet" }, `from version ${earlier.value} to ${later.value}${found.is_cut ? ", and there are more" : ""}; a changed row is removed and added`)),
        found.rows.length ? rowsTable(`Difference of ${each.name}`, { ...found, columns: found.columns.map((name, index) => (index ? name : "change")) }, { mark: (row) => row[0] }) : "");
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      answer.replaceChildren(h("div", { class: "bar-of" }, problem(error.fault)));
    }
  };
  if (shown.versions.earlier !== null) compare();
  const list = table(`Versions of ${each.name}`, [
    { title: "version", cell: (batch) => h("a", { href: `/dataset/${encodeURIComponent(each.name)}?version=${batch.version}` }, String(batch.version)) },
    { title: "committed", cell: (batch) => time(batch.at) }, { title: "batch", cell: (batch) => number(batch.batch) }, { title: "rows in", cell: (batch) => exact(number(batch.input), batch.input) },
    { title: "became", left: true, cell: (batch) => Object.entries(batch.outcomes).map(([name, count]) => `${number(count)} ${name}`).join(" · ") || NOTHING },
    { title: "balance", left: true, cell: (batch) => badge(batch.is_balanced ? "ok" : "bad", batch.is_balanced ? "balanced" : "not balanced") },
  ], batches);
  return [h("div", { class: "bar-of" }, h("label", {}, "From version ", earlier), h("label", {}, "to ", later), h("button", { type: "button", class: "button main", onclick: compare }, "Show the difference")), answer, list];
}

async function schema(shown, each) {
  const found = await get(of(each.name));
  if (!found.schema.length) return empty(each.kind === "view" ? "A view is not stored." : "Its columns are known once it has run.");
  const declared = found.declared ?? {};
  const facts = [["trigger", declared.trigger], ["event time", declared.event_time], ["watermark", declared.watermark], ["idle after", declared.idle], ["partitions", (declared.partition_by ?? []).join(", ")], ["rules", Object.entries(declared.rules ?? {}).map(([name, rule]) => `${name}: ${rule}`).join("; ")], ["on violation", declared.on_violation]].filter(([, value]) => value);
  return [facts.length ? h("dl", { class: "facts" }, facts.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])) : null,
    table(`Columns of ${each.name}`, [{ title: "column", cell: (column) => column.name }, { title: "type", left: true, cell: (column) => h("code", {}, column.type) }, { title: "null", left: true, cell: (column) => (column.nullable ? "allowed" : "NOT NULL") }], found.schema)].filter(Boolean);
}

const quality = (shown, each) => aside(each, shown);

async function why(shown, each) {
  const found = await get(of(each.name, "/why"));
  if (!found) return empty("Only the app says what a dataset waits for: open the console with it, `millstream console app.py`.");
  return whyInWords(found);
}

async function code(shown, each) {
  const found = await get(of(each.name, "/code"));
  const names = (all) => (all?.length ? all.map((name, index) => [index ? ", " : "", dataset(name)]) : NOTHING);
  const facts = h("dl", { class: "facts" }, h("dt", {}, "declared at"), h("dd", {}, found ? h("code", {}, `${found.file}:${found.line}`) : NOTHING), h("dt", {}, "reads"), h("dd", {}, names(each.reads)), h("dt", {}, "read by"), h("dd", {}, names(each.read_by)), each.guarantee ? [h("dt", {}, "guarantee"), h("dd", {}, each.guarantee)] : null);
  if (!found?.text) return [facts, empty("The code is known to the app only: open the console with it, `millstream console app.py`.")];
  const lines = found.text.split("\n").map((line, index) => h("span", {}, h("i", { "aria-hidden": "true" }, String(found.line + index)), line || " "));
  return [facts, h("pre", { class: "code", tabindex: "0", "aria-label": `Code of ${each.name}` }, lines)];
}

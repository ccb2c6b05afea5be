// Quality: every rule and verdict of every dataset, and the rows that were set aside.
import { asideTotal } from "./app_view.js";
import { get, of, Refused } from "./api.js";
import { charts } from "./chart.js";
import { card, dataset, empty, h, problem, update } from "./dom.js";
import { exact, number, NOTHING } from "./format.js";
import { pace, ROWS_MS } from "./pace.js";
import { qualityCharts } from "./page_dataset.js";
import * as place from "./place.js";
import { aside } from "./set_aside.js";
import { parts } from "./spark.js";
import { table } from "./table.js";

export const title = () => "Quality";

export function open(main, { parameters }) {
  const places = { table: h("div"), rules: h("div"), charts: h("div"), rows: h("div") };
  const shown = { name: parameters.get("of"), reason: parameters.get("reason"), mark: null, due: pace(), charts: null };
  main.append(places.table, places.rules, places.charts, places.rows);
  const choose = (name) => {
    shown.name = name;
    shown.reason = null;
    place.note({ of: name, reason: null });
    overTime(true);
    rows(true);
  };
  let app = null;
  const suspects = () => app.datasets.filter((each) => asideTotal(each));
  const chosen = () => suspects().find((found) => found.name === shown.name) ?? suspects()[0];
  const overTime = async (force) => {
    const each = chosen(), range = place.range();
    if (!each) return places.charts.replaceChildren();
    if (!shown.due("charts", `${each.name} ${each.batch} ${document.documentElement.dataset.theme}`, range.step) && !force) return null;
    const { points } = await get(of(each.name, "/history"), { since: range.since.toISOString(), until: range.until.toISOString() });
    shown.charts?.close();
    shown.charts = charts("quality", (from, to) => place.go(place.address({ range: null, from: from.toISOString(), to: to.toISOString() })));
    const drawn = qualityCharts(shown.charts.chart, points), box = h("div", { class: "charts" }, drawn);
    shown.charts.watch(box);
    requestAnimationFrame(() => shown.charts.fit());
    return places.charts.replaceChildren(card(`${each.name} over time`, range.text.toLowerCase(), drawn.length ? box : empty("No row was set aside in this time. Choose a longer one above.")));
  };
  const rows = async (force) => {
    const each = chosen();
    if (!each) return places.rows.replaceChildren();
    const mark = `${each.name} ${each.batch} ${shown.reason}`;
    if (!force && (places.rows.contains(document.activeElement) || !shown.due(each.name, mark, ROWS_MS))) return null;
    shown.mark = mark;
    const select = h("select", { "aria-label": "Dataset", onchange: (event) => choose(event.target.value) }, suspects().map((found) => h("option", { value: found.name, selected: found === each }, found.name)));
    let body;
    try {
      body = await aside(each, shown);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      body = problem(error.fault);
    }
    if (shown.mark !== mark) return null;
    return places.rows.replaceChildren(h("section", { class: "card" }, h("h2", {}, "Rows set aside", h("span", {}, "of "), select), body));
  };
  shown.again = () => rows(true);
  return {
    tick: () => app && Promise.all([overTime(false), rows(false)]),
    close: () => shown.charts?.close(),
    refresh: async (found) => {
      app = found;
      const ledger = await get("ledger").catch((error) => ({ tables: [], sources: [], fault: error.fault }));
      update(places.table, app.datasets, verdicts);
      update(places.rules, ledger.tables, rules);
      await Promise.all([overTime(false), rows(false)]);
    },
  };
}

function verdicts(all) {
  const stored = all.filter((each) => each.total || asideTotal(each));
  if (!stored.length) return card("Rows by verdict", null, empty("No row has been judged yet."));
  const share = (each) => asideTotal(each) / (each.total + asideTotal(each));
  return card("Rows by verdict", "over all batches", table("Rows by verdict", [
    { title: "dataset", cell: (each) => h("span", { class: "nm" }, dataset(each.name)) }, { title: "rows", cell: (each) => exact(number(each.total + asideTotal(each)), each.total + asideTotal(each)) },
    { title: "right", cell: (each) => exact(number(each.total), each.total) }, { title: "set aside", cell: (each) => exact(number(asideTotal(each)), asideTotal(each)) }, { title: "share", cell: (each) => `${number(100 * share(each), 2)} %` },
    { title: "by verdict", left: true, cell: (each) => [parts({ ok: each.total, ...each.aside }), Object.entries(each.aside).map(([name, count]) => `${number(count)} ${name}`).join(" · ") || "all ok"] },
  ], stored));
}

function rules(tables) {
  const all = tables.flatMap((each) => Object.entries(each.rules).map(([rule, count]) => ({ table: each.name, rule, count, of: each.input })));
  return card("Expectations", number(all.length), all.length ? table("Expectations that rows break", [
    { title: "expectation", cell: (each) => each.rule }, { title: "of", left: true, cell: (each) => dataset(each.table) }, { title: "rows that break it", cell: (each) => exact(number(each.count), each.count) },
    { title: "share", cell: (each) => (each.of ? `${number((100 * each.count) / each.of, 2)} %` : NOTHING) },
  ], all) : empty("No row breaks a rule."));
}

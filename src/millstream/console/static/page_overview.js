// Overview: the answer first, then what needs attention, the graph, and a table of all datasets.
import { asideTotal, attentionOf, subtitle } from "./app_view.js";
import { card, dataset, empty, h, update } from "./dom.js";
import { events } from "./events_list.js";
import { ago, clock, duration, exact, number, plural, rate, short, time, NOTHING } from "./format.js";
import { draw } from "./graph.js";
import { badge } from "./health.js";
import { bar, parts, spark } from "./spark.js";
import { table } from "./table.js";

export const title = () => "Overview";

export function open(main) {
  const places = { tiles: h("section", { class: "tiles", "aria-label": "The app in numbers" }), graph: h("div"), attention: h("div"), feed: h("div"), datasets: h("div") };
  main.append(places.tiles,
    h("div", { class: "two" }, places.graph, h("div", { class: "stack" }, places.attention, places.feed)), places.datasets);
  return { refresh: (app) => show(places, app) };
}

function show(places, app) {
  update(places.tiles, tilesOf(app), (tiles) => tiles.map(tile));
  update(places.graph, app.datasets, (all) => card("Graph", all.some((each) => each.in) ? "rows per second on the lines, complete to in the boxes" : "complete to, in the boxes",
    all.length ? draw(all) : empty("Nothing is declared, and nothing has run.")));
  update(places.attention, attentionOf(app.datasets), attention);
  update(places.feed, app.events, (found) => card("Events", null, events(found, 12)));
  update(places.datasets, app.datasets, (all) => card("Datasets", number(all.length), datasetsTable(all)));
}

function tilesOf({ datasets, overview: { status: { driver } } }) {
  const sources = datasets.filter((each) => each.kind === "source");
  const most = (name) => datasets.reduce((worst, each) => ((each[name] ?? -1) > (worst?.[name] ?? -1) ? each : worst), null);
  const read = sources.reduce((sum, each) => sum + each.total + asideTotal(each), 0);
  const aside = sources.reduce((sum, each) => sum + asideTotal(each), 0);
  const behind = most("behindS"), rows = most("behindRows"), slow = most("batchMs"), stale = most("fresh");
  const speed = sources.some((each) => each.in !== null) ? sources.reduce((sum, each) => sum + (each.in ?? 0), 0) : null;
  const newest = datasets.map((each) => each.committedAt).filter(Boolean).sort().at(-1) ?? null;
  const verdicts = {};
  for (const each of sources) for (const [name, count] of Object.entries(each.aside)) verdicts[name] = (verdicts[name] ?? 0) + count;
  return [
    { key: "Rows in", value: speed === null ? number(read) : `${rate(speed)} /s`, exact: speed ?? read, note: speed === null ? "in all, from all sources" : `all sources · ${short(read)} in all`, recent: summed(sources.map((each) => each.recent)), level: "accent" },
    { key: "Behind", value: behind?.behindS ? duration(behind.behindS) : rows?.behindRows ? `${number(rows.behindRows)} rows` : rows ? "0" : NOTHING, exact: rows?.behindRows,
      note: rows?.behindRows ? `${rows.name}, ${plural(rows.behindRows, "row")}` : rows ? "nothing waits" : "not measured yet", recent: rows ? summed([rows.recentBehind]) : [], level: rows?.level === "warn" ? "warn" : "ok" },
    driver ? { key: "Freshness", value: stale ? duration(stale.fresh) : NOTHING, exact: stale?.committedAt, note: stale ? `since the last commit of ${stale.name}` : "nothing is committed yet", level: "ok" }
      : { key: "Last commit", value: newest ? clock(newest) : NOTHING, exact: newest, note: newest ? datasets.find((each) => each.committedAt === newest).name : "nothing is committed yet", level: "ok" },
    { key: "Set aside", value: read ? `${number((100 * aside) / read, 2)} %` : NOTHING, exact: `${aside} of ${read} rows`, note: Object.entries(verdicts).map(([name, count]) => `${name} ${number((100 * count) / read, 2)}`).join(" · ") || "nothing", counts: { ok: read - aside, ...verdicts }, level: "accent" },
    { key: "Slowest batch", value: slow ? duration(slow.batchMs / 1000) : NOTHING, exact: slow?.batchMs && `${slow.batchMs} ms`, note: slow ? `${slow.name}${slow.targetMs ? `, target ${duration(slow.targetMs / 1000)}` : ""}` : "not measured yet", level: slow?.targetMs && slow.batchMs > slow.targetMs ? "warn" : "accent" },
  ];
}

function summed(all) {
  const longest = Math.max(0, ...all.map((each) => each.length));
  return Array.from({ length: longest }, (_, index) => all.reduce((sum, each) => sum + (each[index - longest + each.length] ?? 0), 0));
}

const tile = (each) => h("div", { class: "card tile" }, h("p", { class: "k" }, each.key), h("p", { class: "v" }, exact(each.value, each.exact)), h("p", { class: "n" }, each.note),
  each.recent?.length > 1 ? spark(each.recent, { width: 200, height: 34, level: each.level, fill: true }) : each.counts ? parts(each.counts) : null);

function attention(all) {
  const items = all.map((each) => h("li", { class: "item" },
    h("span", { class: `shape ${each.level}`, "aria-hidden": "true" }, each.level === "bad" ? "■" : "▲"),
    h("div", {}, h("p", { class: "first" }, h("b", {}, dataset(each.name)), ` ${sentence(each)}`),
      each.why || each.fix ? h("div", { class: `fix ${each.level}` }, each.why ? h("p", {}, h("b", {}, "Why: "), each.why) : null, each.at ? h("p", {}, "at ", h("code", {}, each.at)) : null, each.fix ? h("p", {}, h("b", {}, "Fix: "), each.fix) : null) : null),
    h("span", { class: "t" }, each.since ? ago(each.since) : "")));
  return card("Needs attention", number(all.length), all.length ? h("ul", { class: "items" }, items) : empty("Nothing needs attention."));
}

const sentence = (each) => {
  if (each.state === "behind" && each.behindRows) return `is behind: ${plural(each.behindRows, "row")}${each.behindS ? `, ${duration(each.behindS)}` : ""}`;
  return { failed: "has failed", failing: "is failing", restarting: "is restarting", stale: "is stale", damaged: "is damaged" }[each.state] ?? `is ${each.word.toLowerCase()}`;
};

export function datasetsTable(all) {
  const measured = all.some((each) => each.in !== null || each.batchMs !== null);
  const kept = all.some((each) => each.stateRows);
  const columns = [
    { title: "name", cell: (each) => [h("span", { class: "nm" }, dataset(each.name)), " ", h("span", { class: "kd" }, subtitle(each))] },
    { title: "health", left: true, cell: (each) => badge(each.level, each.word, each.why) },
    ...(measured ? [
      { title: "in/s", cell: (each) => exact(rate(each.in), each.in) },
      { title: "", cell: (each) => (each.recent.length > 1 ? spark(each.recent) : "") },
      { title: "out/s", cell: (each) => exact(rate(each.out), each.out) },
      { title: "batch, of its target", cell: (each) => (each.batchMs === null ? NOTHING : [exact(duration(each.batchMs / 1000), `${each.batchMs} ms`), each.targetMs ? [` of ${duration(each.targetMs / 1000)}`, bar(each.batchMs / each.targetMs)] : ""]) },
      { title: "last commit", cell: (each) => (each.committedAt ? [h("time", { datetime: each.committedAt, title: each.committedAt }, duration(each.fresh ?? (Date.now() - new Date(each.committedAt)) / 1000)), " ago"] : NOTHING) },
      { title: "behind", cell: (each) => (each.behindRows === null ? NOTHING : [exact(number(each.behindRows), each.behindRows), each.behindS ? h("span", { class: "kd" }, ` ${duration(each.behindS)}`) : ""]) },
    ] : [
      { title: "batches", cell: (each) => number(each.batch + 1) },
      { title: "rows in all", cell: (each) => (each.version === null ? NOTHING : exact(number(each.total), each.total)) },
      { title: "committed", cell: (each) => time(each.committedAt) },
    ]),
    { title: "complete to", cell: (each) => time(each.completeTo) },
    { title: "rows by verdict", left: true, cell: verdicts },
    ...(kept ? [{ title: "state rows", cell: (each) => (each.stateRows ? exact(short(each.stateRows), each.stateRows) : NOTHING) }] : []),
  ];
  return table("Datasets", columns, all);
}

function verdicts(each) {
  const aside = asideTotal(each);
  if (!each.total && !aside) return h("span", { class: "kd" }, NOTHING);
  const share = each.kind === "source" ? each.total + aside : Math.max(each.total + aside, 1);
  const text = aside ? `${number((100 * (share - aside)) / share, 1)} % ok` : "all ok";
  return [parts({ ok: each.total, ...each.aside }), h("span", { title: Object.entries(each.aside).map(([name, count]) => `${count} ${name}`).join(", ") || null }, text)];
}

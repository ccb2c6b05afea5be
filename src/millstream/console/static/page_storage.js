// Storage: how large each table is, how it grows, what is kept how long, and what maintenance did.
import { get } from "./api.js";
import { card, dataset, empty, h, update } from "./dom.js";
import { ago, bytes, exact, number, plural, NOTHING } from "./format.js";
import { pace, ROWS_MS } from "./pace.js";
import { bar, spark } from "./spark.js";
import { table } from "./table.js";

const QUARANTINE = "__quarantine";
export const title = () => "Storage";

export function open(main) {
  const places = { tiles: h("section", { class: "tiles", "aria-label": "The home in numbers" }), tables: h("div"), upkeep: h("div") };
  main.append(places.tiles, places.tables, places.upkeep);
  const due = pace();
  // Every file is looked at: not at each batch.
  const refresh = async (app) => {
    if (!due("sizes", app.datasets.map((each) => each.version).join(), ROWS_MS)) return;
    const found = await get("storage");
    const largest = [...found.tables].sort((one, other) => other.size_on_disk - one.size_on_disk);
    update(places.tiles, found, (sizes) => tilesOf(sizes).map(tile));
    update(places.tables, largest, (all) => card("Tables", "the largest first, measured every half minute", all.length ? sizesTable(all) : empty("No table is stored yet.")));
    update(places.upkeep, largest, (all) => (all.length ? card("Maintenance", "small files become large ones; what no kept version needs is deleted", upkeepTable(all)) : []));
  };
  return { refresh, tick: refresh };
}

const sum = (all, name) => all.reduce((total, each) => total + (each[name] ?? 0), 0);
const size = (value) => exact(bytes(value), value === null ? null : `${number(value)} bytes`);

function tilesOf({ tables, checkpoints }) {
  const disk = sum(tables, "size_on_disk"), newest = sum(tables, "size"), known = tables.filter((each) => each.growth_per_day !== null);
  const growth = known.length ? sum(known, "growth_per_day") : null;
  return [
    { key: "On disk", value: size(disk), note: plural(sum(tables, "files_on_disk"), "file") },
    { key: "As read now", value: size(newest), note: `${plural(sum(tables, "files"), "file")} of the newest versions` },
    { key: "Checkpoints", value: size(checkpoints), note: "offsets and state of the queries" },
    { key: "Growth per day", value: growth === null ? NOTHING : size(Math.round(growth)), note: growth === null ? "known after an hour" : `of ${plural(known.length, "table")}` },
    { key: "Deleted", value: size(sum(tables, "deleted_size")), note: `${plural(sum(tables, "deleted"), "file")} that no version needs` },
  ];
}

const tile = (each) => h("div", { class: "card tile" }, h("p", { class: "k" }, each.key), h("p", { class: "v" }, each.value), h("p", { class: "n" }, each.note));

function name(each) {
  const of = each.name.endsWith(QUARANTINE) ? each.name.slice(0, -QUARANTINE.length) : each.name;
  return [h("span", { class: "nm" }, dataset(of)), of === each.name ? null : h("span", { class: "kd" }, " rows set aside")];
}

function sizesTable(all) {
  const most = Math.max(...all.map((each) => each.size_on_disk), 1);
  return table("Tables", [
    { title: "table", cell: name },
    { title: "on disk", cell: (each) => [size(each.size_on_disk), share(each.size_on_disk / most)] },
    { title: "files", cell: (each) => exact(number(each.files_on_disk), each.files_on_disk) },
    { title: "as read now", cell: (each) => size(each.size) },
    { title: "files", cell: (each) => exact(number(each.files), each.files) },
    { title: "versions", cell: (each) => h("span", { title: `versions ${each.first_version} to ${each.version} can be read` }, number(each.version - each.first_version + 1)) },
    { title: "log files", cell: (each) => number(each.log_files) },
    { title: "growth per day", cell: (each) => (each.growth_per_day === null ? NOTHING : size(Math.round(each.growth_per_day))) },
    { title: "", cell: (each) => (each.sampled.length > 1 ? spark(each.sampled.map(([, value]) => value)) : "") },
  ], all);
}

// A bar of a size: the largest is full, and nothing is wrong with that.
function share(part) {
  const found = bar(Math.min(part, 0.999));
  found.firstChild.style.width = `${100 * part}%`;
  return found;
}

function upkeepTable(all) {
  return table("Maintenance", [
    { title: "table", cell: name },
    { title: "keeps", left: true, cell: (each) => (each.keep_versions ? `rows ${each.keep ?? "for ever"}, versions ${each.keep_versions}` : NOTHING) },
    { title: "last done", cell: (each) => (each.maintained_at ? [ago(each.maintained_at), " ago"] : h("span", { class: "kd" }, "not yet")) },
    { title: "compacted", left: true, cell: (each) => (each.compacted ? `${number(each.compacted)} files into ${number(each.into)}` : NOTHING) },
    { title: "deleted", left: true, cell: (each) => (each.deleted ? [`${plural(each.deleted, "file")}, `, size(each.deleted_size)] : NOTHING) },
    { title: "rows dropped", cell: (each) => (each.rows_dropped ? exact(number(each.rows_dropped), each.rows_dropped) : NOTHING) },
    { title: "", left: true, wrap: true, cell: (each) => (each.trouble ? h("span", { class: "bad" }, `■ ${each.trouble}`) : each.waits_for ? h("span", { class: "quiet" }, `old versions wait for ${each.waits_for}`) : "") },
  ], all);
}

// Ledger: what became of every row, and whether the sums agree; each batch on demand.
import { get, of } from "./api.js";
import { card, dataset, empty, h, update } from "./dom.js";
import { exact, number, time, NOTHING } from "./format.js";
import { badge } from "./health.js";
import { table } from "./table.js";

export const title = () => "Ledger";
const count = (value) => exact(number(value), value);
const balance = (each) => badge(each.is_balanced ? "ok" : "bad", each.is_balanced ? "balanced" : "not balanced");

export function open(main) {
  const places = { answer: h("div"), sources: h("div"), tables: h("div"), serves: h("div"), batches: h("div", { "aria-live": "polite" }) };
  main.append(...Object.values(places));
  const more = (each) => h("button", { type: "button", class: "button", "data-key": `batches-${each.name}`, onclick: () => batches(places.batches, each.name) }, "Per batch");
  return {
    refresh: async () => {
      const found = await get("ledger");
      update(places.answer, [found.is_balanced, found.is_complete, found.troubles], () => h("section", { class: "card" }, h("div", { class: "bar-of" },
        badge(found.is_balanced ? "ok" : "bad", found.is_balanced ? "Balanced: every row that was read is accounted for" : "Not balanced: rows are missing"),
        Object.entries(found.troubles).map(([name, trouble]) => h("span", { class: "bad" }, `■ ${name} ${trouble.state}: ${trouble.what}`)))));
      update(places.sources, found.sources, (all) => card("Sources", "every row read has one verdict", all.length ? table("Sources", [{ title: "source", cell: (each) => dataset(each.name) }, { title: "batches", cell: (each) => count(each.batches) }, { title: "input", cell: (each) => count(each.input) },
        ...["ok", "late", "future", "malformed", "rejected"].map((name) => ({ title: name, cell: (each) => count(each.verdicts[name] ?? 0) })), { title: "blank lines", cell: (each) => count(each.blank ?? 0) }, { title: "bent", cell: (each) => count(each.bent ?? 0) }, { title: "files set aside", cell: (each) => count(each.unreadable) }, { title: "balance", left: true, cell: balance }, { title: "", cell: more }], all) : empty("No source has landed a row yet.")));
      update(places.tables, found.tables, (all) => card("Tables and alerts", "every row of an answer is written, quarantined or dropped", all.length ? table("Tables", [{ title: "table", cell: (each) => dataset(each.name) }, { title: "batches", cell: (each) => count(each.batches) }, { title: "input", cell: (each) => count(each.input) }, { title: "written", cell: (each) => count(each.written) }, { title: "quarantined", cell: (each) => count(each.quarantined) }, { title: "dropped", cell: (each) => count(each.dropped) },
        { title: "rules", left: true, cell: (each) => Object.entries(each.rules).map(([rule, n]) => `${number(n)} ${rule}`).join(" · ") || NOTHING }, { title: "balance", left: true, cell: balance }, { title: "", cell: more }], all) : empty("No table has been written yet.")));
      update(places.serves, found.serves, (all) => (all.length ? card("Served", "as recorded in the stores", table("Served", [{ title: "answer", cell: (each) => dataset(each.name) }, { title: "store", left: true, cell: (each) => each.store }, { title: "batches", cell: (each) => count(each.batches) }, { title: "input", cell: (each) => count(each.input) }, { title: "written", cell: (each) => count(each.written) }, { title: "quarantined", cell: (each) => count(each.quarantined) }, { title: "balance", left: true, cell: balance }], all)) : []));
    },
  };
}

async function batches(place, name) {
  const found = await get(of(name, "/batches"), { most: 200 });
  const kinds = [...new Set(found.flatMap((each) => Object.keys(each.outcomes)))];
  place.replaceChildren(card(`Batches of ${name}`, number(found.length), found.length ? table(`Batches of ${name}`, [{ title: "batch", cell: (each) => number(each.batch) }, { title: "committed", cell: (each) => time(each.at) }, { title: "input", cell: (each) => count(each.input) },
    ...kinds.map((kind) => ({ title: kind, cell: (each) => count(each.outcomes[kind] ?? 0) })), { title: "balance", left: true, cell: balance }], found) : empty("No batch has been committed.")));
  place.scrollIntoView({ block: "nearest" });
}

// Rows that were set aside: why, and the bytes that came.
import { get, of, send } from "./api.js";
import { empty, h } from "./dom.js";
import { number } from "./format.js";
import { save } from "./save.js";
import { rowsNote, rowsTable } from "./table.js";

const FIRST = ["_verdict", "_reason", "_raw", "_rules"];

// The reason and the raw bytes come first, the columns of the row after them.
function ordered(answer) {
  const order = [...FIRST.map((name) => answer.columns.indexOf(name)).filter((at) => at >= 0), ...answer.columns.map((_, at) => at).filter((at) => !FIRST.includes(answer.columns[at]))];
  const pick = (values) => order.map((at) => values[at]);
  return { ...answer, columns: pick(answer.columns).map((name) => name.replace(/^_/, "")), kinds: pick(answer.kinds), rows: answer.rows.map(pick) };
}

export async function aside(each, shown) {
  const detail = await get(of(each.name));
  const reasons = each.kind === "source" ? Object.keys(each.aside) : Object.keys(detail.declared?.rules ?? {});
  if (!Object.keys(each.aside).length) return empty("No row has been set aside.");
  const found = await get(of(each.name, "/aside"), { reason: shown.reason, most: 200 });
  const filter = h("select", { "aria-label": "Reason", onchange: (event) => { shown.reason = event.target.value || null; shown.again(); } },
    h("option", { value: "" }, "any"), reasons.map((reason) => h("option", { value: reason, selected: reason === shown.reason }, `${reason}${each.aside[reason] ? ` (${number(each.aside[reason])})` : ""}`)));
  const table = each.kind === "source" ? each.name : `${each.name}__quarantine`;
  const query = `SELECT * FROM \`${table}\`${each.kind === "source" ? " WHERE _verdict <> 'ok'" : ""}`;
  const download = (format) => h("button", { type: "button", class: "button", onclick: () => save(send("sql/file", { sql: query, format }), `${table}.${format}`) }, format === "csv" ? "CSV" : "Parquet");
  return [h("div", { class: "bar-of" }, h("label", {}, "Reason ", filter), h("span", { class: "quiet" }, rowsNote(found)), h("span", { class: "sp" }), "Download all as ", download("csv"), download("parquet")),
    found.rows.length ? rowsTable(`Rows of ${each.name} that were set aside`, ordered(found)) : empty("No row has this reason.")];
}

// Tables: columns with a title, a cell and an alignment; and rows of an answer as they are.
import { h } from "./dom.js";
import { cell, number } from "./format.js";

export function table(label, columns, rows, { caption = true } = {}) {
  const head = columns.map((column, index) => h("th", { scope: "col", class: column.left || index === 0 ? "l" : null }, column.title));
  const body = rows.map((row) => h("tr", {}, columns.map((column, index) =>
    h(index === 0 ? "th" : "td", { scope: index === 0 ? "row" : null, class: `${column.left || index === 0 ? "l" : ""}${column.wrap ? " wrap" : ""}` || null }, column.cell(row)))));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
    h("table", {}, caption ? h("caption", { class: "unseen" }, label) : null, h("thead", {}, h("tr", {}, head)), h("tbody", {}, body)));
}

const AT_ONCE = 200;

// The rows of a query; more of them are drawn when they are asked for.
export function rowsTable(label, answer, { mark = null } = {}) {
  const right = answer.kinds.map((kind) => kind === "number");
  const head = answer.columns.map((name, index) => h("th", { scope: "col", class: right[index] ? null : "l" }, name));
  const body = h("tbody");
  const row = (values) => h("tr", { class: mark ? mark(values) : null }, values.map((value, index) => h("td", { class: right[index] ? null : "l" }, cell(value, answer.kinds[index]))));
  let drawn = 0;
  const more = h("button", { type: "button", class: "button", onclick: () => draw() });
  const draw = () => {
    body.append(...answer.rows.slice(drawn, drawn + AT_ONCE).map(row));
    drawn = Math.min(drawn + AT_ONCE, answer.rows.length);
    more.hidden = drawn >= answer.rows.length;
    more.textContent = `Show more of ${number(answer.rows.length)} rows`;
  };
  draw();
  return h("div", {},
    h("div", { class: "scroll rows", tabindex: "0", role: "region", "aria-label": label },
      h("table", {}, h("caption", { class: "unseen" }, label), h("thead", {}, h("tr", {}, head)), body)),
    more);
}

export const rowsNote = (answer) => `${answer.is_cut ? "the first " : ""}${number(answer.rows.length)} row${answer.rows.length === 1 ? "" : "s"}`;

// Completion of names of tables and columns while a question is typed.
import { h } from "./dom.js";

const WORDS = ["SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "LIMIT", "JOIN", "HAVING", "DISTINCT", "VERSION AS OF", "TIMESTAMP AS OF", "count(*)", "sum(", "avg(", "min(", "max(", "date_trunc("];

export function complete(text, around, names) {
  let list = null, found = [], at = 0;
  const before = () => /[\w.]*$/.exec(text.value.slice(0, text.selectionStart))[0];
  const hide = () => {
    list?.remove();
    list = null;
    text.removeAttribute("aria-activedescendant");
  };
  const take = (word) => {
    const typed = before().split(".").pop(), end = text.selectionStart;
    text.setRangeText(word, end - typed.length, end, "end");
    hide();
    text.focus();
  };
  const candidates = (word) => {
    const known = names(), [left, right] = word.includes(".") ? word.split(".") : [null, word];
    const used = Object.entries(known).filter(([table]) => new RegExp(`\\b${table}\\b`, "i").test(text.value));
    const columns = (right === word ? used : Object.entries(known).filter(([table]) => table === left)).flatMap(([table, all]) => all.map((name) => [name, table]));
    const all = left === null ? [...Object.keys(known).map((name) => [name, "table"]), ...columns, ...WORDS.map((name) => [name, ""])] : columns;
    const wanted = right.toLowerCase();
    const seen = new Set();
    return all.filter(([name]) => name.toLowerCase().startsWith(wanted) && name.toLowerCase() !== wanted && !seen.has(name) && seen.add(name)).slice(0, 9);
  };
  const mark = () => [...list.children].forEach((item, index) => item.setAttribute("aria-selected", index === at ? "true" : "false"));
  const show = () => {
    const word = before();
    found = word.length >= 1 ? candidates(word) : [];
    hide();
    if (!found.length) return;
    at = 0;
    const lines = text.value.slice(0, text.selectionStart).split("\n");
    list = h("ul", { class: "complete", role: "listbox", "aria-label": "Names" }, found.map(([name, of]) => h("li", { role: "option", onmousedown: (event) => { event.preventDefault(); take(name); } }, name, h("span", { class: "kd" }, of))));
    list.style.top = `${Math.min(15 + lines.length * 20 - text.scrollTop, text.clientHeight)}px`;
    list.style.left = `${Math.min(16 + lines.at(-1).length * 7.5, Math.max(text.clientWidth - 240, 0))}px`;
    around.append(list);
    mark();
  };
  text.addEventListener("input", show);
  text.addEventListener("blur", hide);
  text.addEventListener("keydown", (event) => {
    if (!list) return;
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (move) {
      event.preventDefault();
      at = (at + move + found.length) % found.length;
      mark();
    } else if (event.key === "Tab" || (event.key === "Enter" && !event.ctrlKey && !event.metaKey)) {
      event.preventDefault();
      take(found[at][0]);
    } else if (event.key === "Escape") {
      event.preventDefault();
      hide();
    }
  });
}

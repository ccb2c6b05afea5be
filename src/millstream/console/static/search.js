// Find: any dataset or page, by a few letters of its name.
import { subtitle } from "./app_view.js";
import { h } from "./dom.js";
import { badge } from "./health.js";
import * as place from "./place.js";

let opened = null;

// Letters of the word in their order; the closer together and the earlier, the better.
function score(word, name) {
  let at = -1, gaps = 0;
  for (const letter of word) {
    const next = name.indexOf(letter, at + 1);
    if (next < 0) return null;
    gaps += next - at - 1;
    at = next;
  }
  return gaps + name.length / 100;
}

export function search(datasets, pages) {
  if (opened) return;
  const all = [...datasets.map((each) => ({ name: each.name, href: `/dataset/${encodeURIComponent(each.name)}`, more: [h("span", { class: "kd" }, subtitle(each)), badge(each.level, each.word)] })),
    ...pages.map(([href, text]) => ({ name: text, href, more: [h("span", { class: "kd" }, "page")] }))];
  let found = [], at = 0;
  const list = h("ul", { role: "listbox", id: "found", "aria-label": "Found" });
  const input = h("input", { type: "search", placeholder: "Find a dataset or a page", "aria-label": "Find a dataset or a page", role: "combobox", "aria-expanded": "true", "aria-controls": "found", "aria-autocomplete": "list", autocomplete: "off", spellcheck: "false" });
  const dialog = h("dialog", { class: "search", "aria-label": "Find" }, input, list);
  const close = () => dialog.close();
  const choose = (each) => {
    close();
    place.go(place.address({}, each.href));
  };
  const mark = () => {
    [...list.children].forEach((item, index) => item.setAttribute("aria-selected", index === at ? "true" : "false"));
    input.setAttribute("aria-activedescendant", found.length ? `found-${at}` : "");
    list.children[at]?.scrollIntoView({ block: "nearest" });
  };
  const draw = () => {
    const word = input.value.trim().toLowerCase();
    found = all.map((each) => [score(word, each.name.toLowerCase()), each]).filter(([points]) => points !== null)
      .sort(([one], [other]) => (word ? one - other : 0)).slice(0, 12).map(([, each]) => each);
    at = 0;
    list.replaceChildren(...found.map((each, index) => h("li", { role: "option", id: `found-${index}`, onclick: () => choose(each) }, h("b", {}, each.name), each.more)));
    if (!found.length) list.replaceChildren(h("li", { class: "empty", role: "option", "aria-disabled": "true" }, "Nothing has this name."));
    mark();
  };
  input.addEventListener("input", draw);
  input.addEventListener("keydown", (event) => {
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (move && found.length) {
      event.preventDefault();
      at = (at + move + found.length) % found.length;
      mark();
    } else if (event.key === "Enter" && found[at]) {
      event.preventDefault();
      choose(found[at]);
    }
  });
  dialog.addEventListener("click", (event) => event.target === dialog && close());
  dialog.addEventListener("close", () => {
    dialog.remove();
    opened = null;
  });
  opened = dialog;
  document.body.append(dialog);
  draw();
  dialog.showModal();
  input.focus();
}

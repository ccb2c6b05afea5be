// Served: look a row up by its key, in the store that serves it.
import { get, Refused } from "./api.js";
import { card, dataset, empty, h, problem, update } from "./dom.js";
import { cell } from "./format.js";
import * as place from "./place.js";

export const title = () => "Served";

export function open(main) {
  const list = h("div", { class: "stack" });
  main.append(list);
  return {
    refresh: async () => {
      const served = await get("served");
      update(list, served, (all) => (all.length ? all.map(lookup) : card("Served", null, empty("Nothing is served to a store in which rows can be looked up."))));
    },
  };
}

function lookup(served) {
  const parameters = new URLSearchParams(location.search), mine = parameters.get("of") === served.dataset;
  const inputs = served.key.map((column) => h("input", { name: column.name, "data-key": `${served.dataset}-${column.name}`, "aria-label": column.name, placeholder: column.type ?? "", value: mine ? parameters.get(`key.${column.name}`) ?? "" : "" }));
  const answer = h("div", { "aria-live": "polite" });
  const ask = async (event) => {
    event?.preventDefault();
    const key = Object.fromEntries(served.key.map((column, index) => [column.name, inputs[index].value]));
    place.note({ of: served.dataset, ...Object.fromEntries(Object.entries(key).map(([name, value]) => [`key.${name}`, value])) });
    try {
      const query = new URLSearchParams(key);
      const row = await get(`get/${encodeURIComponent(served.dataset)}?${query}`);
      answer.replaceChildren(h("dl", { class: "facts" }, Object.entries(row).map(([name, value]) => [h("dt", {}, name), h("dd", {}, typeof value === "number" ? cell(value, "number") : cell(value, "text"))])));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      answer.replaceChildren(h("div", { class: "bar-of" }, error.fault.code === "ROW_MISSING" ? h("p", {}, error.fault.what) : problem(error.fault)));
    }
  };
  const form = h("form", { class: "bar-of", onsubmit: ask }, served.key.map((column, index) => h("label", {}, column.name, " ", inputs[index])), h("button", { class: "button main" }, "Look up"));
  if (mine && inputs.some((input) => input.value)) ask();
  return h("section", { class: "card" }, h("h2", {}, dataset(served.dataset), h("span", {}, `by ${served.key.map((column) => `${column.name}${column.type ? ` (${column.type})` : ""}`).join(", ") || "no key"}`)), served.fault ? h("div", { class: "bar-of" }, problem(served.fault)) : null, form, answer);
}

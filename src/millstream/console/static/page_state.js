// State: what functions with state keep of each key. Reading it starts Spark, so it is asked for.
import { get, post, Refused } from "./api.js";
import { card, empty, h, problem, update } from "./dom.js";
import { rowsNote, rowsTable } from "./table.js";

export const title = () => "State";

export function open(main) {
  const list = h("div", { class: "stack" });
  main.append(list);
  return {
    refresh: async (app) => {
      const { states } = await get("states");
      update(list, [states, app.role], () => (states.length ? states.map(ask) : card("State", null, empty("No function of this app keeps a state of its own. Aggregates and joins keep theirs in Spark's checkpoints; their size is on the page of the dataset."))));
    },
  };
}

function ask(state) {
  const key = h("input", { "aria-label": `Key of ${state.name}`, placeholder: "any key" }), column = state.key[0] ?? "";
  const answer = h("div", { "aria-live": "polite" });
  const submit = async (event) => {
    event.preventDefault();
    answer.replaceChildren(empty("Spark starts and reads the state; this takes some ten seconds …"));
    try {
      const found = await post("state", { name: state.name, key: key.value ? { [column]: key.value } : {} });
      answer.replaceChildren(h("p", { class: "bar-of quiet" }, rowsNote(found)), found.rows.length ? rowsTable(`State of ${state.name}`, found) : empty("Nothing is kept of this key."));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      answer.replaceChildren(h("div", { class: "bar-of" }, problem(error.fault)));
    }
  };
  return h("section", { class: "card" }, h("h2", {}, state.name, h("span", {}, `kept by ${state.dataset}, one row for each ${state.key.join(", ") || "key"}`)),
    h("form", { class: "bar-of", onsubmit: submit }, column ? h("label", {}, column, " ", key) : null, h("button", { class: "button main" }, "Show")), answer);
}

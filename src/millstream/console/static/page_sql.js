// SQL: a question, its answer as a table and as a chart, files of it, and the questions before.
import { get, post, send, Refused } from "./api.js";
import { categories, charts } from "./chart.js";
import { complete } from "./complete.js";
import { card, empty, h, problem, update } from "./dom.js";
import { duration, number } from "./format.js";
import * as place from "./place.js";
import { save } from "./save.js";
import { rowsNote, rowsTable } from "./table.js";

const PAST = "millstream-questions", MOST = 40;
export const title = () => "SQL";

const past = () => JSON.parse(localStorage.getItem(PAST) ?? "[]");
const remember = (text) => localStorage.setItem(PAST, JSON.stringify([text, ...past().filter((each) => each !== text)].slice(0, MOST)));

export function open(main, { parameters }) {
  const shown = { running: null, drawn: null, answer: null, as: parameters.get("as") ?? "table" };
  const text = h("textarea", { class: "sql", "aria-label": "SQL", spellcheck: "false", autocapitalize: "off", placeholder: "SELECT … FROM a table; Ctrl-Enter runs it" });
  text.value = parameters.get("q") ?? "";
  const run = h("button", { type: "button", class: "button main", onclick: () => ask() }, "Run");
  const cancel = h("button", { type: "button", class: "button", disabled: true, onclick: () => shown.running && post("sql/cancel", { id: shown.running }) }, "Cancel");
  const file = (format, name) => h("button", { type: "button", class: "button", onclick: () => text.value.trim() && save(send("sql/file", { sql: text.value, format }), `answer.${format}`, wrong) }, name);
  const note = h("span", { class: "quiet", role: "status" }), answer = h("div", { id: "answer", "aria-live": "polite" }), list = h("div");
  const names = {};
  const editor = h("div", { class: "editor" }, text);
  complete(text, editor, () => names);
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      ask();
    }
  });
  main.append(h("section", { class: "card" }, h("h2", { class: "unseen" }, "Query"), editor, h("div", { class: "bar-of" }, run, cancel, note, h("span", { class: "sp" }), h("span", { class: "quiet" }, "Download "), file("csv", "CSV"), file("parquet", "Parquet"))), answer, list);

  const wrong = (fault) => answer.replaceChildren(problem(fault));
  const ask = async () => {
    const asked = text.value.trim();
    if (!asked || shown.running) return;
    shown.running = crypto.randomUUID();
    run.disabled = true;
    cancel.disabled = false;
    note.textContent = "running …";
    place.note({ q: asked });
    try {
      shown.answer = await post("sql", { sql: asked, id: shown.running });
      remember(asked);
      note.textContent = `${rowsNote(shown.answer)}, ${duration(shown.answer.took_ms / 1000)}`;
      draw();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      note.textContent = "";
      wrong(error.fault);
    } finally {
      shown.running = null;
      run.disabled = false;
      cancel.disabled = true;
    }
    questions();
  };
  const draw = () => {
    shown.drawn?.close();
    shown.drawn = null;
    const found = shown.answer, plan = chartOf(found);
    const choose = (as) => { shown.as = as; place.note({ as: as === "table" ? null : as }); draw(); };
    const as = plan && shown.as !== "table" ? (plan.kinds.includes(shown.as) ? shown.as : plan.kinds[0]) : "table";
    const choices = plan ? h("div", { class: "bar-of", role: "group", "aria-label": "Show as" }, ["table", ...plan.kinds].map((kind) => h("button", { type: "button", class: "button", "data-key": `as-${kind}`, "aria-pressed": kind === as ? "true" : "false", onclick: () => choose(kind) }, { table: "Table", line: "Lines", bar: "Bars" }[kind]))) : null;
    const body = !found.rows.length ? empty("No row answers this.") : as === "table" ? rowsTable("Answer", found) : as === "bar" ? bars(found, plan) : lines(found, plan, shown);
    answer.replaceChildren(h("section", { class: "card", "aria-label": "Answer" }, found.is_cut ? h("p", { class: "bar-of warn" }, `▲ Only the first ${number(found.rows.length)} rows are shown; a download has all of them.`) : null, choices, body));
    shown.drawn?.fit();
  };
  const questions = () => update(list, past(), (all) => (all.length ? card("Earlier queries", "kept in this browser", h("ul", { class: "past" }, all.map((each) => h("li", {}, h("button", { type: "button", title: each, onclick: () => { text.value = each; ask(); scrollTo(0, 0); } }, each.replaceAll(/\s+/g, " ")))))) : []));
  questions();
  // A question that came with a link runs by itself only if this browser has asked it before.
  if (past().includes(text.value.trim())) ask();
  let version = null;
  return {
    refresh: async (app) => {
      const now = app.datasets.map((each) => each.name).join();
      if (version !== now) {
        version = now;
        Object.assign(names, await get("names"));
        if (!text.value && !text.placeholder.includes("such as")) text.placeholder = `SELECT … FROM …; Ctrl-Enter runs it. Tables: ${Object.keys(names).join(", ")}`;
      }
    },
    close: () => shown.drawn?.close(),
  };
}

// What of an answer can be drawn: x is a time, else a text, else the first number.
function chartOf(found) {
  const numbers = found.kinds.map((kind, index) => (kind === "number" ? index : -1)).filter((index) => index >= 0);
  if (!found.rows.length || !numbers.length) return null;
  const isTime = (index) => found.kinds[index] === "time" || (found.kinds[index] === "struct" && found.rows[0][index]?.start);
  const time = found.kinds.findIndex((_, index) => isTime(index)), text = found.kinds.indexOf("text");
  if (time >= 0 && found.rows.length > 1) return { kinds: text >= 0 ? ["line", "bar"] : ["line"], x: time, group: text, numbers, isTime: true };
  if (text >= 0) return { kinds: ["bar"], x: text, group: -1, numbers };
  return numbers.length > 1 ? { kinds: ["line", "bar"], x: numbers[0], group: -1, numbers: numbers.slice(1) } : null;
}

const MOST_LINES = 8;
const xOf = (plan, value) => (plan.isTime ? new Date(value?.start ?? value) / 1000 : Number(value));

// One line for each text, or one for each column of numbers.
function lines(found, plan, shown) {
  const rows = [...found.rows].sort((one, other) => xOf(plan, one[plan.x]) - xOf(plan, other[plan.x]));
  const times = [...new Set(rows.map((row) => xOf(plan, row[plan.x])))], at = new Map(times.map((time, index) => [time, index]));
  const series = new Map(), column = plan.numbers[0];
  const put = (name, row, index) => {
    if (!series.has(name)) series.set(name, { name, values: new Array(times.length).fill(null) });
    series.get(name).values[at.get(xOf(plan, row[plan.x]))] = Number(row[index]);
  };
  for (const row of rows) {
    if (plan.group >= 0) put(String(row[plan.group]), row, column);
    else for (const index of plan.numbers) put(found.columns[index], row, index);
  }
  const drawn = charts("sql", () => {});
  const all = [...series.values()];
  const box = h("div", { class: "charts", style: { gridTemplateColumns: "minmax(0,1fr)" } }, drawn.chart(plan.group >= 0 ? found.columns[column] : "", all.slice(0, MOST_LINES), times, { note: all.length > MOST_LINES ? `the first ${MOST_LINES} of ${all.length}` : "" }));
  drawn.watch(box);
  shown.drawn = drawn;
  return box;
}

function bars(found, plan) {
  const rows = found.rows.slice(0, 60), x = plan.isTime ? plan.group : plan.x;
  return h("div", {}, h("p", { class: "bar-of quiet" }, `${found.columns[plan.numbers[0]]} by ${found.columns[x]}${found.rows.length > 60 ? ", the first 60" : ""}`), categories(rows.map((row) => String(row[x])), rows.map((row) => Number(row[plan.numbers[0]]))));
}

// Why nothing more has come out of a dataset, in words.
import { dataset, h } from "./dom.js";
import { clock, duration, number, time, NOTHING } from "./format.js";
import { table } from "./table.js";

function sentences(found) {
  const said = [];
  const complete = found.complete_to ? `It is complete to ${clock(found.complete_to)}` : "It is not known how far it is complete";
  said.push(`${complete}, with ${number(found.rows)} rows in all.`);
  if (!found.driver) said.push("No driver runs, so nothing more comes until one is started: `millstream run`.");
  if (found.held_by && found.sources.length > 1) said.push(`${found.held_by} holds it back: of all sources it is complete to the earliest moment.`);
  for (const closing of found.closing) {
    const what = closing.kind === "window" ? `The next window, which ends at ${clock(closing.ends)},` : `What waits until ${clock(closing.ends)}`;
    said.push(`${what} is final once ${found.held_by} has a row of ${clock(closing.needs)} or later${closing.by_rows_at ? `, which is expected at ${clock(closing.by_rows_at)}` : ""}${closing.by_clock_at ? `, or at ${clock(closing.by_clock_at)} without one` : ""}.`);
  }
  if (found.advised_idle) said.push(`${found.held_by} is quiet. With idle="${found.advised_idle}" the clock would move its watermark.`);
  if (found.timeless.length) said.push(`${found.timeless.join(", ")} ${found.timeless.length === 1 ? "has" : "have"} no event time and holds nothing back.`);
  return said;
}

// The same on a line of time: how far each source has come, what is complete, and what is next.
function onTheLine(found) {
  const at = (text) => (text ? new Date(text).getTime() : null);
  const closing = found.closing[0], now = at(found.now);
  const known = [at(found.complete_to), ...found.sources.flatMap((each) => [at(each.complete_to), at(each.greatest_event_time)]), at(closing?.ends), at(closing?.needs)].filter((time) => time !== null);
  if (known.length < 2) return null;
  const first = Math.min(...known), last = Math.max(...known), wide = Math.max(last - first, 1000);
  // A clock that is far ahead, as of a driver that died, would leave no room for the rest.
  const hasNow = now - last < 2 * wide, from = first - 0.15 * wide, to = (hasNow ? Math.max(now, last) : last) + 0.08 * wide;
  const x = (time) => (100 * (Math.min(Math.max(time, from), to) - from)) / (to - from);
  const part = (kind, begin, end, title) => {
    const drawn = h("i", { class: kind, title });
    drawn.style.left = `${x(begin)}%`;
    if (end !== null) drawn.style.width = `${Math.max(x(end) - x(begin), 0)}%`;
    return drawn;
  };
  const line = (name, complete, newest, next, what) => [h("span", { class: "of" }, name), h("div", { class: "track" },
    complete === null ? null : part("done", from, complete, `complete to ${clock(new Date(complete))}`),
    complete === null || newest === null || newest < complete ? null : part("open", complete, newest, `rows have come up to ${clock(new Date(newest))}`),
    next === null ? null : part("next", next, null, `${what} ${clock(new Date(next))}`), hasNow ? part("now", now, null, `now, ${clock(found.now)}`) : null)];
  const lines = [...found.sources.map((each) => line(each.name, at(each.complete_to), at(each.greatest_event_time), each.name === found.held_by ? at(closing?.needs) : null, "waits for a row of")),
    found.sources.some((each) => each.name === found.name) ? null : line(found.name, at(found.complete_to), null, at(closing?.ends), closing?.kind === "window" ? "the next window ends at" : "the next wait ends at")];
  const key = (kind, text) => h("span", { class: "key" }, h("i", { class: kind }), text);
  return h("figure", { class: "timeline", role: "group", "aria-label": "On a line of time, as in the words above" }, lines,
    h("span", {}), h("div", { class: "axis", "aria-hidden": "true" }, h("span", {}, clock(new Date(from))), h("span", {}, clock(new Date(to)))),
    h("figcaption", {}, key("done", "complete"), key("open", "rows have come, earlier ones may follow"), closing ? key("next", closing.kind === "window" ? "the next window, and the row that it needs" : "the next wait, and the row that it needs") : null, hasNow ? key("now", "now") : h("span", {}, `now is ${duration((now - last) / 1000)} later`)));
}

export function whyInWords(found) {
  const columns = [
    { title: "source", cell: (each) => dataset(each.name) }, { title: "state", left: true, cell: (each) => each.state }, { title: "watermark", left: true, cell: (each) => each.watermark ?? NOTHING },
    { title: "complete to", cell: (each) => time(each.complete_to) }, { title: "newest event", cell: (each) => time(each.greatest_event_time) }, { title: "last rows", cell: (each) => time(each.last_rows_at) },
    { title: "speed", cell: (each) => (each.speed === null ? NOTHING : h("span", { title: `${each.speed} seconds of event time in a second` }, `${duration(each.speed)} per second`)) },
  ];
  return [h("div", { class: "bar-of why" }, h("div", {}, sentences(found).map((text) => h("p", {}, text)))), onTheLine(found), table("Sources it is made from", columns, found.sources)];
}

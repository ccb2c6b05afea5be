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

export function whyInWords(found) {
  const columns = [
    { title: "source", cell: (each) => dataset(each.name) }, { title: "state", left: true, cell: (each) => each.state }, { title: "watermark", left: true, cell: (each) => each.watermark ?? NOTHING },
    { title: "complete to", cell: (each) => time(each.complete_to) }, { title: "newest event", cell: (each) => time(each.greatest_event_time) }, { title: "last rows", cell: (each) => time(each.last_rows_at) },
    { title: "speed", cell: (each) => (each.speed === null ? NOTHING : h("span", { title: `${each.speed} seconds of event time in a second` }, `${duration(each.speed)} per second`)) },
  ];
  return [h("div", { class: "bar-of why" }, h("div", {}, sentences(found).map((text) => h("p", {}, text)))), table("Sources it is made from", columns, found.sources)];
}

// The graph of datasets, laid out by dagre and drawn as SVG; every box is a link.
import dagre from "/static/vendor/dagre.js";
import { h, svg } from "./dom.js";
import { clock, rate, NOTHING } from "./format.js";
import { subtitle } from "./app_view.js";

const WIDTH = 184, HEIGHT = 58, LEAST = 0.74;
let kept = { mark: "", layout: null };

function layout(all) {
  const mark = JSON.stringify(all.map((each) => [each.name, each.reads]));
  if (kept.mark === mark) return kept.layout;
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: "LR", nodesep: 20, ranksep: 62, marginx: 8, marginy: 10 });
  graph.setDefaultEdgeLabel(() => ({}));
  const names = new Set(all.map((each) => each.name));
  for (const each of all) graph.setNode(each.name, { width: WIDTH, height: HEIGHT });
  for (const each of all) for (const read of new Set(each.reads)) if (names.has(read)) graph.setEdge(read, each.name);
  dagre.layout(graph);
  kept = { mark, layout: graph };
  return graph;
}

const fit = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

export function draw(all) {
  const graph = layout(all);
  const { width = 0, height = 0 } = graph.graph();
  const byName = new Map(all.map((each) => [each.name, each]));
  const edges = graph.edges().map(({ v, w }) => edge(between(graph, v, w), byName.get(w)));
  const nodes = all.map((each) => node(graph.node(each.name), each));
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Graph of datasets, from sources on the left to answers on the right" }, edges, nodes);
  drawing.style.width = "100%";
  drawing.style.maxWidth = `${width}px`;
  drawing.style.minWidth = `${width * LEAST}px`;
  const place = h("div", { class: "graph", tabindex: "0", role: "region", "aria-label": "Graph" }, drawing);
  if (all.length) requestAnimationFrame(() => showFirst(place, graph.node(all[0].name), width));
  return place;
}

// A graph that is larger than its place begins with its first source.
function showFirst(place, first, width) {
  const scale = place.firstChild.clientWidth / width;
  place.scrollTop = first.y * scale - place.clientHeight / 2;
}

// From the right side of one box to the left side of the other, by way of what dagre kept free.
function between(graph, from, to) {
  const one = graph.node(from), other = graph.node(to);
  return [{ x: one.x + WIDTH / 2, y: one.y }, ...graph.edge(from, to).points.slice(1, -1), { x: other.x - WIDTH / 2, y: other.y }];
}

function edge(points, to) {
  const first = points[0], last = points[points.length - 1], middle = (first.x + last.x) / 2;
  const path = points.length <= 3
    ? `M${first.x} ${first.y}C${middle} ${first.y} ${middle} ${last.y} ${last.x} ${last.y}`
    : `M${first.x} ${first.y}${points.slice(1, -1).map((point, index) => `Q${point.x} ${point.y} ${(point.x + points[index + 2].x) / 2} ${(point.y + points[index + 2].y) / 2}`).join("")}L${last.x} ${last.y}`;
  const speed = to.in;
  const wide = speed ? Math.min(1.4 + Math.log10(1 + speed) * 0.7, 5) : 1.4;
  return svg("g", { class: "edge" },
    svg("path", { d: path, "stroke-width": wide.toFixed(1) }),
    speed ? svg("text", { x: middle, y: (first.y + last.y) / 2 - 6, "text-anchor": "middle" }, rate(speed)) : null);
}

const LETTER = { ok: "●", warn: "▲", bad: "■", idle: "○" };

function node(place, each) {
  const x = place.x - WIDTH / 2, y = place.y - HEIGHT / 2;
  const label = `${each.name}: ${subtitle(each)}, ${each.word}${each.completeTo ? `, complete to ${clock(each.completeTo)}` : ""}`;
  const right = each.completeTo ? clock(each.completeTo) : NOTHING;
  const shown = right.length > 8 ? right.slice(0, 10) : right;
  return svg("a", { href: `/dataset/${encodeURIComponent(each.name)}`, "data-key": `node-${each.name}`, "data-name": each.name, "data-level": each.level, class: `node ${each.level}` },
    svg("title", {}, each.why ? `${label}: ${each.why}` : label),
    svg("rect", { class: "box", x, y, width: WIDTH, height: HEIGHT, rx: 9 }),
    svg("rect", { class: "mark", x, y: y + 11, width: 3.5, height: HEIGHT - 22, rx: 2 }),
    svg("text", { class: "name", x: x + 14, y: y + 24 }, fit(each.name, 15)),
    svg("text", { class: "time", x: x + WIDTH - 11, y: y + 24, "text-anchor": "end" }, shown),
    svg("text", { class: "kind", x: x + 14, y: y + 43 }, fit(subtitle(each), 15)),
    svg("text", { class: "word", x: x + WIDTH - 11, y: y + 43, "text-anchor": "end" }, `${LETTER[each.level]} ${each.word.toLowerCase()}`));
}

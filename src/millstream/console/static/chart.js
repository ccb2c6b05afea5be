// Charts over time, by uPlot: one cursor for all of a page, which shows the values under it.
import { h } from "./dom.js";
import { clock, number, short } from "./format.js";

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const COLORS = ["--accent", "--warnline", "--okline", "--badline", "--idle"];
const ALONE_S = 30;
const COLOR_OF = { late: "--warnline", future: "--warnline", malformed: "--badline", rejected: "--idle", quarantined: "--badline", ok: "--accent", written: "--accent" };

// A set of charts with one cursor; dragging over any of them chooses a range of time.
export function charts(key, choose) {
  const plots = [];
  const sync = window.uPlot.sync(key);
  const chart = (name, series, times, { unit = short, bars = false, note = "", marks = [] } = {}) => {
    const color = (each, index) => style(each.color ?? COLOR_OF[each.name] ?? COLORS[index % COLORS.length]);
    const values = series.map(() => h("b")), moment = h("span", { class: "moment" });
    const legend = series.map((each, index) => {
      const mark = h("i");
      mark.style.background = color(each, index);
      return h("span", { class: "key" }, mark, each.name, values[index]);
    });
    // What is under the cursor, exactly; without one, the last values.
    const say = (index) => {
      const at = index ?? times.length - 1;
      moment.textContent = index === null || index === undefined ? "" : clock(new Date(times[at] * 1000));
      series.forEach((each, of) => {
        const value = each.values[at];
        values[of].textContent = value === null || value === undefined ? "" : unit(value);
        values[of].title = value === null || value === undefined ? "" : number(value, 6);
      });
    };
    say(null);
    const place = h("div", { class: "plot" });
    const last = series.map((each) => `${each.name} ${unit(each.values.at(-1) ?? 0)}`).join(", ");
    place.setAttribute("role", "img");
    place.setAttribute("aria-label", `${name}: last ${last}`);
    const box = h("div", { class: "chart" }, h("h3", {}, name, note ? h("span", {}, note) : null, moment), h("div", { class: "keys" }, legend), place);
    const grid = { stroke: style("--line"), width: 1 }, ink = style("--ink3");
    const options = {
      width: 320, height: 150, legend: { show: false }, cursor: { sync: { key: sync.key }, drag: { x: true, y: false, setScale: false }, points: { size: 6 } },
      scales: { x: { time: true, range: (_, first, last) => (last > first ? [first, last] : [last - ALONE_S, last + ALONE_S]) }, y: { range: (_, low, high) => [0, high > 0 ? high * 1.08 : 1] } },
      axes: [{ stroke: ink, grid: { show: false }, ticks: { show: false }, font: "11px system-ui", size: 30, values: (_, ticks) => ticks.map((tick) => new Date(tick * 1000).toLocaleTimeString("en-GB", times.at(-1) - times[0] < 1800 ? {} : { hour: "2-digit", minute: "2-digit" })), space: 90 },
        { stroke: ink, grid, ticks: { show: false }, font: "11px system-ui", size: 58, space: 32, values: (_, ticks) => ticks.map((tick) => unit(tick)) }],
      series: [{}, ...series.map((each, index) => ({ label: each.name, stroke: color(each, index), width: 1.6, points: { show: times.length < 3 }, spanGaps: true,
        ...(bars ? { paths: window.uPlot.paths.bars({ size: [0.7, 40] }), fill: color(each, index) } : { fill: index === 0 ? `${color(each, index)}1f` : undefined }) }))],
      hooks: { draw: marks.length ? [(plot) => mark(plot, marks)] : [], setCursor: [(plot) => say(plot.cursor.idx)], setSelect: [(plot) => plot.select.width > 4 && choose(new Date(plot.posToVal(plot.select.left, "x") * 1000), new Date(plot.posToVal(plot.select.left + plot.select.width, "x") * 1000))] },
    };
    const plot = new window.uPlot(options, [times, ...series.map((each) => each.values)], place);
    plots.push([plot, place]);
    return box;
  };
  const fit = () => plots.forEach(([plot, place]) => place.clientWidth && plot.setSize({ width: place.clientWidth, height: 150 }));
  const watch = new ResizeObserver(fit);
  return { chart, fit, watch: (node) => watch.observe(node), close: () => { watch.disconnect(); plots.forEach(([plot]) => plot.destroy()); } };
}

// Vertical lines at moments.
function mark({ ctx, bbox, valToPos, scales }, times) {
  ctx.save();
  ctx.strokeStyle = style("--badline");
  ctx.lineWidth = 1.5;
  ctx.setLineDash([4, 3]);
  for (const at of times.filter((each) => each >= scales.x.min && each <= scales.x.max)) {
    const x = valToPos(at, "x", true);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

// Bars of categories: a name, a bar and a value, readable as text too.
export function categories(names, values) {
  const top = Math.max(...values.map((value) => value ?? 0), 0) || 1;
  return h("div", { class: "hbars" }, names.map((name, index) => {
    const part = h("i", { class: "accent" });
    part.style.width = `${(100 * Math.max(values[index] ?? 0, 0)) / top}%`;
    return [h("span", {}, name), h("span", { class: "hbar", "aria-hidden": "true" }, part), h("span", { title: String(values[index]) }, short(values[index] ?? 0))];
  }));
}

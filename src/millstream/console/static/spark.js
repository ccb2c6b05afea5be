// Small drawings beside numbers: a line of the last minutes, a bar of parts.
import { h, svg } from "./dom.js";

export function spark(values, { width = 84, height = 20, level = "accent", fill = false } = {}) {
  const known = values.filter((value) => value !== null && value !== undefined);
  if (known.length < 2) return svg("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  const top = Math.max(...known) * 1.08 || 1, step = width / (values.length - 1);
  const points = values.map((value, index) => [index * step, height - 2 - ((value ?? 0) / top) * (height - 4)]);
  const line = points.map(([x, y], index) => `${index ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
  return svg("svg", { class: `spark ${level}`, viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    fill ? svg("path", { class: "area", d: `${line}L${width} ${height}L0 ${height}Z` }) : null,
    svg("path", { class: "line", d: line, "vector-effect": "non-scaling-stroke" }));
}

const LEVELS = { ok: "accent", written: "accent", late: "warn", future: "warn", malformed: "bad", rejected: "idle", quarantined: "bad", violations: "bad", dropped: "idle" };

// Rows by verdict, each part as wide as its share.
export function parts(counts) {
  const entries = Object.entries(counts).filter(([, count]) => count > 0);
  const total = entries.reduce((sum, [, count]) => sum + count, 0);
  const text = entries.map(([name, count]) => `${count} ${name}`).join(", ");
  return h("span", { class: "parts", title: text, "aria-hidden": "true" }, entries.map(([name, count]) => {
    const part = h("i", { class: LEVELS[name] ?? "warn" });
    part.style.width = `${(100 * count) / total}%`;
    return part;
  }));
}

export function bar(share) {
  const part = h("i", { class: share >= 1 ? "warn" : "accent" });
  part.style.width = `${Math.min(share, 1) * 100}%`;
  return h("span", { class: "bar", "aria-hidden": "true" }, part);
}

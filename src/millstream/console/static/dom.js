// Elements. What comes from data becomes text only: no HTML is ever parsed.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(node.style, value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
export const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

// Draws a part of a page again if what it shows has changed; keeps the focus where it was.
const drawn = new WeakMap();
export function update(node, data, draw) {
  const mark = JSON.stringify(data) ?? "";
  if (drawn.get(node) === mark) return false;
  drawn.set(node, mark);
  const active = node.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  node.replaceChildren(...[draw(data)].flat(Infinity).filter((child) => child));
  if (active) node.querySelector(`[data-key="${CSS.escape(active)}"]`)?.focus();
  return true;
}

export const link = (href, attributes, ...children) => h("a", { href, "data-key": href, ...attributes }, ...children);
export const dataset = (name, ...children) => link(`/dataset/${encodeURIComponent(name)}`, {}, ...(children.length ? children : [name]));

export function card(title, note, ...children) {
  const head = h("h2", {}, title, note ? h("span", {}, note) : null);
  return h("section", { class: "card" }, head, ...children);
}

export function tabs(label, names, current, choose) {
  const step = (event) => {
    const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!move) return;
    const all = [...event.currentTarget.querySelectorAll("[role=tab]")];
    const next = all[(all.indexOf(document.activeElement) + move + all.length) % all.length];
    next.focus();
    next.click();
  };
  return h("div", { class: "tabs", role: "tablist", "aria-label": label, onkeydown: step }, names.map(([key, text]) =>
    h("button", {
      role: "tab", type: "button", id: `tab-${key}`, "aria-controls": "panel", "data-key": `tab-${key}`,
      "aria-selected": key === current ? "true" : "false", tabindex: key === current ? 0 : -1, onclick: () => choose(key),
    }, text)));
}

export const empty = (text) => h("p", { class: "empty" }, text);

export function problem(fault) {
  return h("div", { class: "problem", role: "alert" },
    h("p", {}, h("b", {}, fault.what)),
    fault.file ? h("p", { class: "quiet" }, "at ", h("code", {}, `${fault.file}:${fault.line}`)) : null,
    h("p", {}, h("b", {}, "Fix: "), fault.fix),
    h("p", { class: "quiet" }, h("code", {}, fault.code)));
}

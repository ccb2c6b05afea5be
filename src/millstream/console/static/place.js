// The address: the page, and what of it is shown; it can be copied and sent.

export const RANGES = [["5m", "Last 5 min", 300], ["15m", "Last 15 min", 900], ["1h", "Last hour", 3600], ["6h", "Last 6 h", 21600], ["1d", "Last day", 86400], ["7d", "Last 7 days", 604800]];
const POINTS = 300;

export function current() {
  const [, first = "", second] = location.pathname.split("/");
  return { page: first || "overview", name: second ? decodeURIComponent(second) : null, parameters: new URLSearchParams(location.search) };
}

export function address(changes, path = location.pathname) {
  const parameters = new URLSearchParams(path === location.pathname ? location.search : keptAcross());
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === "") parameters.delete(name);
    else parameters.set(name, value);
  }
  const text = parameters.toString();
  return path + (text ? `?${text}` : "");
}

// The range of time stays when another page is opened.
export function keptAcross() {
  const found = new URLSearchParams(location.search), kept = new URLSearchParams();
  for (const name of ["range", "from", "to"]) if (found.has(name)) kept.set(name, found.get(name));
  return kept;
}

export function range() {
  const parameters = new URLSearchParams(location.search);
  const from = Date.parse(parameters.get("from") ?? ""), to = Date.parse(parameters.get("to") ?? "");
  if (from && to && from < to) return { key: null, since: new Date(from), until: new Date(to), text: "A range of its own", step: Math.max((to - from) / POINTS, 1000) };
  const [key, text, seconds] = RANGES.find(([name]) => name === parameters.get("range")) ?? RANGES[1];
  // Pages that are open at once ask for the same range, and get the same answer.
  const step = Math.max((seconds * 1000) / POINTS, 1000), until = Math.ceil(Date.now() / step) * step;
  return { key, text, step, since: new Date(until - seconds * 1000), until: new Date(until) };
}

export function go(href, { replace = false } = {}) {
  history[replace ? "replaceState" : "pushState"](null, "", href);
  dispatchEvent(new Event("place"));
}

// Remembers a choice in the address without drawing the page again.
export const note = (changes) => history.replaceState(null, "", address(changes));

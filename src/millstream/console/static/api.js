// Requests to the console, which is this origin and no other.

export class Refused extends Error {
  constructor(fault, status) {
    super(fault.what);
    this.fault = fault;
    this.status = status;
  }
}

const GONE = { code: "CONSOLE_GONE", what: "the console does not answer", fix: "start it again: `millstream console app.py`" };

async function ask(path, options) {
  let answer;
  try {
    answer = await fetch(path, { credentials: "same-origin", cache: "no-store", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(GONE, 0);
  }
  if (answer.ok) return answer;
  const fault = await answer.json().catch(() => ({ code: `HTTP_${answer.status}`, what: `the console answered ${answer.status}`, fix: "load the page again" }));
  throw new Refused(fault, answer.status);
}

export async function get(path, parameters = {}, options = {}) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined && value !== ""));
  const text = query.toString();
  return (await ask(`/api/${path}${text ? `?${text}` : ""}`, options)).json();
}

export const send = (path, body, options = {}) =>
  ask(`/api/${path}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), ...options });

export const post = async (path, body, options) => (await send(path, body, options)).json();

export async function signIn(token) {
  return (await ask("/api/session", { method: "POST", headers: { Authorization: `Bearer ${token}` } })).json();
}

export const of = (name, more = "") => `dataset/${encodeURIComponent(name)}${more}`;

// Calls back when something has changed in the home, and when the connection comes or goes.
export function listen(changed, connected) {
  const source = new EventSource("/api/events");
  source.onopen = () => connected(true);
  source.onerror = () => connected(false);
  source.onmessage = () => changed();
  return source;
}

// Numbers, sizes and times as people read them; the exact value is the title of the element.
import { h } from "./dom.js";

const THIN = "\u202f";
export const NOTHING = "–";

export function number(value, digits = 0) {
  if (value === null || value === undefined) return NOTHING;
  const text = Number(value).toLocaleString("en", { maximumFractionDigits: digits });
  return text.replaceAll(",", THIN);
}

export function rate(value) {
  if (value === null || value === undefined) return NOTHING;
  return number(value, value < 10 ? 1 : 0);
}

export function short(value) {
  const size = Math.abs(value);
  if (size >= 1e9) return `${number(value / 1e9, 1)} G`;
  if (size >= 1e6) return `${number(value / 1e6, 1)} M`;
  if (size >= 1e4) return `${number(value / 1e3, 0)} k`;
  return number(value, size < 10 ? 2 : 0);
}

export function bytes(value) {
  if (value === null || value === undefined) return NOTHING;
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (value < 1000) return `${number(value, value < 10 && unit !== "B" ? 1 : 0)} ${unit}`;
    value /= 1000;
  }
  return `${number(value, 1)} TB`;
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return NOTHING;
  if (seconds < 0) return `-${duration(-seconds)}`;
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${number(seconds, seconds < 10 ? 1 : 0)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} days`;
}

export function clock(text) {
  if (!text) return NOTHING;
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) return String(text);
  const time = at.toLocaleTimeString("en-GB");
  return at.toDateString() === new Date().toDateString() ? time : `${at.toLocaleDateString("sv")} ${time}`;
}

export const time = (text) => (text ? h("time", { datetime: text, title: text }, clock(text)) : NOTHING);
export const ago = (text) => (text ? h("time", { datetime: text, title: text }, duration((Date.now() - new Date(text)) / 1000)) : NOTHING);
export const exact = (shown, value) => h("span", { title: value === null || value === undefined ? null : String(value) }, shown);

export const plural = (count, word) => `${number(count)} ${word}${count === 1 ? "" : "s"}`;

// A value of a stored row.
export function cell(value, kind) {
  if (value === null || value === undefined) return h("span", { class: "null" }, "null");
  if (kind === "bytes") return raw(value);
  if (kind === "time") return h("time", { datetime: value, title: value }, value.replace("T", " ").replace(/(\+00:00|Z)$/, "").replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, ""));
  if (kind === "number") return exact(typeof value === "number" ? number(value, 6) : value, value);
  if (value && typeof value === "object" && "start" in value && "end" in value) return h("span", { title: JSON.stringify(value) }, cell(value.start, "time"), " – ", cell(value.end, "time"));
  const text = typeof value === "object" ? JSON.stringify(value) : String(value);
  return h("span", { class: "value", title: text.length > 40 ? text : null }, text);
}

// The bytes that came: as text where they are text, with every other byte in hexadecimal.
export function raw(base64) {
  const found = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  let text = "";
  for (const byte of found.slice(0, 600)) text += byte >= 32 && byte < 127 ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, "0")}`;
  const hex = Array.from(found.slice(0, 600), (byte) => byte.toString(16).padStart(2, "0")).join(" ");
  return h("code", { class: "raw", title: `${found.length} bytes: ${hex}` }, text, found.length > 600 ? ` … ${found.length} bytes` : "");
}

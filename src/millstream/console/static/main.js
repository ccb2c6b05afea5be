// The shell: signs in, keeps the head, opens the page of the address and keeps it live.
import { answerOf, datasetsOf } from "./app_view.js";
import { get, listen, signIn, Refused } from "./api.js";
import { h, problem, update } from "./dom.js";
import { duration, time } from "./format.js";
import { badge } from "./health.js";
import * as place from "./place.js";
import { search } from "./search.js";
import * as alerts from "./page_alerts.js";
import * as datasetPage from "./page_dataset.js";
import * as ledger from "./page_ledger.js";
import * as models from "./page_models.js";
import * as overview from "./page_overview.js";
import * as quality from "./page_quality.js";
import * as runs from "./page_runs.js";
import * as served from "./page_served.js";
import * as settings from "./page_settings.js";
import * as sql from "./page_sql.js";
import * as state from "./page_state.js";
import * as storage from "./page_storage.js";

const PAGES = [["overview", "Overview", overview], ["quality", "Quality", quality], ["ledger", "Ledger", ledger], ["alerts", "Alerts", alerts], ["models", "Models", models], ["served", "Served", served], ["state", "State", state], ["storage", "Storage", storage], ["sql", "SQL", sql], ["runs", "Runs", runs], ["settings", "Settings", settings]];
const MODULES = { ...Object.fromEntries(PAGES.map(([key, , module]) => [key, module])), dataset: datasetPage };
const path = (page) => (page === "overview" ? "/" : `/${page}`);

const head = document.getElementById("head"), main = document.getElementById("main"), foot = document.getElementById("foot");
const shell = { app: null, page: null, paused: false, missed: false, live: false, opened: 0 };

function logo() {
  const image = h("img", { src: "/static/icon.svg", alt: "", width: 18, height: 18 });
  return h("a", { href: "/", class: "logo" }, image, "Millstream");
}

function drawHead() {
  const here = place.current(), chosen = place.range();
  const kept = place.keptAcross().toString();
  const links = PAGES.map(([key, text]) => h("a", { href: path(key) + (kept ? `?${kept}` : ""), "aria-current": here.page === key ? "page" : null, "data-key": `nav-${key}` }, text));
  const ranges = h("select", { "aria-label": "Range of time", "data-key": "range", onchange: (event) => place.go(place.address({ range: event.target.value, from: null, to: null }), { replace: true }) },
    chosen.key ? null : h("option", { selected: true, value: "" }, chosen.text), place.RANGES.map(([key, text]) => h("option", { value: key, selected: key === chosen.key }, text)));
  const live = h("button", { type: "button", class: "ctl", "data-key": "live", "aria-pressed": shell.paused ? "true" : "false", title: shell.paused ? "Show what is new again" : "Keep the page as it is", onclick: () => pause(!shell.paused) },
    shell.paused ? "▶ Paused" : shell.live ? "❚❚ Live" : "○ Offline");
  const dark = document.documentElement.dataset.theme === "dark";
  const theme = h("button", { type: "button", class: "ctl icon", "data-key": "theme", "aria-label": dark ? "Light theme" : "Dark theme", title: dark ? "Light theme" : "Dark theme", onclick: () => turn(dark ? "light" : "dark") }, dark ? "☀" : "☾");
  const find = h("button", { type: "button", class: "ctl", "data-key": "find", onclick: openSearch, "aria-keyshortcuts": "/ Control+K" }, "Find ", h("kbd", { "aria-hidden": "true" }, "/"));
  return [logo(), h("nav", { "aria-label": "Pages" }, links), h("span", { class: "sp" }), h("div", { class: "controls" }, find, ranges, live, theme)];
}

function redrawHead() {
  if (!update(head, [place.current().page, location.search, shell.paused, shell.live, document.documentElement.dataset.theme], drawHead)) return;
  // On a narrow screen the links scroll: the page that is open is among those to be seen.
  const links = head.querySelector("nav"), here = links.querySelector("[aria-current]");
  if (here) links.scrollLeft = here.offsetLeft - links.offsetLeft - (links.clientWidth - here.offsetWidth) / 2;
}

function turn(theme) {
  document.documentElement.dataset.theme = theme;
  localStorage.setItem("millstream-theme", theme);
  redrawHead();
  show({ again: true });
}

function pause(paused) {
  shell.paused = paused;
  redrawHead();
  if (!paused && shell.missed) refresh();
}

const openSearch = () => search(shell.app?.datasets ?? [], PAGES.map(([key, text]) => [path(key), text]));

function titleLine(app) {
  const { driver } = app.overview.status;
  const running = driver ? ["driver ", h("span", { title: `on ${driver.host}` }, `pid ${driver.pid}`), " since ", time(driver.since), " (", duration((Date.now() - new Date(driver.since)) / 1000), ")"] : [];
  return [h("h1", {}, app.overview.status.app), badge(app.level, app.sentence), h("span", { class: "sub" }, running)];
}

async function read() {
  const found = await get("overview");
  const datasets = datasetsOf(found);
  const [level, sentence] = answerOf(found, datasets);
  return { overview: found, datasets, level, sentence, events: found.events, role: found.role };
}

function drawFoot(app) {
  return [h("span", {}, `Millstream ${app.overview.version}`), h("span", {}, "home ", h("code", {}, app.overview.status.home)),
    h("span", {}, app.role === "look" ? "This link is for looking only." : "The console reads the home only; it works when the driver is down.")];
}

let refreshing = null;
async function refresh({ first = false } = {}) {
  if (shell.paused || (document.hidden && !first)) {
    shell.missed = true;
    return;
  }
  shell.missed = false;
  if (refreshing) {
    refreshing.again = true;
    return;
  }
  refreshing = { again: false };
  try {
    shell.app = await read();
    update(foot, [shell.app.overview.version, shell.app.overview.status.home, shell.app.role], () => drawFoot(shell.app));
    await draw();
  } catch (error) {
    failed(error);
  }
  const { again } = refreshing;
  refreshing = null;
  if (again) refresh();
}

async function draw() {
  const { app, page } = shell;
  if (!page) return;
  document.title = `${page.heading} · ${app.overview.status.app} · Millstream`;
  update(page.title, [app.overview.status.app, app.level, app.sentence, app.overview.status.driver], () => titleLine(app));
  await page.shown.refresh(app);
  // Another page may have been opened meanwhile.
  if (shell.page === page) main.dataset.ready = "true";
}

function failed(error) {
  if (!(error instanceof Refused)) throw error;
  if (error.status === 401) {
    main.replaceChildren(h("div", { class: "title" }, h("h1", {}, "Millstream")), h("section", { class: "card pad" }, h("h2", {}, "This page needs a link"), h("p", {}, "Open the link that ", h("code", {}, "millstream run"), " or ", h("code", {}, "millstream console"), " prints. It signs this browser in; after that, the address works without it.")));
    shell.page = null;
    return;
  }
  shell.page?.trouble.replaceChildren(problem(error.fault));
}

async function show({ again = false } = {}) {
  const here = place.current(), module = MODULES[here.page] ?? overview, number = ++shell.opened;
  shell.page?.shown.close?.();
  redrawHead();
  const title = h("div", { class: "title" }), body = h("div", { class: "body" }), trouble = h("div", { "aria-live": "polite" });
  delete main.dataset.ready;
  main.replaceChildren(title, trouble, body);
  shell.page = { title, trouble, heading: module.title(here), shown: module.open(body, here) };
  if (!again) scrollTo(0, 0);
  if (shell.app) {
    try {
      await draw();
    } catch (error) {
      if (number === shell.opened) failed(error);
    }
  }
}

function followLinks(event) {
  const anchor = event.target.closest?.("a[href]");
  if (!anchor || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const href = anchor.getAttribute("href");
  if (!href.startsWith("/") || anchor.hasAttribute("download") || href.startsWith("/static/")) return;
  event.preventDefault();
  const [to, query = ""] = href.split("?");
  place.go(place.address(Object.fromEntries(new URLSearchParams(query)), to));
  if (place.current().page !== "dataset") main.focus({ preventScroll: true });
}

function keys(event) {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  if ((event.key === "/" && !typing) || (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey))) {
    event.preventDefault();
    openSearch();
  }
}

// The token is in the fragment, which no request contains; it leaves the address at once.
async function enter() {
  const token = location.hash.slice(1);
  if (!token) return;
  history.replaceState(null, "", location.pathname + location.search);
  await signIn(token);
}

async function start() {
  document.addEventListener("click", followLinks);
  document.addEventListener("keydown", keys);
  addEventListener("popstate", () => show());
  addEventListener("place", () => show());
  addEventListener("refresh", () => refresh());
  document.addEventListener("visibilitychange", () => !document.hidden && shell.missed && refresh());
  redrawHead();
  try {
    await enter();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
  }
  await show();
  // The first paint does not wait until somebody looks.
  await refresh({ first: true });
  if (!shell.app) return;
  listen(refresh, (live) => {
    if (live && !shell.live) refresh();
    shell.live = live;
    document.documentElement.dataset.live = live;
    redrawHead();
  });
  setInterval(() => shell.app && !shell.paused && !document.hidden && shell.page?.shown.tick?.(shell.app), 5000);
}

start();

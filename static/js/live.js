// One socket per page. Events say that something changed: fragments are fetched again, meters move without a request.
// Without a socket fragments are fetched every ten seconds; with one, every minute, which heals whatever was lost. Where
// the portal itself hears nothing, the page says since when.
import { every, grow, say, showPlace, tickClocks } from "./page.js";

const SILENT = 10_000;
const HEARD = 60_000;
const LONGEST_PAUSE = 30_000;
const SPREAD = 2_000; // within which pages that all missed something ask again, so that they do not all ask at once
const LOGGED_OUT = 4401;

let socket = null;
let failures = 0;
let deaf = false; // connected to a portal that hears nothing itself
let watched = "";
let soon = 0;
const stale = new Set(); // ids of parts that have to be fetched again

connect();
every(1000, tickClocks);
every(1000, grow);
every(1000, fetchStale);
document.addEventListener("htmx:afterSettle", ({ target }) => {
  if (target.dataset?.says) say(target.dataset.says);
  if (target.id === "menu") showPlace();
  watch();
});
document.addEventListener("htmx:afterSettle", fetchStale);
document.addEventListener("htmx:beforeSwap", leaveInHand);
document.addEventListener("visibilitychange", () => document.hidden || refresh());

function connect() {
  if (!("WebSocket" in window)) return show("lost", "polling");
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  socket = new WebSocket(`${scheme}//${location.host}${document.body.dataset.socket}`);
  socket.addEventListener("open", opened);
  socket.addEventListener("message", (message) => hear(JSON.parse(message.data)));
  socket.addEventListener("close", closed);
}

function opened() {
  failures = 0;
  deaf = false;
  watched = "";
  watch();
}

function closed({ code }) {
  if (code === LOGGED_OUT) {
    location.assign(`${document.body.dataset.login}?next=${encodeURIComponent(location.pathname)}`);
    return;
  }
  show("lost", "reconnecting, polling");
  failures += 1;
  const pause = Math.min(LONGEST_PAUSE, 500 * 2 ** Math.min(failures, 10));
  setTimeout(connect, pause * (0.5 + Math.random() / 2));
}

// Tell the server which topics this page is about, whenever they changed.
function watch() {
  const topics = new Set();
  for (const element of document.querySelectorAll("[data-topics]")) {
    element.dataset.topics.split(" ").filter(Boolean).forEach((topic) => topics.add(topic));
  }
  const wanted = JSON.stringify({ watch: [...topics].slice(0, 50) });
  if (!isOpen() || wanted === watched) return;
  watched = wanted;
  socket.send(wanted);
}

function hear(event) {
  if (event.what === "watching") heard();
  else if (event.what === "meter") move(event);
  else if (event.what === "stale") hearNothing(event);
  else if (event.what === "missed") hearAgain();
  else if (event.what === "lost" || event.what === "pace") refresh();
  else {
    if (event.what === "phase") announce(event);
    refresh(event.what);
  }
}

// From now on events come. What happened between the server's look and now is fetched once.
function heard() {
  if (!deaf) show("live", "live");
  refresh();
}

function hearNothing({ since }) {
  deaf = true;
  show("lost", `stale since ${since.slice(11, 16)}, polling`);
}

function hearAgain() {
  deaf = false;
  show("live", "live");
  setTimeout(refresh, Math.random() * SPREAD);
}

function isOpen() {
  return socket?.readyState === 1;
}

function hears() {
  return isOpen() && !deaf;
}

function announce({ workload, phase }) {
  const named = document.querySelector(`[data-name-of="${workload}"]`);
  if (named) say(`${named.textContent.trim()} is now ${phase}.`);
}

// Fetch fragments again: those that listen to this kind of event, or all. Events that come together are one.
function refresh(what = "") {
  for (const part of document.querySelectorAll("[data-refresh]")) {
    if (!what || part.dataset.refresh.split(" ").includes(what)) stale.add(part.id);
  }
  clearTimeout(soon);
  soon = setTimeout(fetchStale, 60);
}

function fetchStale() {
  const patience = hears() ? HEARD : SILENT;
  for (const part of document.querySelectorAll("[data-refresh]")) {
    part.dataset.fetched ??= Date.now();
    const old = Date.now() - part.dataset.fetched >= patience && !document.hidden;
    if ((stale.has(part.id) || old) && !isBusy(part)) fetchAgain(part);
  }
}

function fetchAgain(part) {
  stale.delete(part.id);
  part.dataset.fetched = Date.now();
  window.htmx?.trigger(part, "refresh");
}

// Nobody's half-written words are swept away, and nothing closes under somebody's hand. What is already being fetched
// is fetched once more afterwards: an event may have come just after the server had looked.
function isBusy(part) {
  return part.classList.contains("htmx-request") || isInHand(part);
}

function isInHand(part) {
  const writing = part.contains(document.activeElement) && document.activeElement.matches("input, textarea, select");
  return writing || document.querySelector("details.drop[open]") || part.querySelector("details[open] form");
}

// An answer that arrives after the hand did is dropped, and asked for again once the hand has gone.
function leaveInHand({ target, detail }) {
  if (target.dataset?.refresh === undefined || !isInHand(target)) return;
  detail.shouldSwap = false;
  stale.add(target.id);
}

function move(reading) {
  for (const element of document.querySelectorAll(`[data-reading][data-of="${reading.workload}"]`)) {
    const detail = { value: reading[element.dataset.reading], known: reading.busy !== null };
    element.dispatchEvent(new CustomEvent("reading", { detail, bubbles: true }));
  }
  document.dispatchEvent(new CustomEvent("meter", { detail: reading }));
}

function show(state, words) {
  for (const element of document.querySelectorAll("[data-socket-state]")) {
    element.dataset.state = state;
    element.querySelector("[data-socket-words]").textContent = words;
  }
}

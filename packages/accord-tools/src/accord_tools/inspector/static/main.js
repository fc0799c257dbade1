// The page: opens a trace, shows one view of it beside the message that is looked at, and follows it while it grows.

import { Commands } from "./commands.js";
import { Compare } from "./compare.js";
import { Conversation } from "./conversation.js";
import { Detail } from "./detail.js";
import { byId, el } from "./dom.js";
import { bytes, clock, plural, whole } from "./format.js";
import { Latency } from "./latency.js";
import { Messages } from "./messages.js";
import { SearchBox } from "./search.js";
import { Send } from "./send.js";
import { Sequence } from "./sequence.js";
import { askTrace, source } from "./source.js";
import { get, look, set, watch } from "./store.js";
import { Strip } from "./strip.js";
import { Timeline } from "./timeline.js";

const TABS = { conversation: ["Conversation", Conversation], timeline: ["Timeline", Timeline], sequence: ["Sequence", Sequence], messages: ["Messages", Messages], compare: ["Compare", Compare], latency: ["Latency", Latency], send: ["Send", Send] };

let view = null;
let following = null;
let growing = false; // whether the trace has grown since it was first read whole

function drawTabs() {
  const { tab, view: rows, query } = get();
  const buttons = Object.entries(TABS).filter(([name]) => name !== "send" || get().agent).map(([name, [title]]) => el("button", { type: "button", role: "tab", id: `tab-${name}`, "aria-selected": String(name === tab), onclick: () => set({ tab: name }) }, title));
  const shows = { runs: "chunks grouped", all: "every message" }[rows] ?? `found: ${query}`;
  byId("tabs").replaceChildren(el("div", { role: "tablist", "aria-label": "Views" }, buttons), el("span", { class: "right" }, el("span", {}, shows), el("button", { type: "button", title: "C", onclick: toggleRuns }, rows === "runs" ? "Every message" : "Group chunks")));
}

function openTab() {
  view?.close();
  byId("main").replaceChildren();
  view = new TABS[get().tab][1](byId("main"));
  drawTabs();
}

function toggleRuns() {
  set({ view: get().view === "runs" ? "all" : "runs" });
}

function drawStatus(problem = null) {
  const { status, traces, trace, summary } = get();
  if (!status) return;
  const share = status.size ? Math.floor((status.read / status.size) * 100) : 100;
  const marked = get().marked;
  const parts = [
    plural(status.count, "message"), plural(status.sessions, "session"), plural(status.turns, "turn"), plural(status.errors, "error or note", "errors and notes"), status.findings > 0 && plural(status.findings, "finding"), status.open > 0 && plural(status.open, "open request"),
    clock(status.end - (summary?.begin ?? 0)), bytes(status.size), share < 100 && `${share} % read`, marked && `marked #${whole(marked.row)}${marked.trace === trace ? "" : ` of ${marked.name}`}`,
  ];
  byId("status").replaceChildren(...parts.filter(Boolean).map((part) => el("span", {}, part)), (problem || status.problem) ? el("span", { class: "problem" }, problem?.message ?? status.problem) : "");
  const found = traces.find((it) => it.id === trace);
  byId("badge").replaceChildren(found?.live ? el("span", { class: "live" }, "● live ") : "", `${found?.peer || summary?.header?.peer || ""}`);
}

/** A page opens at the beginning. Once the trace grows, its newest message is looked at until the reader chooses one. */
function followEnd(before, status) {
  if (before?.read >= before?.size && status.count > before.count) growing = true;
  if (growing && get().following && status.read >= status.size) set({ row: status.count - 1 });
}

async function take(status, problem) {
  if (!status) {
    drawStatus(problem);
    return;
  }
  const before = get().status;
  const isOther = before && before.generation !== status.generation;
  if (!get().summary?.begin || before?.sessions !== status.sessions || isOther) set({ summary: await askTrace(get().trace, "") });
  set({ status, generation: status.generation, ...(isOther ? { row: -1, view: "runs" } : {}) });
  followEnd(before, status);
  drawStatus();
}

async function openTrace(id) {
  following?.abort();
  following = new AbortController();
  const { signal } = following;
  const summary = await askTrace(id, "");
  growing = false;
  document.title = `${summary.name} · Accord inspector`;
  set({ trace: id, summary, status: summary, row: -1, time: undefined, range: null, following: true, generation: summary.generation });
  byId("traces").value = id;
  drawStatus();
  source.live(id, (status, problem) => !signal.aborted && take(status, problem), signal);
}

async function loadTraces() {
  const traces = await source.ask("traces");
  set({ traces });
  byId("traces").replaceChildren(...traces.map((it) => el("option", { value: it.id }, `${it.live ? "● " : ""}${it.name}`)));
  if (get().trace) byId("traces").value = get().trace;
  return traces;
}

function move(by) {
  return view?.move?.(by);
}

function ends(isLast) {
  if (isLast) return look(get().status.count - 1);
  return view?.length === undefined ? look(0) : move(-view.length - 1);
}

function mark() {
  const { trace, row, summary } = get();
  if (row >= 0) set({ marked: { trace, row, name: summary.name } });
}

function toggleTheme() {
  const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  set({ theme });
}

function chooseTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const follow = () => {
    document.documentElement.dataset.theme = dark.matches ? "dark" : "light";
    set({ theme: document.documentElement.dataset.theme });
  };
  dark.addEventListener("change", follow);
  follow();
}

async function start() {
  chooseTheme();
  const [detail, search] = [new Detail(), new SearchBox()];
  new Strip();
  const commands = new Commands([
    { name: "Next", keys: ["j", "ArrowDown"], run: () => move(1) },
    { name: "Previous", keys: ["k", "ArrowUp"], run: () => move(-1) },
    { name: "A page forward", keys: ["PageDown"], run: () => move(view?.page ?? 10) },
    { name: "A page back", keys: ["PageUp"], run: () => move(-(view?.page ?? 10)) },
    { name: "First", keys: ["g", "Home"], run: () => ends(false) },
    { name: "Last", keys: ["G", "End"], run: () => ends(true) },
    { name: "The next message", keys: ["]"], run: () => (view?.turn ? view.turn(1) : look(Math.min(get().row + 1, get().status.count - 1))) },
    { name: "The previous message", keys: ["["], run: () => (view?.turn ? view.turn(-1) : look(Math.max(get().row - 1, 0))) },
    { name: "The answer of this request, or the request of this answer", keys: ["p"], run: () => detail.pair() },
    { name: "Search", keys: ["/", "f"], run: () => search.focus() },
    { name: "Next that was found", keys: ["n"], run: () => move(1) },
    { name: "Previous that was found", keys: ["N"], run: () => move(-1) },
    { name: "Show errors", keys: ["e"], run: () => search.search("status:error") },
    { name: "Show what the checks found", keys: ["h"], run: () => search.search("has:finding") },
    { name: "Show permissions", keys: ["a"], run: () => search.search("method:request_permission") },
    { name: "Every message, or chunks grouped", keys: ["c"], run: toggleRuns },
    { name: "Conversation", keys: ["1"], run: () => set({ tab: "conversation" }) },
    { name: "Timeline", keys: ["2", "t"], run: () => set({ tab: "timeline" }) },
    { name: "Sequence", keys: ["3"], run: () => set({ tab: "sequence" }) },
    { name: "Messages", keys: ["4"], run: () => set({ tab: "messages" }) },
    { name: "Compare with another trace", keys: ["5"], run: () => set({ tab: "compare" }) },
    { name: "Latency", keys: ["6", "l"], run: () => set({ tab: "latency" }) },
    { name: "Send a message to the agent (accord inspect --send)", keys: ["7", "s"], run: () => get().agent && set({ tab: "send" }) },
    { name: "Mark the message, to compare another one with it", keys: ["m"], run: mark },
    { name: "Compare the message with the marked one", keys: ["d"], run: () => set({ tab: "compare" }) },
    { name: "The message rendered", keys: ["r"], run: () => detail.show("rendered") },
    { name: "The message as a tree", keys: ["w"], run: () => detail.show("tree") },
    { name: "The message raw", keys: ["u"], run: () => detail.show("raw") },
    { name: "Copy the message", keys: ["y"], run: () => detail.copy() },
    { name: "Copy a Python program that sends the message", keys: ["Y"], run: () => detail.copyCode(false) },
    { name: "Copy a test that sends the message", keys: ["T"], run: () => detail.copyCode(true) },
    { name: "Show or hide the message", keys: ["x"], run: () => document.body.classList.toggle("no-detail") },
    { name: "The whole time", keys: ["0"], run: () => set({ range: null }) },
    { name: "Light or dark", keys: ["D"], run: toggleTheme },
    { name: "Keys", keys: ["?"], run: () => commands.openHelp() },
  ]);
  byId("theme-button").addEventListener("click", toggleTheme);
  byId("traces").addEventListener("change", (event) => openTrace(event.target.value));
  watch((changed) => {
    if (changed.has("tab")) openTab();
    else if (changed.has("view") || changed.has("query")) drawTabs();
    if (changed.has("marked")) drawStatus();
  });
  const agent = await source.agent().catch(() => null); // without the token, what is asked next says so
  set(agent ? { agent, tab: "send" } : {});
  openTab();
  const traces = await loadTraces();
  if (!traces.length) {
    byId("main").replaceChildren(el("p", { class: "empty" }, "There is no trace yet. Record one: accord run --trace wire.jsonl ..., then accord inspect wire.jsonl"));
    return;
  }
  await openTrace(traces[0].id);
}

start().catch((error) => byId("main").replaceChildren(el("p", { class: "empty" }, error.message)));

// The pane beside the views: one message, rendered, as a tree, and raw.

import { block, blocks, plan, statusBadge, terminal, toolContent, toolTitle } from "./blocks.js";
import { byId, el } from "./dom.js";
import { bytes, clock, duration, turnName, whole } from "./format.js";
import { ANSWER, ERROR, kindWord } from "./kinds.js";
import { asPython, asTest } from "./code.js";
import { badge } from "./messages.js";
import { askTrace } from "./source.js";
import { get, look, set, watch } from "./store.js";
import { tree } from "./tree.js";

const FORMS = { rendered: "Rendered", tree: "Tree", raw: "Raw" };

export class Detail {
  constructor() {
    this.node = byId("detail");
    this.form = "rendered";
    this.request = null;
    const narrow = matchMedia("(max-width: 960px)");
    const fit = () => document.body.classList.toggle("no-detail", narrow.matches); // there it is a line until its reader opens it
    narrow.addEventListener("change", fit);
    fit();
    watch((changed) => {
      if (changed.has("row") || changed.has("trace") || changed.has("generation")) this.load();
      else if (changed.has("status") && get().status.findings !== this.found) this.load();
    });
  }

  async load(whole = false) {
    const { trace, row, status } = get();
    this.request?.abort();
    if (row < 0) this.drawNothing();
    if (!trace || !status?.count || row < 0) return;
    this.request = new AbortController();
    this.found = status.findings;
    try {
      this.message = await askTrace(trace, "frame", { row, whole: whole ? 1 : undefined }, this.request.signal);
      document.body.classList.remove("nothing-chosen");
      this.draw();
      set({ time: this.message.time });
    } catch (error) {
      if (error.name !== "AbortError") this.node.replaceChildren(el("p", { class: "empty" }, error.message));
    }
  }

  drawNothing() {
    this.message = undefined;
    document.body.classList.add("nothing-chosen");
    this.node.replaceChildren(el("div", { class: "empty" },
      el("h2", {}, "No message is chosen"),
      el("p", {}, "Click on a row, on a part of the conversation, or on the time above: the message behind it is shown here, rendered, as a tree and raw."),
      el("p", {}, el("kbd", {}, "j"), " ", el("kbd", {}, "k"), " next and previous, ", el("kbd", {}, "/"), " search, ", el("kbd", {}, "?"), " all keys.")));
  }

  show(form) {
    this.form = form;
    if (this.message) this.draw();
  }

  /** Look at the answer of this request, or at the request of this answer. */
  pair() {
    if (this.message?.pair !== null && this.message) look(this.message.pair);
  }

  async copy() {
    await this.toClipboard(this.message?.raw ?? "", "the message");
  }

  /** Copy code that sends the message, or that of the request which this message answers. */
  async copyCode(isTest) {
    const { trace, summary } = get();
    const ask = (row) => askTrace(trace, "frame", { row, whole: 1 });
    const isAnswer = this.message?.kind === ANSWER || this.message?.kind === ERROR;
    const row = isAnswer ? this.message.pair : this.message?.number;
    const message = row === null || row === undefined ? null : await ask(row);
    const value = message && parsed(message.raw);
    if (!value?.method) return this.say("Only requests, notifications and their answers can be code.");
    const answer = isTest && message.pair !== null ? parsed((await ask(message.pair)).raw) : undefined;
    const command = summary?.header?.command;
    const text = isTest ? asTest(message, value, command, answer) : asPython(message, value, command);
    return this.toClipboard(text, isTest ? "a test" : "a Python program");
  }

  async toClipboard(text, what) {
    try {
      await navigator.clipboard.writeText(text);
      this.say(`Copied ${what}: ${whole(text.length)} characters.`);
    } catch {
      this.say("The browser does not let the page copy.");
    }
  }

  say(text) {
    this.node.querySelector(".said")?.replaceChildren(text);
  }

  draw() {
    const message = this.message;
    const facts = [
      `#${whole(message.number)}`,
      `${clock(message.time)}`,
      `${kindWord(message.kind)} to the ${message.toAgent ? "agent" : "client"}`,
      message.hop,
      bytes(message.size),
      message.latency !== null && `took ${duration(message.latency)}`,
      message.turn > 0 && turnName({ prompt: message.turn }),
      message.session && get().summary?.sessionList?.[message.session - 1]?.name,
    ];
    const forms = Object.entries(FORMS).map(([form, name]) => el("button", { type: "button", "aria-pressed": String(form === this.form), onclick: () => this.show(form) }, name));
    const pair = message.pair !== null && el("button", { type: "button", title: "P", onclick: () => this.pair() }, message.kind === 1 ? "Answer" : "Request");
    this.node.replaceChildren(
      el("div", { class: "detail-head" },
        el("h2", {}, message.what || "message"),
        el("div", { class: "facts" }, facts.filter(Boolean).map((fact) => el("span", {}, fact))),
        el("div", { class: "actions" }, forms, pair, el("button", { type: "button", title: "Copy the message (y)", onclick: () => this.copy() }, "Copy"),
          el("button", { type: "button", title: "Copy a program that sends it (Y)", onclick: () => this.copyCode(false) }, "Python"),
          el("button", { type: "button", title: "Copy a test that sends it (T)", onclick: () => this.copyCode(true) }, "Test"),
          ["Show", "Close"].map((name) => el("button", { type: "button", class: `narrow ${name.toLowerCase()}`, onclick: () => document.body.classList.toggle("no-detail", name === "Close") }, name))),
        el("div", { class: "said", role: "status" }),
      ),
      el("div", { class: "detail-body", tabindex: 0 }, this.findings(message), this.body(message)),
    );
  }

  findings(message) {
    return (message.findings ?? []).map((it) => el("section", { class: "fault" },
      el("div", {}, badge(it.severity), ` ${it.side}: ${it.message}`, it.count > 1 && ` (×${whole(it.count)})`),
      el("div", { class: "category-quiet" }, [it.clause, it.fix].filter(Boolean).join(" — ")),
      it.url && el("a", { href: it.url, rel: "noopener noreferrer", target: "_blank" }, it.id)));
  }

  body(message) {
    const isCut = message.raw.length < message.length;
    const more = isCut && el("p", {}, `The first ${whole(message.raw.length)} of ${whole(message.length)} characters. `, el("button", { type: "button", onclick: () => this.load(true) }, "Load all"));
    const value = isCut ? undefined : parsed(message.raw);
    if (this.form === "raw" || value === undefined) return [more, el("pre", { class: "mono" }, message.raw)];
    if (this.form === "tree") return [more, tree(value, 4)];
    return [more, rendered(message, value)];
  }
}

/** The JSON of a message; undefined if it is none. */
export function parsed(raw) {
  try {
    return JSON.parse(raw);
  } catch {
    return undefined;
  }
}

/** A message as what it means; where there is nothing better, as a tree. */
function rendered(message, value) {
  const params = value?.params ?? {};
  const update = params.update;
  if (update?.sessionUpdate) return renderedUpdate(update);
  if (message.method === "session/prompt" && params.prompt) return blocks(params.prompt);
  if (message.method === "session/request_permission" && Array.isArray(params.options)) {
    return [toolCall(params.toolCall ?? {}), el("p", {}, params.options.map((option) => el("span", { class: "option" }, String(option?.name ?? ""))))];
  }
  if (value?.error) return [el("p", { class: "category-error" }, `${value.error.code ?? ""} ${value.error.message ?? ""}`), value.error.data !== undefined && tree(value.error.data, 2)];
  if (typeof value?.result?.content === "string") return el("pre", { class: "output" }, value.result.content);
  if (typeof value?.result?.output === "string") return terminal("", { output: value.result.output, ...value.result.exitStatus });
  if (typeof params.content === "string") return [el("p", {}, String(params.path ?? "")), el("pre", { class: "output" }, params.content)];
  return tree(value?.params ?? value?.result ?? value, 4);
}

function renderedUpdate(update) {
  if (update.sessionUpdate.startsWith("tool_call")) return toolCall(update);
  if (update.sessionUpdate === "plan") return plan(update.entries);
  if (update.content?.type) return block(update.content);
  if (Array.isArray(update.content)) return blocks(update.content);
  return tree(update, 3);
}

function toolCall(call) {
  return el("div", {},
    el("p", {}, toolTitle(call), " ", call.status && statusBadge(String(call.status))),
    Array.isArray(call.locations) && el("p", {}, call.locations.map((location) => el("code", {}, `${location?.path ?? ""}${location?.line ? `:${location.line}` : ""} `))),
    toolContent(call.content),
    call.rawInput !== undefined && el("details", {}, el("summary", {}, "input"), tree(call.rawInput, 2)),
    call.rawOutput !== undefined && el("details", {}, el("summary", {}, "output"), tree(call.rawOutput, 2)),
  );
}

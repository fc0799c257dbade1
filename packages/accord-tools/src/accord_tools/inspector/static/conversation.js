// The conversation: what one turn of a session amounts to, as of the message that is looked at.

import { blocks, failures, plan, statusBadge, toolContent, toolTitle } from "./blocks.js";
import { el } from "./dom.js";
import { clock, duration, plural, whole } from "./format.js";
import { overview } from "./overview.js";
import { allTurns, askTrace } from "./source.js";
import { get, look, watch } from "./store.js";
import { tree } from "./tree.js";

export class Conversation {
  constructor(main) {
    this.node = el("div", { class: "conversation", tabindex: 0 });
    main.append(this.node);
    this.session = 0;
    this.stop = watch((changed) => {
      if (changed.has("row") || changed.has("trace") || changed.has("generation")) this.load();
      else if (changed.has("status") && (!this.shown || get().row < 0)) this.load();
    });
    this.load();
  }

  close() {
    this.stop();
    this.request?.abort();
  }

  async load() {
    const { trace, row, status } = get();
    this.request?.abort();
    if (!trace || !status?.count) {
      this.node.replaceChildren(el("p", { class: "empty" }, "The trace has no messages yet."));
      return;
    }
    if (row < 0) {
      this.shown = undefined;
      this.drawOverview();
      return;
    }
    this.request = new AbortController();
    try {
      const shown = await askTrace(trace, "conversation", { row, session: this.session }, this.request.signal);
      if (shown.session) this.session = shown.session;
      this.shown = shown;
      this.lastRow = row;
      this.draw();
    } catch (error) {
      if (error.name !== "AbortError") this.node.replaceChildren(el("p", { class: "empty" }, error.message));
    }
  }

  /** Go to the next or previous turn, or message. */
  async move(by) {
    const items = this.shown?.items ?? [];
    const { row, status } = get();
    const rows = items.map((item) => item.rows[1]);
    const next = by > 0 ? rows.find((it) => it > row) : rows.findLast((it) => it < row);
    look(next ?? Math.max(0, Math.min(row + by, status.count - 1)));
  }

  async turn(by) {
    const number = by > 0 ? this.shown?.after : this.shown?.before;
    if (number === null || number === undefined) return;
    const { turns: [found] } = await askTrace(get().trace, "turns", { from: number, n: 1 });
    this.read(found);
  }

  /** Show a whole turn, from its beginning on. */
  read(turn) {
    this.fromTop = true;
    look(turn.last ?? turn.first);
  }

  draw() {
    const { items, leftOut, settings } = this.shown;
    if (!this.shown.session) {
      this.drawOverview();
      return;
    }
    const parts = [this.bar(), this.settings(settings)];
    if (leftOut) parts.push(el("p", { class: "empty" }, `${whole(leftOut)} earlier items of this turn are left out: move to an earlier message to see them.`));
    const { row } = get();
    parts.push(...items.map((item) => this.item(item, row)));
    this.node.replaceChildren(...parts);
    const chosen = this.node.querySelector(".item.chosen");
    if (this.fromTop) this.node.scrollTop = 0;
    else if (chosen) chosen.scrollIntoView({ block: "nearest" });
    this.fromTop = false;
  }

  bar() {
    const { turn, before, after } = this.shown;
    const { row, status } = get();
    const [first, last] = [turn?.first ?? 0, turn?.last ?? status.count - 1];
    const slider = el("input", { type: "range", min: first, max: Math.max(last, row), "aria-label": "Message", title: "The state as of this message" });
    slider.value = String(row); // after its bounds, which would cut it
    slider.addEventListener("input", () => look(Number(slider.value)));
    return el("div", { class: "bar" },
      el("button", { type: "button", title: "Previous turn ([)", "aria-label": "Previous turn", disabled: before === null, onclick: () => this.turn(-1) }, "‹"),
      el("span", {}, turn?.prompt ? `Turn ${whole(turn.prompt)} of ${whole(status.turns)}` : turn?.kind === "replay" ? "Replay" : "Opening"),
      el("button", { type: "button", title: "Next turn (])", "aria-label": "Next turn", disabled: after === null, onclick: () => this.turn(1) }, "›"),
      this.picker(),
      slider,
      el("span", { class: "mono" }, `as of #${whole(row)}`),
    );
  }

  picker() {
    const sessions = get().summary?.sessionList ?? [];
    if (sessions.length < 2) return null;
    const select = el("select", { "aria-label": "Session" }, sessions.map((it) => el("option", { value: it.number }, it.name)));
    select.value = String(this.session);
    select.addEventListener("change", () => this.openSession(Number(select.value)));
    return select;
  }

  async openSession(number) {
    const turns = await allTurns(get().trace);
    const turn = turns.find((it) => it.session === number && it.prompt) ?? turns.find((it) => it.session === number);
    this.session = number;
    if (turn) this.read(turn);
  }

  drawOverview() {
    this.node.replaceChildren(overview(get(), (number) => this.openSession(number)));
  }

  settings(settings) {
    const facts = [
      ["title", settings.title],
      ["mode", settings.mode],
      ["model", settings.model],
      ["context", settings.usage && `${whole(settings.usage.used ?? 0)} of ${whole(settings.usage.size ?? 0)} tokens`],
      ...(settings.options ?? []).filter((option) => option.value !== settings.mode && option.value !== settings.model).map((option) => [option.name, String(option.value)]),
    ].filter(([, value]) => value);
    return el("div", {},
      el("div", { class: "settings" }, facts.map(([name, value]) => el("span", {}, `${name} `, el("b", {}, value)))),
      settings.plan?.length ? el("details", { open: true }, el("summary", { class: "category-quiet" }, "Plan"), plan(settings.plan)) : null,
    );
  }

  item(item, row) {
    const isChosen = item.rows[0] <= row && row <= item.rows[1] && item.rows[1] === row;
    const kind = item.type === "message" ? item.speaker : item.type;
    const took = item.end - item.begin;
    const frames = el("span", { class: "frames" },
      took > 0.0005 ? `${duration(took)} · ` : "",
      el("button", { type: "button", class: "plain", title: "Show these messages", onclick: () => look(item.rows[0], { tab: "messages", view: "runs" }) }, plural(item.count, "message")));
    const who = el("div", { class: "who" }, ...this.title(item), this.beginning(item), el("span", {}, clock(item.begin)), frames);
    return el("section", { class: `item ${kind}${isChosen ? " chosen" : ""}` }, who, this.body(item));
  }

  /** What changes here, where it began in an earlier turn. */
  beginning(item) {
    if (item.beganAt === undefined) return null;
    return el("button", { type: "button", class: "plain", title: "Show where it began", onclick: () => look(item.beganAt) }, item.beganIn ? `changes turn ${whole(item.beganIn)}` : "changes an earlier turn");
  }

  title(item) {
    if (item.type === "message") return [el("b", {}, { user: "User", agent: "Agent", thought: "Thought" }[item.speaker] ?? item.speaker)];
    if (item.type === "tool") return [...toolTitle(item.call), statusBadge(item.call.status), ...failures(item.terminals)];
    if (item.type === "permission") return [el("b", {}, "Permission"), el("span", {}, item.answer === undefined ? "waiting for the user" : `answered after ${duration(item.took)}`)];
    if (item.type === "question") return [el("b", {}, "Question"), el("span", {}, item.answer === undefined ? "waiting for the user" : item.answer)];
    if (item.type === "request") return [el("b", {}, item.method), el("span", { class: item.failed ? "category-error" : "" }, `${item.detail}${item.answer === undefined ? " …" : item.answer ? ` → ${item.answer}` : ""}`)];
    if (item.type === "end") return [el("b", {}, "Turn ended"), el("span", {}, item.detail)];
    if (item.type === "setting") return [el("b", {}, item.what), el("span", {}, item.detail)];
    return [el("b", {}, { error: "Error", broken: "Not understood", cancel: "The user cancels", large: "A large message" }[item.type] ?? item.type), el("span", {}, item.detail ?? item.problem ?? "")];
  }

  body(item) {
    if (item.type === "message") {
      const content = blocks(item.content);
      return item.speaker === "thought" ? el("details", {}, el("summary", {}, "thinking"), content) : content;
    }
    if (item.type === "tool") {
      const { call } = item;
      return [
        call.locations?.length ? el("div", {}, call.locations.map((it) => el("code", {}, `${it.path}${it.line ? `:${it.line}` : ""} `))) : null,
        toolContent(call.content, item.terminals),
        call.raw_input !== null && el("details", {}, el("summary", { class: "category-quiet" }, "input"), tree(call.raw_input, 2)),
        call.raw_output !== null && el("details", {}, el("summary", { class: "category-quiet" }, "output"), tree(call.raw_output, 2)),
      ];
    }
    if (item.type === "permission") return el("div", {}, item.options.map((option) => el("span", { class: option.id === item.chosen ? "option chosen" : "option" }, option.name)));
    if (item.type === "question") return el("div", {}, item.detail);
    if (item.type === "setting" && item.value?.entries) return plan(item.value.entries);
    return null;
  }
}

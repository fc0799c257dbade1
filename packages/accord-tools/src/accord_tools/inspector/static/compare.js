// Two messages side by side, and two traces: what both sides declared, and how each turn went.

import { el } from "./dom.js";
import { clock, duration, plural, whole } from "./format.js";
import { flat, frames } from "./frames.js";
import { allTurns, askTrace } from "./source.js";
import { get, look, set, watch } from "./store.js";

const MOST = 200; // members that differ
const SHOWN = 200; // turns that are drawn at first, and more with each click
const MATTERS = new Set(["protocol", "failed turns"]); // two traces always differ in the other facts

export class Compare {
  constructor(main) {
    this.messages = el("div");
    this.traces = el("div");
    this.node = el("div", { class: "compare", tabindex: 0 }, this.messages, this.traces);
    main.append(this.node);
    this.other = null;
    this.shown = SHOWN;
    this.stop = watch((changed) => {
      if (changed.has("trace")) this.load();
      if (["row", "marked", "trace"].some((name) => changed.has(name))) this.loadMessages();
    });
    this.loadMessages();
    this.load();
  }

  /** The marked message beside the one that is looked at. */
  async loadMessages() {
    const { marked, trace, row, status, summary } = get();
    if (!marked || !status?.count || row < 0) {
      this.messages.replaceChildren(el("p", { class: "category-quiet" }, "Two messages: press m at one of them, look at the other one, also in another trace, then press d."));
      return;
    }
    this.request?.abort();
    this.request = new AbortController();
    const ask = (id, number) => askTrace(id, "frame", { row: number, whole: 1 }, this.request.signal);
    try {
      const [left, right] = await Promise.all([ask(marked.trace, marked.row), ask(trace, row)]);
      const names = marked.trace === trace ? ["", ""] : [marked.name, summary.name];
      this.messages.replaceChildren(frames({ name: names[0], message: left }, { name: names[1], message: right }));
    } catch (error) {
      if (error.name !== "AbortError") this.messages.replaceChildren(el("p", { class: "empty" }, error.message));
    }
  }

  /** Compare the messages that ended a turn in both traces. */
  chooseTurn(left, right) {
    const { trace, summary } = get();
    const at = (turn) => turn.last ?? turn.first;
    set({ marked: { trace: this.other, row: at(right), name: this.names[1] } });
    look(at(left), { trace, summary });
  }

  close() {
    this.stop();
  }

  async load() {
    const { traces, trace } = get();
    const others = traces.filter((it) => it.id !== trace);
    this.other = others.some((it) => it.id === this.other) ? this.other : others[0]?.id;
    if (!this.other) {
      this.traces.replaceChildren(el("p", { class: "empty" }, "There is no other trace. Name two: accord inspect before.jsonl after.jsonl"));
      return;
    }
    const select = el("select", { "aria-label": "The other trace" }, others.map((it) => el("option", { value: it.id }, it.name)));
    select.value = this.other;
    select.addEventListener("change", () => {
      this.other = select.value;
      this.load();
    });
    this.sides = await Promise.all([trace, this.other].map((id) => this.side(id)));
    this.names = this.sides.map(({ summary }) => summary.name);
    this.drawTraces(select);
  }

  drawTraces(select) {
    const { sides } = this;
    this.traces.replaceChildren(el("div", {}, el("p", {}, "Compared with ", select), this.overview(sides), this.declared(sides), this.turns(sides, select)));
  }

  async side(id) {
    const summary = await askTrace(id, "");
    const turns = await allTurns(id);
    return { summary, turns: turns.filter((turn) => turn.prompt) };
  }

  table(title, heads, rows) {
    return el("table", {}, el("caption", { class: "hidden" }, title), el("tr", {}, heads.map((head) => el(head ? "th" : "td", {}, head))), rows);
  }

  row(name, left, right, matters = true) {
    return el("tr", { class: left === right || !matters ? "" : "other" }, el("th", {}, name), el("td", {}, left), el("td", {}, right));
  }

  overview([a, b]) {
    const facts = [
      ["started", ({ summary }) => summary.header.started ?? ""],
      ["protocol", ({ summary }) => `version ${summary.version}`],
      ["messages", ({ summary }) => whole(summary.count)],
      ["time", ({ summary }) => clock(summary.end - summary.begin)],
      ["turns", ({ turns }) => whole(turns.length)],
      ["failed turns",  ({ turns }) => whole(turns.filter((turn) => turn.error).length)],
    ];
    return this.table("Overview", ["", a.summary.name, b.summary.name], facts.map(([name, value]) => this.row(name, value(a), value(b), MATTERS.has(name))));
  }

  /** The members of both handshakes that differ. */
  declared([a, b]) {
    const parts = ["client", "agent"].flatMap((side) => {
      const [left, right] = [flat(a.summary[side], side), flat(b.summary[side], side)];
      const names = [...new Set([...left.keys(), ...right.keys()])].sort();
      return names.filter((name) => left.get(name) !== right.get(name)).map((name) => this.row(name, left.get(name) ?? "—", right.get(name) ?? "—"));
    });
    if (!parts.length) return el("p", {}, "Both sides declared the same in both traces.");
    return this.table("Declared", ["declared differently", a.summary.name, b.summary.name], parts.slice(0, MOST));
  }

  turns([a, b], select) {
    const all = Math.max(a.turns.length, b.turns.length);
    const count = Math.min(all, this.shown);
    const text = (turn) => (turn ? `${turn.error ? "error" : turn.stop || "goes on"}, ${turn.end === null ? "" : duration(turn.end - turn.begin)}` : "—");
    const rows = Array.from({ length: count }, (_, at) => {
      const [left, right] = [a.turns[at], b.turns[at]];
      const isSame = left && right && left.stop === right.stop && left.error === right.error;
      const button = left && right ? el("button", { type: "button", class: "plain", title: "Compare the last messages of both", onclick: () => this.chooseTurn(left, right) }, `turn ${at + 1}`) : `turn ${at + 1}`;
      return el("tr", { class: isSame ? "" : "other" }, el("th", {}, button), el("td", {}, text(left)), el("td", {}, text(right)));
    });
    return [this.table("Turns", ["turn by turn", a.summary.name, b.summary.name], rows), all > count && el("p", {}, `The first ${whole(count)} of ${plural(all, "turn")}. `, el("button", { type: "button", onclick: () => this.drawMore(select) }, `${whole(Math.min(all - count, this.shown))} more`))];
  }

  /** Draw twice as many turns. */
  drawMore(select) {
    this.shown *= 2;
    this.drawTraces(select);
  }
}

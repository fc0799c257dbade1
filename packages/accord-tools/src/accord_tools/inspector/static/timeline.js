// The timeline: lanes for each session, and a table of turns that says where the time of each went.

import { colour, el, fitted, sessionColour } from "./dom.js";
import { clock, duration, turnName, whole } from "./format.js";
import { VirtualList } from "./list.js";
import { allTurns, askTrace } from "./source.js";
import { get, look, set, watch } from "./store.js";

const LANES = ["turn", "thought", "text", "tool", "client", "user"];
const LANE = 16;
const GAP = 10;
const LABEL = 92;
const IDLE = 3; // seconds without a turn that are drawn as a break
const BREAK = 26; // pixels of a break
const MOST_DETAILED = 60; // turns whose spans are loaded for the chart
const MOST_SESSIONS = 12;
const WHO = ["model", "tool", "client", "user"];
const COLOURS = { turn: "accent", thought: "thought", text: "model", tool: "tool", client: "client", user: "user", wait: "tool" };

export class Timeline {
  constructor(main) {
    this.spans = new Map();
    this.canvas = el("canvas", { tabindex: 0, "aria-label": "Lanes of the sessions" });
    this.tip = el("div", { class: "tip", hidden: true });
    this.chart = el("div", { class: "chart" }, this.canvas, this.tip);
    this.list = new VirtualList({
      height: 28,
      label: "Turns",
      load: (from, count, signal) => this.loadTurns(from, count, signal),
      draw: (turn) => this.drawTurn(turn),
      onchoose: (place, turn) => {
        this.list.choose(place);
        look(turn.first, { range: [turn.begin, Math.max(turn.end ?? turn.begin, turn.begin + 0.001)] });
      },
    });
    const heads = ["turn", "", "prompt", "where the time went", "took", "first update", "first text", "silence", "ended"];
    main.append(this.legend(), this.chart, el("div", { class: "turns-heads" }, heads.map((name) => el("span", {}, name))), this.list.node);
    this.canvas.addEventListener("wheel", (event) => this.zoom(event), { passive: false });
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => (this.tip.hidden = true));
    this.canvas.addEventListener("click", (event) => this.choose(event));
    this.canvas.addEventListener("keydown", (event) => this.pressed(event));
    this.sizes = new ResizeObserver(() => this.draw());
    this.sizes.observe(this.chart);
    this.stop = watch((changed) => {
      if (["trace", "generation"].some((name) => changed.has(name))) {
        this.spans.clear();
        this.start();
      } else if (changed.has("status")) this.start(true);
      else if (changed.has("row")) this.chooseTurn();
      else if (changed.has("range")) this.load();
      else if (changed.has("time") || changed.has("theme")) this.draw();
    });
    this.start();
  }

  close() {
    this.stop();
    this.sizes.disconnect();
    this.list.close();
  }

  legend() {
    const items = [["text", "model"], ["thought", "thought"], ["tool", "tool"], ["client", "client"], ["user", "user"]];
    return el("div", { class: "legend" },
      items.map(([name, kind]) => el("span", {}, el("i", { class: `back-${kind}` }), { text: "text / model", thought: "thinking", tool: "tool", client: "client", user: "waiting for the user" }[name])),
      el("span", {}, "wheel: zoom"),
      el("button", { type: "button", title: "0", onclick: () => set({ range: null }) }, "Whole time"));
  }

  async start(grown = false) {
    const { trace, status } = get();
    if (!trace) return;
    const total = status?.parts ?? 0;
    if (grown && total === this.list.total && this.lastEnd === status.end) return;
    this.lastEnd = status?.end;
    if (grown) this.list.grow(total);
    else this.list.clear(total);
    this.turns = await allTurns(trace);
    for (const turn of this.turns) if (turn.end === null) this.spans.delete(turn.number);
    await this.load();
    this.chooseTurn();
  }

  /** Choose the turn of the message that is looked at. */
  chooseTurn() {
    const { row } = get();
    const turn = (this.turns ?? []).findLast((it) => it.first <= row && row <= (it.last ?? Infinity));
    if (!turn || turn.number === this.list.chosen) return;
    this.list.choose(turn.number);
    this.list.show(turn.number);
  }

  async loadTurns(from, count, signal) {
    const { turns } = await askTrace(get().trace, "turns", { from, n: count }, signal);
    return turns;
  }

  get range() {
    const { range, summary, status } = get();
    return range ?? [summary?.begin ?? 0, Math.max(status?.end ?? 1, (summary?.begin ?? 0) + 0.001)];
  }

  /** Load the spans of the turns in the range, if they are few enough to be seen. */
  async load() {
    this.draw();
    const [from, to] = this.range;
    const seen = (this.turns ?? []).filter((turn) => (turn.end ?? Infinity) >= from && turn.begin <= to);
    if (seen.length > MOST_DETAILED) return;
    await Promise.all(seen.filter((turn) => !this.spans.has(turn.number)).map((turn) => this.loadSpans(turn.number)));
    this.draw();
  }

  async loadSpans(number) {
    const found = await askTrace(get().trace, "spans", { turn: number }).catch(() => null);
    if (found) this.spans.set(number, found);
    return found;
  }

  /** Map times to pixels; long times without a turn become breaks. */
  scale(width) {
    const [from, to] = this.range;
    const busy = [];
    for (const turn of [...(this.turns ?? [])].sort((a, b) => a.begin - b.begin)) {
      const [begin, end] = [Math.max(turn.begin, from), Math.min(turn.end ?? get().status.end, to)];
      if (end < begin) continue;
      const last = busy.at(-1);
      if (last && begin - last[1] <= IDLE) last[1] = Math.max(last[1], end);
      else busy.push([begin, end]);
    }
    if (!busy.length || busy.length > 40) busy.splice(0, busy.length, [from, to]);
    const gap = busy.length > 1 ? Math.min(BREAK, (width * 0.4) / (busy.length - 1)) : 0;
    const seconds = busy.reduce((sum, [begin, end]) => sum + Math.max(end - begin, 1e-6), 0);
    const perSecond = Math.max(width - gap * (busy.length - 1), 1) / seconds;
    const parts = [];
    let x = LABEL;
    for (const [begin, end] of busy) {
      parts.push({ begin, end, x });
      x += Math.max(end - begin, 1e-6) * perSecond + gap;
    }
    const toX = (time) => {
      const part = parts.findLast((it) => it.begin <= time) ?? parts[0];
      return part.x + Math.max(0, Math.min(time, part.end) - part.begin) * perSecond;
    };
    const toTime = (at) => {
      const part = parts.findLast((it) => it.x <= at) ?? parts[0];
      return Math.min(part.begin + Math.max(0, at - part.x) / perSecond, part.end);
    };
    return { toX, toTime, parts, gap };
  }

  sessions() {
    const seen = new Set(this.visible().map((turn) => turn.session));
    return [...seen].slice(0, MOST_SESSIONS);
  }

  visible() {
    const [from, to] = this.range;
    return (this.turns ?? []).filter((turn) => (turn.end ?? Infinity) >= from && turn.begin <= to);
  }

  draw() {
    const sessions = this.sessions();
    const height = 22 + sessions.length * (LANES.length * LANE + GAP);
    const context = fitted(this.canvas, Math.max(height, 60));
    const width = this.canvas.clientWidth;
    this.boxes = [];
    this.drawn = this.scale(width - LABEL - 12);
    context.font = "11px system-ui, sans-serif";
    this.drawAxis(context, width, height);
    sessions.forEach((session, at) => this.drawSession(context, session, 22 + at * (LANES.length * LANE + GAP), width));
    this.drawCursor(context, height);
  }

  drawAxis(context, width, height) {
    const { parts, gap, toTime } = this.drawn;
    context.fillStyle = colour("quiet");
    for (let x = LABEL; x < width - 60; x += 130) context.fillText(clock(toTime(x)), x, 13);
    parts.slice(1).forEach((part, at) => {
      context.fillStyle = colour("raised");
      context.fillRect(part.x - gap, 18, gap, height);
      context.fillStyle = colour("faint");
      const idle = duration(part.begin - parts[at].end);
      if (gap > 20) context.fillText("⋯", part.x - gap / 2 - 5, 40);
      this.boxes.push({ x: part.x - gap, y: 18, w: gap, h: height, label: `${idle} without a turn` });
    });
  }

  drawSession(context, session, y, width) {
    const name = get().summary?.sessionList?.[session - 1]?.name ?? "";
    LANES.forEach((lane, at) => {
      context.fillStyle = at % 2 ? colour("back") : colour("raised");
      context.fillRect(LABEL, y + at * LANE, width, LANE);
      context.fillStyle = at ? colour("faint") : sessionColour(session);
      context.fillText(at ? lane : name.length > 12 ? `${name.slice(0, 11)}…` : name, 8, y + at * LANE + 12);
    });
    for (const turn of this.visible().filter((it) => it.session === session)) {
      this.bar(context, turn.begin, turn.end ?? get().status.end, y, turn.error ? "error" : turn.kind === "prompt" ? "accent" : "faint", {
        row: turn.first, label: `${turnName(turn)}: ${turn.stop || (turn.error ? "error" : turn.end === null ? "goes on" : turn.kind)}, ${duration((turn.end ?? get().status.end) - turn.begin)}`,
      });
      for (const [kind, label, begin, end, row, status] of this.spans.get(turn.number)?.spans ?? []) {
        const lane = kind === "wait" ? "tool" : kind;
        const tint = status === "failed" ? "error" : COLOURS[kind];
        this.bar(context, begin, end, y + LANES.indexOf(lane) * LANE, tint, { row, label: `${label}${status ? ` (${status})` : ""}, ${duration(end - begin)}` });
      }
    }
  }

  bar(context, begin, end, y, tint, box) {
    const [from, to] = this.range;
    if (end < from || begin > to) return;
    const [x, right] = [this.drawn.toX(Math.max(begin, from)), this.drawn.toX(Math.min(end, to))];
    const w = Math.max(right - x, 1.5);
    context.fillStyle = colour(tint);
    context.fillRect(x, y + 2, w, LANE - 4);
    this.boxes.push({ x, y, w: Math.max(w, 5), h: LANE, ...box });
  }

  drawCursor(context, height) {
    const { time } = get();
    const [from, to] = this.range;
    if (time === undefined || time < from || time > to) return;
    context.fillStyle = colour("text");
    context.fillRect(this.drawn.toX(time), 16, 1, height);
  }

  boxAt(event) {
    const [x, y] = [event.offsetX, event.offsetY];
    return this.boxes?.findLast((box) => x >= box.x && x <= box.x + box.w && y >= box.y && y < box.y + box.h);
  }

  point(event) {
    const box = this.boxAt(event);
    this.tip.hidden = !box;
    if (!box) return;
    this.tip.textContent = box.label;
    this.tip.style.left = `${Math.min(event.clientX + 12, innerWidth - 300)}px`;
    this.tip.style.top = `${event.clientY + 14}px`;
  }

  async choose(event) {
    const box = this.boxAt(event);
    if (box?.row !== undefined) look(box.row);
    else if (event.offsetX > LABEL) look((await askTrace(get().trace, "at", { time: this.drawn.toTime(event.offsetX) })).row);
  }

  zoom(event) {
    if (!event.deltaY || event.shiftKey) return;
    event.preventDefault();
    this.zoomAt(this.drawn.toTime(event.offsetX), event.deltaY > 0 ? 1.25 : 0.8);
  }

  zoomAt(time, factor) {
    const [from, to] = this.range;
    const { summary, status } = get();
    const range = [Math.max(summary.begin, time - (time - from) * factor), Math.min(status.end, time + (to - time) * factor)];
    set({ range: range[0] <= summary.begin && range[1] >= status.end ? null : range });
  }

  pressed(event) {
    const [from, to] = this.range;
    const shift = { ArrowLeft: -0.2, ArrowRight: 0.2 }[event.key];
    if (event.key === "+" || event.key === "-") this.zoomAt(get().time ?? (from + to) / 2, event.key === "+" ? 0.7 : 1.4);
    else if (shift !== undefined) set({ range: [from + (to - from) * shift, to + (to - from) * shift] });
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  drawTurn(turn) {
    const node = el("div", { class: "turn" },
      el("span", {}, turn.prompt ? whole(turn.prompt) : ""),
      el("span", { class: "dot", style: { background: sessionColour(turn.session) } }),
      el("span", { class: "prompt" }, turn.kind === "prompt" ? "…" : turn.kind),
      el("span", { class: "shares" }),
      el("span", {}, turn.end === null ? "goes on" : duration(turn.end - turn.begin)),
      el("span", {}), el("span", {}), el("span", {}),
      el("span", { class: turn.error ? "category-error" : "category-quiet" }, turn.error ? "error" : turn.stop));
    this.fillTurn(node, turn);
    return node;
  }

  async fillTurn(node, turn) {
    const found = this.spans.get(turn.number) ?? (await this.loadSpans(turn.number));
    if (!found) return;
    const [, , prompt, shares, , update, text, silence] = node.children;
    prompt.textContent = found.prompt || turn.kind;
    const all = WHO.reduce((sum, who) => sum + found.shares[who], 0) || 1;
    shares.replaceChildren(...WHO.map((who) => el("i", { class: `back-${who}`, style: { width: `${(found.shares[who] / all) * 100}%` } })));
    shares.title = WHO.map((who) => `${who} ${duration(found.shares[who])}`).join(", ");
    update.textContent = duration(found.firstUpdate);
    text.textContent = duration(found.firstText);
    silence.textContent = duration(found.longestSilence[0]);
  }

  async move(by) {
    const place = Math.max(0, Math.min((this.list.chosen < 0 ? 0 : this.list.chosen) + by, this.list.total - 1));
    const turn = await this.list.at(place);
    if (!turn) return;
    this.list.choose(place);
    this.list.show(place);
    look(turn.first, { range: [turn.begin, turn.end ?? get().status.end] });
  }

  get page() {
    return this.list.shown ?? 10;
  }

  get length() {
    return this.list.total;
  }
}

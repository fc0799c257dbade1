// The strip above the views: the whole time of the trace. A click goes there, a drag zooms the timeline.

import { byId, colour, fitted } from "./dom.js";
import { clock } from "./format.js";
import { allTurns, askTrace } from "./source.js";
import { get, look, set, watch } from "./store.js";

const HEIGHT = 40;

export class Strip {
  constructor() {
    this.canvas = byId("strip");
    this.canvas.addEventListener("pointerdown", (event) => this.begin(event));
    this.canvas.addEventListener("pointermove", (event) => this.drag(event));
    this.canvas.addEventListener("pointerup", (event) => this.end(event));
    this.canvas.addEventListener("dblclick", () => set({ range: null }));
    new ResizeObserver(() => this.load()).observe(this.canvas);
    watch((changed) => {
      if (["trace", "view", "generation", "found"].some((name) => changed.has(name))) this.load();
      else if (changed.has("status")) this.loadSoon();
      else if (changed.has("time") || changed.has("range") || changed.has("theme")) this.draw();
    });
  }

  loadSoon() {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.load();
    }, 500);
  }

  async load() {
    const { trace, view } = get();
    const bins = Math.min(2000, this.canvas.clientWidth);
    if (!trace || !bins) return;
    this.counts = await askTrace(trace, "strip", { bins, view }).catch(() => null);
    this.turns = await allTurns(trace).catch(() => null);
    this.draw();
  }

  x(time) {
    const { begin, end } = this.counts;
    return ((time - begin) / Math.max(end - begin, 1e-9)) * this.canvas.clientWidth;
  }

  time(event) {
    const { begin, end } = this.counts;
    const share = (event.clientX - this.canvas.getBoundingClientRect().left) / this.canvas.clientWidth;
    return begin + Math.max(0, Math.min(share, 1)) * (end - begin);
  }

  draw() {
    const context = fitted(this.canvas, HEIGHT);
    if (!this.counts) return;
    const { counts, errors, marks } = this.counts;
    const width = this.canvas.clientWidth / counts.length;
    const most = Math.log1p(Math.max(...counts, 1));
    this.drawTurns(context);
    counts.forEach((count, at) => {
      if (!count) return;
      const height = Math.max(1, (Math.log1p(count) / most) * 26);
      context.fillStyle = marks && !marks[at] ? colour("line") : colour(errors[at] ? "error" : "model");
      context.fillRect(at * width, 28 - height, Math.max(width, 1), height);
    });
    const range = this.brush ?? get().range;
    if (range) {
      context.fillStyle = "#4c8bf533";
      context.fillRect(this.x(range[0]), 0, Math.max(2, this.x(range[1]) - this.x(range[0])), HEIGHT);
    }
    this.drawCursor(context);
  }

  drawTurns(context) {
    for (const turn of this.turns ?? []) {
      if (turn.kind !== "prompt") continue;
      context.fillStyle = turn.error ? colour("error") : colour("accent");
      const end = turn.end ?? this.counts.end;
      context.fillRect(this.x(turn.begin), 31, Math.max(1, this.x(end) - this.x(turn.begin) - 1), 6);
    }
  }

  drawCursor(context) {
    const time = get().time;
    if (time === undefined) return;
    context.fillStyle = colour("text");
    context.fillRect(Math.max(0, this.x(time) - 1), 0, 2, HEIGHT);
    this.canvas.setAttribute("aria-valuetext", clock(time));
  }

  begin(event) {
    if (!this.counts) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.from = event.clientX;
    this.fromTime = this.time(event);
  }

  drag(event) {
    if (this.from === undefined || Math.abs(event.clientX - this.from) < 5) return;
    const time = this.time(event);
    this.brush = [Math.min(time, this.fromTime), Math.max(time, this.fromTime)];
    this.draw();
  }

  async end(event) {
    if (this.from === undefined) return;
    const [brush, time] = [this.brush, this.time(event)];
    this.from = this.brush = undefined;
    if (brush) set({ range: brush });
    const { row } = await askTrace(get().trace, "at", { time: brush ? brush[0] : time });
    look(row);
  }
}

// Latency: how long each method's answers took, and when. A list of methods, and a plot of the chosen ones over time.

import { colour, el, fitted } from "./dom.js";
import { clock, duration, plural, whole } from "./format.js";
import { kindOfMethod } from "./kinds.js";
import { askTrace } from "./source.js";
import { get, look, watch } from "./store.js";

const PLOT = 260;
const [LEFT, RIGHT, TOP, BOTTOM] = [58, 12, 12, 22];
const NEAR = 12; // pixels within which the pointer finds a point
const TICKS = [1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 60, 600, 3600];

export class Latency {
  constructor(main) {
    this.methods = [];
    this.chosen = -1; // of the methods; -1 means all
    this.canvas = el("canvas", { tabindex: 0, "aria-label": "Latency over time" });
    this.tip = el("div", { class: "tip", hidden: true });
    this.table = el("div", { class: "latencies", tabindex: 0 });
    this.node = el("div", { class: "latency", tabindex: 0 }, el("div", { class: "chart" }, this.canvas, this.tip), this.table);
    main.append(this.node);
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => (this.tip.hidden = true));
    this.canvas.addEventListener("click", (event) => {
      const found = this.at(event);
      if (found) look(found.row);
    });
    this.sizes = new ResizeObserver(() => this.draw());
    this.sizes.observe(this.canvas.parentNode);
    this.stop = watch((changed) => {
      if (["trace", "generation"].some((name) => changed.has(name))) this.load();
      else if (changed.has("status")) this.loadSoon();
      else if (["row", "theme"].some((name) => changed.has(name))) this.draw();
    });
    this.load();
  }

  close() {
    this.stop();
    this.sizes.disconnect();
    clearTimeout(this.timer);
  }

  loadSoon() {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.load();
    }, 500);
  }

  async load() {
    if (!get().trace) return;
    const { methods, leftOut } = await askTrace(get().trace, "latency");
    [this.methods, this.leftOut] = [methods, leftOut];
    this.chosen = Math.min(this.chosen, methods.length - 1);
    this.drawTable();
    this.draw();
  }

  get length() {
    return this.methods.length;
  }

  /** The next or previous method; the first step chooses the first one. */
  move(by) {
    this.chosen = Math.max(-1, Math.min(this.chosen + by, this.methods.length - 1));
    this.drawTable();
    this.draw();
  }

  /** From one request to the next slower or faster one: the slowest first. */
  turn(by) {
    const points = this.shown().flatMap((method) => method.points).sort((a, b) => b[1] - a[1]);
    if (!points.length) return;
    const at = points.findIndex((point) => point[2] === get().row);
    look(points[at < 0 ? 0 : Math.max(0, Math.min(at + by, points.length - 1))][2]);
  }

  shown() {
    return this.chosen < 0 ? this.methods : [this.methods[this.chosen]];
  }

  drawTable() {
    if (!this.methods.length) {
      this.table.replaceChildren(el("p", { class: "empty" }, "No request of this trace has an answer yet."));
      return;
    }
    const slowest = Math.max(...this.methods.map((it) => it.max), 1e-6);
    const heads = ["method", "answers", "errors", "p50", "p95", "max", "total", "each answer, fast to slow"];
    const rows = this.methods.map((it, at) => el("tr", { class: at === this.chosen ? "chosen" : "", onclick: () => this.move((at === this.chosen ? -1 : at) - this.chosen) },
      el("td", {}, el("i", { class: `back-${kindOfMethod(it.method)}` }), it.method),
      [whole(it.count), it.errors ? whole(it.errors) : "", duration(it.p50), duration(it.p95), duration(it.max), duration(it.total)].map((text) => el("td", { class: "figure" }, text)),
      el("td", {}, this.histogram(it, slowest))));
    this.table.replaceChildren(
      el("p", { class: "category-quiet" }, "j and k choose a method, ] and [ go through its requests, the slowest first. A click does both."),
      el("table", {}, el("tr", {}, heads.map((head) => el("th", {}, head))), rows),
      this.leftOut ? el("p", { class: "category-quiet" }, `${plural(this.leftOut, "more method")}, with a smaller total.`) : "");
    this.table.querySelector(".chosen")?.scrollIntoView({ block: "nearest" });
  }

  /** Bars over the logarithm of the latency, the same for all methods. */
  histogram(method, slowest) {
    const bins = new Array(24).fill(0);
    const span = Math.log10(Math.max(slowest / 1e-5, 10));
    for (const [, took] of method.points) bins[Math.max(0, Math.min(23, Math.floor((Math.log10(Math.max(took, 1e-5) / 1e-5) / span) * 23.99)))] += 1;
    const most = Math.max(...bins);
    return el("span", { class: "bars", title: `${duration(1e-5)} to ${duration(slowest)}` },
      bins.map((count) => el("i", { class: `back-${kindOfMethod(method.method)}`, style: { height: count ? `${Math.max(2, (count / most) * 18)}px` : "0" } })));
  }

  draw() {
    const context = fitted(this.canvas, PLOT);
    const width = this.canvas.clientWidth;
    const { summary, status, row } = get();
    const points = this.shown().filter(Boolean).flatMap((method) => method.points.map((point) => ({ method: method.method, time: point[0], took: point[1], row: point[2], failed: point[3] })));
    const [from, to] = [summary?.begin ?? 0, Math.max(status?.end ?? 1, (summary?.begin ?? 0) + 0.001)];
    const [low, high] = bounds(points.map((it) => it.took));
    const toX = (time) => LEFT + ((time - from) / (to - from)) * (width - LEFT - RIGHT);
    const toY = (took) => PLOT - BOTTOM - (Math.log(Math.max(took, low) / low) / Math.log(high / low)) * (PLOT - TOP - BOTTOM);
    this.axes(context, width, [from, to], [low, high], toX, toY);
    for (const it of points) {
      [it.x, it.y] = [toX(it.time), toY(it.took)];
      context.fillStyle = colour(it.failed ? "error" : colourOf(it.method));
      context.globalAlpha = it.row === row ? 1 : 0.75;
      context.beginPath();
      if (it.failed) context.rect(it.x - 3.5, it.y - 3.5, 7, 7); // a square: not by its colour alone
      else context.arc(it.x, it.y, it.row === row ? 5.5 : 3.5, 0, 2 * Math.PI);
      context.fill();
      if (it.row === row) {
        context.strokeStyle = colour("text");
        context.lineWidth = 1.5;
        context.stroke();
      }
    }
    context.globalAlpha = 1;
    this.points = points;
  }

  axes(context, width, [from, to], [low, high], toX, toY) {
    context.font = "11px system-ui, sans-serif";
    context.lineWidth = 1;
    for (const tick of TICKS.filter((it) => it >= low && it <= high)) {
      const y = Math.round(toY(tick)) + 0.5;
      context.strokeStyle = colour("line");
      context.beginPath();
      context.moveTo(LEFT, y);
      context.lineTo(width - RIGHT, y);
      context.stroke();
      context.fillStyle = colour("quiet");
      context.textAlign = "right";
      context.fillText(duration(tick), LEFT - 6, y + 4);
    }
    context.fillStyle = colour("quiet");
    for (let at = 0; at <= 4; at += 1) {
      const time = from + ((to - from) * at) / 4;
      context.textAlign = at === 0 ? "left" : at === 4 ? "right" : "center";
      context.fillText(clock(time), toX(time), PLOT - 6);
    }
  }

  at(event) {
    const near = (this.points ?? []).map((it) => ({ it, far: Math.hypot(it.x - event.offsetX, it.y - event.offsetY) })).filter(({ far }) => far <= NEAR);
    return near.sort((a, b) => a.far - b.far)[0]?.it;
  }

  point(event) {
    const found = this.at(event);
    this.tip.hidden = !found;
    if (!found) return;
    this.tip.textContent = `${found.method}: ${duration(found.took)}${found.failed ? ", failed" : ""} · #${whole(found.row)} at ${clock(found.time)}`;
    this.tip.style.left = `${Math.min(event.clientX + 12, innerWidth - 300)}px`;
    this.tip.style.top = `${event.clientY + 14}px`;
  }
}

/** The colour of the style sheet for a method. */
const colourOf = (method) => ({ turn: "accent", quiet: "quiet" })[kindOfMethod(method)] ?? kindOfMethod(method);

/** The ends of the axis: powers of ten around the values. */
function bounds(values) {
  if (!values.length) return [1e-3, 1];
  const low = 10 ** Math.floor(Math.log10(Math.max(values.reduce((a, b) => Math.min(a, b)), 1e-5)));
  const high = 10 ** Math.ceil(Math.log10(Math.max(values.reduce((a, b) => Math.max(a, b)), 1e-5) * 1.0001));
  return [low, Math.max(high, low * 10)];
}

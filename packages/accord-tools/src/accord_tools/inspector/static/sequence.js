// The sequence: a column for each component, an arrow for each message or run of messages.

import { el } from "./dom.js";
import { clock, duration, whole } from "./format.js";
import { ANSWER, DETAIL, ERROR, HOP, KIND, LATENCY, RUN, TIME, TO_AGENT, WHAT, category } from "./kinds.js";
import { RowList } from "./messages.js";
import { get, watch } from "./store.js";

export class Sequence {
  constructor(main) {
    this.heads = el("div", { class: "columns" });
    this.rows = new RowList((row) => this.draw(row), "Sequence");
    main.append(this.heads, ...this.rows.nodes);
    this.stop = watch((changed) => {
      if (changed.has("summary")) this.drawHeads();
    });
    this.drawHeads();
  }

  close() {
    this.stop();
    this.rows.close();
  }

  move(by) {
    return this.rows.move(by);
  }

  get page() {
    return this.rows.list.shown ?? 20;
  }

  get length() {
    return this.rows.list.total;
  }

  get names() {
    const components = get().summary?.components ?? [];
    return components.length > 1 ? components : ["client", "agent"];
  }

  drawHeads() {
    const { names } = this;
    this.heads.replaceChildren(...names.map((name, at) => el("b", { style: { left: `${this.share(at, names)}%` } }, name)));
    this.rows.list.queue();
  }

  /** Where a column stands, as a share of the width. */
  share(at, names = this.names) {
    const margin = Math.max(14, 40 / names.length);
    return names.length < 2 ? 50 : margin + (at / (names.length - 1)) * (100 - 2 * margin);
  }

  draw(row) {
    const { names } = this;
    const [, sender, to] = /(?:^|\s)(\S.*) → (.*)$/.exec(row[HOP]) ?? [null, ...(row[TO_AGENT] ? [names[0], names.at(-1)] : [names.at(-1), names[0]])];
    const [from, end] = [Math.max(names.indexOf(sender), 0), Math.max(names.indexOf(to), 0)];
    const [left, right] = [this.share(Math.min(from, end)), this.share(Math.max(from, end))];
    const place = { left: `${left}%`, width: `${Math.max(right - left, 4)}%` };
    const kind = category(row);
    const isAnswer = row[KIND] === ANSWER || row[KIND] === ERROR;
    return el("div", { class: "arrow-row" },
      names.map((name, at) => el("span", { class: "life", style: { left: `${this.share(at, names)}%` } })),
      el("span", { class: "when" }, clock(row[TIME])),
      el("span", { class: `words category-${kind}`, style: place }, row[RUN] > 1 ? `${row[WHAT]} ×${whole(row[RUN])} ` : `${row[WHAT]} `, el("span", { class: "detail" }, row[DETAIL].slice(0, 90))),
      el("span", { class: `shaft category-${kind} ${isAnswer ? "answer" : ""} ${end >= from ? "right" : "left"}`, style: place }),
      isAnswer && el("span", { class: "took" }, duration(row[LATENCY])),
    );
  }
}

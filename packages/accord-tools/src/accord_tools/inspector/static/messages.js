// The table of all messages. A run of chunks is one row until all messages are asked for.

import { el, sessionColour } from "./dom.js";
import { bytes, clock, duration, whole } from "./format.js";
import { DETAIL, FINDING, HOP, LATENCY, NUMBER, RUN, SESSION, SIZE, TIME, TO_AGENT, WHAT, category } from "./kinds.js";
import { VirtualList } from "./list.js";
import { askTrace } from "./source.js";
import { get, look, watch } from "./store.js";

const HEIGHT = 24;
const SLOW = 2;

/** A list over the rows of the view, which follows the message that is looked at. Messages and Sequence share it. */
export class RowList {
  constructor(draw, label) {
    this.list = new VirtualList({
      height: HEIGHT,
      label,
      load: (from, count, signal) => this.load(from, count, signal),
      draw,
      onchoose: (place, row) => {
        this.place = place;
        this.list.choose(place);
        look(row[NUMBER]);
      },
    });
    this.place = -1;
    this.note = el("p", { class: "empty", role: "status", hidden: true });
    this.nodes = [this.note, this.list.node];
    this.stop = watch((changed) => this.changed(changed));
    this.start();
  }

  close() {
    this.stop();
    this.list.close();
  }

  async load(from, count, signal) {
    const { trace, view } = get();
    const answer = await askTrace(trace, "rows", { from, n: count, view }, signal);
    if (answer.total !== this.list.total) this.list.setTotal(answer.total);
    return answer.rows;
  }

  total() {
    const { view, status, found } = get();
    if (view === "runs") return status?.runs ?? 0;
    return view === "all" ? (status?.count ?? 0) : (found ?? 0);
  }

  /** Say why there are no rows. */
  drawNote() {
    const { view, query, isSearched } = get();
    this.note.hidden = this.total() > 0;
    this.note.textContent = ["runs", "all"].includes(view) ? "The trace has no messages yet."
      : isSearched ? `No message fits ${query}. Escape in the search box shows all messages again; ? lists the filters.` : "Searching …";
  }

  async start() {
    this.list.clear(this.total());
    this.drawNote();
    await this.follow();
  }

  async changed(changed) {
    if (changed.has("trace") || changed.has("view") || changed.has("generation")) await this.start();
    else if (changed.has("row")) await this.follow();
    else if (["status", "found", "isSearched"].some((name) => changed.has(name))) {
      this.drawNote();
      const total = this.total();
      if (get().status.findings !== this.findings) this.list.refresh(); // rows show what the checks find
      this.findings = get().status.findings;
      if (total !== this.list.total) this.list.grow(total);
    }
  }

  /** Show the message that is looked at. */
  async follow() {
    const { trace, view, row } = get();
    if (!trace || !this.total() || row < 0) return;
    const loaded = this.list.pages.get(Math.floor(this.place / 100))?.[this.place % 100];
    if (loaded?.[NUMBER] !== row) {
      const { place } = await askTrace(trace, "place", { row, view });
      if (get().row !== row) return;
      this.place = Math.min(place, Math.max(this.list.total - 1, 0));
    }
    this.list.choose(this.place);
    this.list.show(this.place);
  }

  /** Look at the message so many rows further. */
  async move(by) {
    const place = Math.max(0, Math.min(this.place + by, this.list.total - 1));
    const row = await this.list.at(place);
    if (!row) return;
    this.place = place;
    this.list.choose(place);
    this.list.show(place);
    look(row[NUMBER]);
  }
}

/** The worst fault that the checks found in a row. */
export const badge = (severity) => severity && el("span", { class: `finding ${severity}`, title: "a fault, see the message" }, severity);

export class Messages {
  constructor(main) {
    this.rows = new RowList((row) => this.draw(row), "Messages");
    const heads = el("div", { class: "heads" }, ...["#", "time", "", "", "what", "what it says", "size", "took"].map((name) => el("span", {}, name)));
    main.append(heads, ...this.rows.nodes);
  }

  close() {
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

  draw(row) {
    const kind = category(row);
    return el("div", { class: "message" },
      el("span", { class: "number" }, whole(row[NUMBER])),
      el("span", { class: "time" }, clock(row[TIME])),
      el("span", { class: `arrow category-${kind}`, title: row[TO_AGENT] ? "to the agent" : "to the client" }, row[TO_AGENT] ? "→" : "←"),
      el("span", { class: "dot", style: { background: sessionColour(row[SESSION]) } }),
      el("span", { class: `what category-${kind}` }, row[WHAT]),
      el("span", { class: "detail" }, badge(row[FINDING]), row[RUN] > 1 && el("span", { class: "run" }, `×${whole(row[RUN])}`), row[HOP] && `[${row[HOP]}] `, row[DETAIL]),
      el("span", { class: "size" }, bytes(row[SIZE])),
      el("span", { class: row[LATENCY] > SLOW ? "took slow" : "took" }, duration(row[LATENCY])),
    );
  }
}

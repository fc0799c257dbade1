// The source of an exported page: the answers are in the page itself, packed with gzip.

import { readQuery } from "./query.js";

const OF_ROW = [0, 1, 2]; // number, time, direction
const MARKED = 2000;

export class Stored {
  constructor(packed) {
    this.packed = packed;
    this.searches = new Map();
  }

  async data() {
    this.unpacked ??= unpack(this.packed);
    return this.unpacked;
  }

  async ask(path, params = {}) {
    const data = await this.data();
    if (path === "traces") return [data.listed];
    const name = path.split("/")[2] ?? "";
    const question = this[`ask_${name || "summary"}`];
    if (!question) throw new Error("An exported page cannot answer this.");
    return question.call(this, data, params);
  }

  async agent() {
    return null;
  }

  async live() {} // an exported trace has ended

  ask_summary(data) {
    return data.summary;
  }

  view(data, name) {
    if (name === "runs") return data.runs;
    if (name === "all") return null;
    return this.searches.get(name);
  }

  ask_rows(data, { from, n, view = "runs" }) {
    const places = this.view(data, view);
    const total = places?.length ?? data.rows.length;
    const shown = Array.from({ length: Math.max(0, Math.min(n, total - from)) }, (_, at) => places?.[from + at] ?? from + at);
    if (view !== "runs") return { total, rows: shown.map((row) => data.rows[row]) };
    return { total, rows: shown.map((row, at) => this.run(data, row, (data.runs[from + at + 1] ?? data.rows.length) - row)) };
  }

  run(data, row, length) {
    const found = [...data.rows[row]];
    if (length > 1) [found[9], found[6]] = [length, data.texts[row] ?? found[6]];
    return found;
  }

  ask_place(data, { row, view = "runs" }) {
    const places = this.view(data, view);
    if (!places) return { place: row };
    let place = places.findIndex((it) => it > row);
    if (place < 0) place = places.length;
    return { place: view === "runs" ? place - 1 : Math.max(0, places[place - 1] === row ? place - 1 : place) };
  }

  ask_at(data, { time }) {
    const after = data.rows.findIndex((row) => row[OF_ROW[1]] > time);
    return { row: Math.max(0, (after < 0 ? data.rows.length : after) - 1) };
  }

  ask_frame(data, { row }) {
    return data.frames[row];
  }

  ask_turns(data, { from, n }) {
    return { total: data.turns.length, turns: data.turns.slice(from, from + n) };
  }

  ask_spans(data, { turn }) {
    return data.spans[turn];
  }

  ask_latency(data) {
    return data.latency;
  }

  /** The turn as it was at its end, without what began after this message. */
  ask_conversation(data, { row }) {
    const number = data.frames[row].part ?? data.turns.findLast((turn) => turn.first <= row)?.number;
    const found = data.conversations[number];
    if (!found) return { session: 0, turn: null, before: null, after: null, items: [], leftOut: 0, settings: {} };
    return { ...found, row, items: found.items.filter((item) => item.rows[0] <= row) };
  }

  ask_strip(data, { bins, view = "runs" }) {
    const begin = data.summary.begin;
    const end = data.summary.end;
    const place = (time) => Math.max(0, Math.min(bins - 1, Math.floor(((time - begin) / Math.max(end - begin, 1e-9)) * bins)));
    const found = { begin, end, counts: new Array(bins).fill(0), errors: new Array(bins).fill(0) };
    for (const row of data.rows) found.counts[place(row[OF_ROW[1]])] += 1;
    for (const row of data.errors) found.errors[place(data.rows[row][OF_ROW[1]])] += 1;
    const marked = this.searches.get(view);
    if (marked) {
      found.marks = new Array(bins).fill(0);
      for (const row of marked.slice(0, MARKED)) found.marks[place(data.rows[row][OF_ROW[1]])] += 1;
    }
    return found;
  }

  ask_search(data, { q }) {
    const fits = readQuery(q, data.summary);
    const found = data.frames.filter(fits).map((frame) => frame.number);
    const key = `q${q}`;
    this.searches.set(key, found);
    return { key, count: found.length, done: true };
  }
}

async function unpack(packed) {
  const data = Uint8Array.from(atob(packed.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([data]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

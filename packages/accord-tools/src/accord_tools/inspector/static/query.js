// The filter language of traces for an exported page, which has no server to ask: `method:prompt -status:ok "some words"`.
// It finds what `inspector.trace_search` finds; a test compares them. The keys and their units come from accord.trace.query.

import { ANSWER, BROKEN, ERROR, EVENT, NOTE, NOTIFICATION, REQUEST, STDERR } from "./kinds.js";

const KINDS = {
  request: [REQUEST],
  answer: [ANSWER, ERROR],
  error: [ERROR],
  notification: [NOTIFICATION],
  stderr: [STDERR],
  process: [EVENT],
  note: [NOTE],
  malformed: [BROKEN],
};
const UNITS = {
  dur: { s: 1, "": 1, ms: 1e-3, us: 1e-6, m: 60, min: 60, h: 3600 },
  size: { k: 1e3, "": 1, b: 1, kb: 1e3, m: 1e6, mb: 1e6 },
};
const DIRECTIONS = ["agent", "client", "in", "out"];
const WORD = /(-?)(?:([a-z]+):)?(?:"([^"]*)"?|([^"\s]\S*)?)/g;
const DEEP = 12;

/** A test of messages; throws an Error that says what is wrong with the query. */
export function readQuery(text, summary) {
  const tests = [...text.matchAll(WORD)].map(([, minus, key, quoted, plain]) => {
    const value = quoted ?? plain ?? "";
    if (!key && !value) return () => true;
    const fits = key ? filter(key, value, summary) : withText(value.toLowerCase());
    return minus ? (frame) => !fits(frame) : fits;
  });
  return (frame) => tests.every((fits) => fits(frame));
}

const withText = (text) => (frame) => `${frame.raw} ${frame.what} ${frame.detail}`.toLowerCase().includes(text);

function filter(key, value, summary) {
  const make = FILTERS[key];
  if (!make) throw new Error(`unknown filter ${key}: filters are ${Object.keys(FILTERS).join(", ")}; a text with a colon is quoted`);
  if (!value) throw new Error(`${key}: needs a value`);
  return make(value, value.toLowerCase(), summary);
}

const FILTERS = {
  method: (_, word) => (frame) => frame.method.toLowerCase().includes(word),
  kind: (_, word) => (frame) => KINDS[word]?.includes(frame.kind) || (frame.method === "session/update" && frame.what.toLowerCase().includes(word)),
  session: (_, word, summary) => {
    const named = new Set((summary.sessionList ?? []).filter((it) => it.name.toLowerCase().includes(word)).map((it) => it.number));
    return (frame) => named.has(frame.session);
  },
  dir: (value, _, summary) => {
    if (!DIRECTIONS.includes(value)) throw new Error(`dir: must be ${DIRECTIONS.join(", ")}`);
    const toAgent = { agent: true, client: false, in: summary.header.role === "agent", out: summary.header.role !== "agent" }[value];
    return (frame) => frame.toAgent === toAgent;
  },
  status: (value) => {
    const state = { ok: ANSWER, error: ERROR }[value];
    return state ? (frame) => frame.kind === state : (frame) => statuses(content(frame)).includes(value);
  },
  dur: (_, word) => {
    const holds = bound("dur", word);
    return (frame) => [ANSWER, ERROR].includes(frame.kind) && frame.latency !== null && holds(frame.latency);
  },
  size: (_, word) => {
    const holds = bound("size", word);
    return (frame) => holds(frame.size);
  },
  tool: (_, word) => (frame) => toolNames(content(frame)).some((name) => name.toLowerCase().includes(word)),
  path: (_, word) => {
    const patterns = [glob(word), glob(`*/${word}`)];
    return (frame) => paths(body(frame)).some((path) => patterns.some((it) => it.test(path.toLowerCase())));
  },
  turn: (value) => {
    if (!/^\d{1,9}$/.test(value)) throw new Error("turn: must be a number");
    return (frame) => frame.turn === Number(value);
  },
  has: (value) => {
    if (value !== "finding") throw new Error("has: must be finding");
    return (frame) => Boolean(frame.findings?.length);
  },
};

function bound(key, word) {
  const [, sign, number, unit] = /^([<>]?)=?(\d+(?:\.\d+)?)([a-z]*)$/.exec(word) ?? [];
  const factor = UNITS[key][unit];
  if (factor === undefined) throw new Error(`${key}: must be like ${key === "dur" ? ">2s or <10ms" : ">10k"}`);
  const limit = Number(number) * factor;
  return sign === "<" ? (value) => value <= limit : (value) => value >= limit;
}

/** What * and ? of a file name stand for. */
const glob = (pattern) => new RegExp(`^${pattern.replace(/[.+^${}()|[\]\\]/g, "\\$&").replaceAll("*", "[^]*").replaceAll("?", "[^]")}$`);

const object = (value) => (value && typeof value === "object" && !Array.isArray(value) ? value : {});

function body(frame) {
  try {
    const message = object(JSON.parse(frame.raw));
    return object(message.params ?? message.result);
  } catch {
    return {};
  }
}

function content(frame) {
  const found = body(frame);
  return found.update ? object(found.update) : found;
}

const words = (holder, names) => names.map((name) => holder[name]).filter((it) => typeof it === "string" && it);

const statuses = (found) => [found, object(found.toolCall)].flatMap((it) => words(it, ["status", "stopReason", "state"]));

function toolNames(found) {
  const call = found.toolCall ? object(found.toolCall) : found;
  return "toolCallId" in call ? words(call, ["kind", "title", "name", "toolCallId"]) : [];
}

function paths(value, depth = 0) {
  if (depth > DEEP) return [];
  if (Array.isArray(value)) return value.flatMap((item) => paths(item, depth + 1));
  return Object.entries(object(value)).flatMap(([name, member]) => (name === "path" && typeof member === "string" ? [member] : paths(member, depth + 1)));
}

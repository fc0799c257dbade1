// Two messages side by side, member by member: what differs is marked.

import { el } from "./dom.js";
import { clock, plural, whole } from "./format.js";
import { parsed } from "./detail.js";

const MOST = 400; // members that are shown
const DEEPEST = 24;
const LONGEST = 400;

/** The node of two messages; each is `{name, message}`, where `message` is an answer of the API to `frame`. */
export function frames(left, right) {
  const [a, b] = [left, right].map(({ message }) => parsed(message.raw));
  const head = ({ name, message }) => el("th", {}, `${name} #${whole(message.number)}`, el("div", {}, `${message.what}, ${clock(message.time)}`));
  const members = compared(a, b);
  const other = members.filter((it) => it.mark !== "same");
  const rows = shown(members).map(row);
  return el("table", { class: "frames" },
    el("caption", {}, other.length ? `${plural(other.length, "member")} of ${whole(members.length)} differ` : "Both messages are the same."),
    el("tr", {}, el("th", {}, "member"), head(left), head(right)), rows.slice(0, MOST),
    rows.length > MOST && el("tr", {}, el("td", { colspan: 3 }, `${whole(rows.length - MOST)} more`)));
}

/** The members of two values by their paths, in the order of the left one, with those of the right one alone after. */
export function compared(a, b) {
  const [left, right] = [flat(a), flat(b)];
  const paths = [...left.keys(), ...[...right.keys()].filter((path) => !left.has(path))];
  return paths.map((path) => {
    const [one, two] = [left.get(path), right.get(path)];
    return { path, one, two, mark: one === undefined ? "added" : two === undefined ? "removed" : one === two ? "same" : "changed" };
  });
}

/** What differs, with the members around it that are the same; the others as a count. */
function shown(members) {
  const near = members.map((_, at) => members.slice(Math.max(0, at - 1), at + 2).some((it) => it.mark !== "same"));
  const found = [];
  members.forEach((it, at) => {
    if (near[at] || members.length <= 12) found.push(it);
    else if (found.at(-1)?.count) found.at(-1).count += 1;
    else found.push({ count: 1 });
  });
  return found;
}

function row(it) {
  if (it.count) return el("tr", {}, el("td", { colspan: 3, class: "category-quiet" }, plural(it.count, "member"), " the same"));
  const text = (value) => (value === undefined ? "—" : value.length > LONGEST ? `${value.slice(0, LONGEST)}… (${whole(value.length)} characters)` : value);
  return el("tr", { class: it.mark }, el("th", {}, it.path), el("td", { class: "mono" }, text(it.one)), el("td", { class: "mono" }, text(it.two)));
}

/** Every member of a value by its path; the values as JSON. */
export function flat(value, path = "", found = new Map(), depth = 0) {
  if (value !== null && typeof value === "object" && depth < DEEPEST) {
    const names = Object.keys(value);
    if (!names.length) found.set(path, Array.isArray(value) ? "[]" : "{}");
    for (const name of names) flat(value[name], Array.isArray(value) ? `${path}[${name}]` : path ? `${path}.${name}` : name, found, depth + 1);
  } else found.set(path, depth < DEEPEST ? JSON.stringify(value) ?? "" : "…");
  return found;
}

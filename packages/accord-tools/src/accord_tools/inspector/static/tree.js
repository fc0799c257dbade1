// JSON as a tree whose branches are made when they are opened: a message may be nested ten thousand levels deep.

import { el } from "./dom.js";

const MOST = 200; // members that are shown at first
const LONGEST = 2_000; // characters of a string that are shown at first

/** The node of a JSON value. `open` says how many levels are open. */
export function tree(value, open = 2) {
  return el("div", { class: "tree" }, branch(null, value, open));
}

function branch(name, value, open) {
  const label = name === null ? [] : [el("span", { class: "name" }, name), ": "];
  if (value === null || typeof value !== "object") return el("div", {}, label, leaf(value));
  const names = Object.keys(value);
  const [left, right] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  if (!names.length) return el("div", {}, label, left, right);
  const inner = el("div", { class: "tree" });
  let isOpen = false;
  const button = el("button", { type: "button", "aria-expanded": "false" });
  const toggle = () => {
    isOpen = !isOpen;
    button.textContent = isOpen ? `▾ ${left}` : `▸ ${left} ${names.length} ${right}`;
    button.setAttribute("aria-expanded", String(isOpen));
    inner.replaceChildren();
    if (isOpen) fill(inner, value, names, 0, open - 1);
  };
  button.addEventListener("click", toggle);
  const node = el("div", {}, label, button, inner);
  button.textContent = `▸ ${left} ${names.length} ${right}`;
  if (open > 0) toggle();
  return node;
}

function fill(inner, value, names, from, open) {
  const end = Math.min(names.length, from + MOST);
  inner.append(...names.slice(from, end).map((name) => branch(name, value[name], open)));
  if (end < names.length) {
    const more = el("button", { type: "button" }, `… ${names.length - end} more`);
    more.addEventListener("click", () => {
      more.remove();
      fill(inner, value, names, end, 0);
    });
    inner.append(more);
  }
}

function leaf(value) {
  if (typeof value !== "string") return el("span", { class: typeof value === "number" ? "number" : "word" }, String(value));
  const node = el("span", { class: "string" }, JSON.stringify(value.slice(0, LONGEST)));
  if (value.length <= LONGEST) return node;
  const more = el("button", { type: "button" }, `… ${(value.length - LONGEST).toLocaleString("en")} more characters`);
  more.addEventListener("click", () => {
    node.textContent = JSON.stringify(value);
    more.remove();
  });
  return el("span", {}, node, more);
}

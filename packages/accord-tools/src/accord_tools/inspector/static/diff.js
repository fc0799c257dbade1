// A change of a file, line by line.

import { el } from "./dom.js";

const MOST = 1_200; // lines of each side that are compared; of longer ones only the beginnings and ends that agree
const AROUND = 3;

/** The node of a change from one text to another. */
export function diff(path, before, after) {
  const lines = compared((before ?? "").split("\n"), (after ?? "").split("\n"));
  const node = el("div", { class: "diff" }, el("div", { class: "path" }, path));
  let skipped = 0;
  lines.forEach(([mark, text], at) => {
    const isNear = mark !== " " || lines.slice(Math.max(0, at - AROUND), at + AROUND + 1).some(([it]) => it !== " ");
    if (!isNear) {
      skipped += 1;
      return;
    }
    if (skipped) node.append(el("div", { class: "skipped" }, `${skipped} unchanged lines`));
    skipped = 0;
    node.append(el("div", { class: mark === "+" ? "line added" : mark === "-" ? "line removed" : "line" }, `${mark} ${text}`));
  });
  if (skipped) node.append(el("div", { class: "skipped" }, `${skipped} unchanged lines`));
  return node;
}

function compared(before, after) {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1;
  let end = 0;
  while (end < before.length - start && end < after.length - start && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  const same = (lines) => lines.map((line) => [" ", line]);
  const [left, right] = [before.slice(start, before.length - end), after.slice(start, after.length - end)];
  const middle = left.length > MOST || right.length > MOST
    ? [...left.slice(0, MOST).map((line) => ["-", line]), ...right.slice(0, MOST).map((line) => ["+", line])]
    : longest(left, right);
  return [...same(before.slice(0, start)), ...middle, ...same(end ? before.slice(-end) : [])];
}

/** The changes around the longest common subsequence. */
function longest(left, right) {
  const width = right.length + 1;
  const lengths = new Uint16Array((left.length + 1) * width);
  for (let a = left.length - 1; a >= 0; a -= 1) {
    for (let b = right.length - 1; b >= 0; b -= 1) {
      lengths[a * width + b] = left[a] === right[b] ? lengths[(a + 1) * width + b + 1] + 1 : Math.max(lengths[(a + 1) * width + b], lengths[a * width + b + 1]);
    }
  }
  const found = [];
  let [a, b] = [0, 0];
  while (a < left.length || b < right.length) {
    if (a < left.length && b < right.length && left[a] === right[b]) {
      found.push([" ", left[a]]);
      [a, b] = [a + 1, b + 1];
    } else if (b >= right.length || (a < left.length && lengths[(a + 1) * width + b] >= lengths[a * width + b + 1])) {
      found.push(["-", left[a]]);
      a += 1;
    } else {
      found.push(["+", right[b]]);
      b += 1;
    }
  }
  return found;
}

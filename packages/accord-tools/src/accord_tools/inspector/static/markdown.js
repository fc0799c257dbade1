// Markdown as nodes: headings, lists, tables, quotes, code, emphasis and links. All else stays the text that it is.
// Links show where they lead, and lead there only from the page of a user who clicks.

import { el } from "./dom.js";

const INLINE = /(`+)([^`]+?)\1|\*\*([^*]+)\*\*|\*([^*\s][^*]*)\*|\[([^\]]+)\]\((https?:\/\/[^\s)]+)\)/g;

export function markdown(text) {
  const node = el("div", { class: "markdown" });
  const lines = text.split("\n");
  let at = 0;
  while (at < lines.length) {
    const line = lines[at];
    const fence = /^\s*(```+|~~~+)/.exec(line);
    if (fence) {
      let end = at + 1;
      while (end < lines.length && !lines[end].trim().startsWith(fence[1])) end += 1;
      node.append(el("pre", {}, lines.slice(at + 1, end).join("\n")));
      at = end + 1;
    } else if (!line.trim()) {
      at += 1;
    } else if (isTable(lines, at)) {
      at = table(node, lines, at);
    } else if (/^#{1,6} /.test(line)) {
      node.append(el(`h${Math.min(/^#+/.exec(line)[0].length, 4)}`, {}, inline(line.replace(/^#+ /, ""))));
      at += 1;
    } else {
      at = block(node, lines, at);
    }
  }
  return node;
}

const RULE = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/; // below the head of a table

const isTable = (lines, at) => lines[at].includes("|") && RULE.test(lines[at + 1] ?? "");

function table(node, lines, start) {
  const cells = (line) => line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((cell) => inline(cell.trim().replaceAll("\\|", "|")));
  const width = cells(lines[start]).length;
  let end = start + 2;
  while (end < lines.length && lines[end].includes("|")) end += 1;
  const rows = lines.slice(start + 2, end).map((line) => el("tr", {}, cells(line).slice(0, width).map((cell) => el("td", {}, cell))));
  node.append(el("table", {}, el("tr", {}, cells(lines[start]).map((cell) => el("th", {}, cell))), rows));
  return end;
}

const STARTS = [
  [/^\s*[-*+] /, "ul"],
  [/^\s*\d+[.)] /, "ol"],
  [/^\s*> ?/, "blockquote"],
];

function block(node, lines, start) {
  const [pattern, tag] = STARTS.find(([it]) => it.test(lines[start])) ?? [null, "p"];
  let end = start;
  const isPart = (line) => (pattern ? pattern.test(line) : line.trim() && !STARTS.some(([it]) => it.test(line)) && !/^#{1,6} |^\s*(```|~~~)/.test(line));
  while (end < lines.length && isPart(lines[end]) && !(end > start && isTable(lines, end))) end += 1;
  const part = lines.slice(start, end).map((line) => (pattern ? line.replace(pattern, "") : line));
  if (tag === "ul" || tag === "ol") node.append(el(tag, {}, part.map((line) => el("li", {}, inline(line)))));
  else node.append(el(tag, {}, part.flatMap((line, place) => (place ? [el("br"), ...inline(line)] : inline(line)))));
  return end;
}

function inline(text) {
  const found = [];
  let at = 0;
  for (const match of text.matchAll(INLINE)) {
    if (match.index > at) found.push(text.slice(at, match.index));
    found.push(styled(match));
    at = match.index + match[0].length;
  }
  if (at < text.length) found.push(text.slice(at));
  return found;
}

function styled([, , code, strong, emphasis, label, target]) {
  if (code !== undefined) return el("code", {}, code);
  if (strong !== undefined) return el("b", {}, strong);
  if (emphasis !== undefined) return el("i", {}, emphasis);
  return el("span", {}, el("a", { href: target, rel: "noopener noreferrer nofollow", target: "_blank" }, label), " ", el("span", { class: "target" }, `(${target})`));
}

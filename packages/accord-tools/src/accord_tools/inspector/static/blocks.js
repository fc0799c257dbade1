// Content of the protocol as nodes: text, images, resources, tool calls. Members may be missing or of any type.

import { diff } from "./diff.js";
import { el } from "./dom.js";
import { markdown } from "./markdown.js";
import { tree } from "./tree.js";

const LONGEST = 20_000;
const PICTURES = /^image\/(png|jpeg|gif|webp|svg\+xml|avif|bmp)$/;

const text = (value) => (typeof value === "string" ? value : "");
const list = (value) => (Array.isArray(value) ? value : []);

/** The nodes of content blocks. */
export const blocks = (content) => list(content).map(block);

export function block(value) {
  switch (value?.type) {
    case "text":
      return markdown(shortened(text(value.text)));
    case "image":
      return picture(value);
    case "resource_link":
      return el("p", {}, "🔗 ", el("b", {}, text(value.name)), ` ${text(value.uri)}`);
    case "resource":
      return el("div", {}, el("p", {}, "📄 ", text(value.resource?.uri)), typeof value.resource?.text === "string" && el("pre", { class: "output" }, shortened(value.resource.text)));
    default:
      return tree(value, 1);
  }
}

const shortened = (value) => (value.length > LONGEST ? `${value.slice(0, LONGEST)}\n… ${(value.length - LONGEST).toLocaleString("en")} more characters` : value);

/** An image as a picture and never as markup: an SVG in an `img` runs no scripts and loads nothing. */
function picture(value) {
  const type = text(value.mimeType);
  try {
    if (!PICTURES.test(type)) throw new TypeError(type);
    const data = Uint8Array.from(atob(text(value.data)), (letter) => letter.charCodeAt(0));
    const url = URL.createObjectURL(new Blob([data], { type }));
    return el("img", { class: "picture", src: url, alt: `image, ${type}`, onload: () => URL.revokeObjectURL(url) });
  } catch {
    return el("p", {}, `[an image that cannot be shown: ${type}]`);
  }
}

/** What a lent command has written, and how it ended. */
export function terminal(id, { output, exitCode, signal } = {}) {
  const ended = ending({ exitCode, signal });
  return el("div", {}, el("p", {}, `▣ terminal ${id}`, ended && el("span", { class: exitCode === 0 ? "" : "category-error" }, `, ${ended}`)), output ? el("pre", { class: "output" }, output) : null);
}

/** How a command ended, in words; nothing while it runs. */
const ending = ({ exitCode, signal }) => (signal ? `ended by ${text(signal)}` : Number.isInteger(exitCode) ? `exit code ${exitCode}` : "");

/** Badges of the commands of a tool call that failed, whatever status the agent gave the call. */
export const failures = (terminals = {}) => Object.values(terminals).filter((it) => it.signal || it.exitCode > 0).map((it) => el("span", { class: "status failed" }, ending(it)));

/** What a tool call has produced; `terminals` has the output of lent commands by their ids. */
export function toolContent(parts, terminals = {}) {
  return list(parts).map((part) => {
    if (part?.type === "content") return block(part.content);
    if (part?.type === "diff" && typeof part.newText === "string") return diff(text(part.path), text(part.oldText), part.newText);
    if (part?.type === "terminal") return terminal(text(part.terminalId), terminals[part.terminalId]);
    return tree(part, 1);
  });
}

/** What a tool call does, and its kind unless its title begins with it. */
export const toolTitle = ({ title, kind, id, toolCallId }) => [
  el("b", {}, text(title) || text(id ?? toolCallId)), text(kind) && !text(title).toLowerCase().startsWith(kind) && el("span", { class: "category-quiet" }, ` ${kind}`)];

/** The status of a tool call as a badge. */
export const statusBadge = (status) => el("span", { class: `status ${/^[a-z_]+$/.test(status) ? status : ""}` }, text(status).replaceAll("_", " "));

/** The steps of a plan. */
export function plan(entries) {
  const marks = { completed: "✓", in_progress: "▸" };
  return el("ul", { class: "plan" }, list(entries).map((entry) => el("li", { class: /^[a-z_]+$/.test(entry?.status) ? entry.status : "" }, `${marks[entry?.status] ?? "·"} ${text(entry?.content)}`)));
}

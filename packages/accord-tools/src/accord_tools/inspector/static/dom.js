// Nodes without markup: all text of a trace becomes text nodes, so nothing in it can act on the page.

/** Make an element: `el("b", {class: "name", onclick: f}, "text", node)`. */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.className = value;
    else if (name === "style") Object.assign(node.style, value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export const byId = (id) => document.getElementById(id);

/** The value of a colour of the style sheet, for canvases. */
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** Make a canvas as large as it is shown, in device pixels; returns its context, in CSS pixels. */
export function fitted(canvas, height) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

const SESSION_COLOURS = ["#4c8bf5", "#e08a1e", "#2fa36b", "#b45fd1", "#d9534f", "#17a2b8", "#8a8d2b", "#e45c96"];

/** The colour of a session; sessions far apart may share one. */
export const sessionColour = (number) => (number ? SESSION_COLOURS[(number - 1) % SESSION_COLOURS.length] : "transparent");

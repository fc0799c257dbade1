// Sending: a form for each method of the agent that this inspector has started; what goes over the connection below it.

import { el } from "./dom.js";
import { Messages } from "./messages.js";
import { source } from "./source.js";
import { get } from "./store.js";
import { tree } from "./tree.js";

export class Send {
  constructor(main) {
    this.agent = get().agent;
    this.method = el("select", { "aria-label": "Method", onchange: () => this.choose() }, this.agent.methods.map((it, at) => el("option", { value: at }, it.method)));
    this.fields = el("div", { class: "fields" });
    this.json = el("textarea", { "aria-label": "Params as JSON", rows: 6, spellcheck: "false", oninput: () => this.fill() });
    this.button = el("button", { type: "submit" }, "Send");
    this.answer = el("div", { class: "answer", role: "status" });
    const form = el("form", { onsubmit: (event) => this.send(event) }, el("p", {}, this.method, " ", this.button), el("p", { class: "category-quiet" }, (this.about = el("span"))), this.fields, this.json);
    main.append(el("div", { class: "send", tabindex: 0 }, form, this.answer));
    this.messages = new Messages(main);
    this.method.value = Math.max(this.agent.methods.findIndex((it) => it.method === "session/new"), 0);
    this.choose();
  }

  close() {
    this.messages.close();
  }

  move(by) {
    return this.messages.move(by);
  }

  get page() {
    return this.messages.page;
  }

  get length() {
    return this.messages.length;
  }

  get chosen() {
    return this.agent.methods[this.method.value];
  }

  /** Show the form of the chosen method, with the params that it requires. */
  choose() {
    const { properties = {}, required = [], description = "" } = this.schema({ $ref: `#/$defs/${this.chosen.params}` });
    this.about.textContent = `${description} ${this.chosen.answers ? "" : "A notification: it has no answer."}`;
    const params = Object.fromEntries(required.map((name) => [name, this.initial(name, this.schema(properties[name]))]));
    this.json.value = JSON.stringify(params, null, 2);
    this.fields.replaceChildren(...Object.keys(properties).filter((name) => name !== "_meta").map((name) => this.field(name, this.schema(properties[name]), required.includes(name))));
    this.fill();
  }

  /** A schema without references and without null. */
  schema(given) {
    const parts = given?.anyOf?.filter((it) => it.type !== "null");
    if (parts?.length === 1) return { ...this.schema(parts[0]) };
    const name = /^#\/\$defs\/(.+)$/.exec(given?.$ref)?.[1];
    return name ? this.schema(this.agent.definitions[name] ?? {}) : given ?? {};
  }

  /** What a required param is at first: the newest session, the agent's folder, a prompt to change. */
  initial(name, { type }) {
    if (name === "sessionId") return get().summary?.sessionList?.at(-1)?.name ?? "";
    if (name === "cwd") return this.agent.folder;
    if (name === "prompt") return [{ type: "text", text: "Hello" }];
    return { array: [], object: {}, boolean: false, integer: 0, number: 0 }[type] ?? "";
  }

  field(name, schema, isRequired) {
    const words = schema.enum ?? schema.anyOf?.map((it) => it.const).filter((it) => it !== undefined) ?? [];
    const change = (event) => this.change(name, schema, event.target);
    const plain = { integer: "number", number: "number", boolean: "checkbox", string: "text" }[schema.type];
    const input = words.length ? el("select", { onchange: change }, ["", ...words].map((word) => el("option", {}, String(word))))
      : el("input", { type: plain ?? "text", oninput: change, placeholder: plain ? "" : "JSON", autocomplete: "off" });
    input.name = name;
    input.dataset.json = plain || words.length ? "" : "yes";
    return el("label", {}, el("span", {}, name, isRequired ? " *" : ""), input, el("span", { class: "category-error", role: "status" }));
  }

  /** Take a field into the JSON; an empty one is left out, and one that does not fit says what would. */
  change(name, schema, input) {
    const params = parsed(this.json.value);
    if (params === undefined) return;
    const isNumber = input.type === "number";
    const value = input.type === "checkbox" ? input.checked : input.dataset.json ? this.read(input.value, schema) : isNumber ? Number(input.value) : input.value;
    if (value === undefined || (input.value === "" && input.type !== "checkbox")) delete params[name];
    else params[name] = value;
    mark(input, value === undefined && input.value !== "" ? `This must be JSON: ${schema.type === "array" ? "a list, [ … ]" : "an object, { … }"}` : "");
    this.json.value = JSON.stringify(params, null, 2);
    this.check();
  }

  /** What a text means where this schema is wanted: JSON, a text as content or as a string; undefined if it fits none. */
  read(text, schema) {
    const value = parsed(text);
    const kinds = schema.anyOf?.map((it) => this.schema(it).type) ?? [schema.type];
    const kind = Array.isArray(value) ? "array" : value === null ? "null" : typeof value;
    if (kinds.includes(kind) || kinds.includes(undefined)) return value;
    if (kinds.includes("string")) return text;
    const isContent = schema.items?.$ref === "#/$defs/ContentBlock";
    if (isContent && kind === "object") return [value];
    return isContent && !/^\s*[[{]/.test(text) ? [{ type: "text", text }] : undefined;  }

  /** Take the JSON into the fields. */
  fill() {
    const params = parsed(this.json.value);
    this.check();
    for (const input of params ? this.fields.querySelectorAll("[name]") : []) {
      const value = params[input.name];
      mark(input, "");
      if (input.type === "checkbox") input.checked = value === true;
      else input.value = value === undefined ? "" : input.dataset.json ? JSON.stringify(value) : String(value);
    }
  }

  check() {
    const isJson = parsed(this.json.value) !== undefined;
    this.json.setAttribute("aria-invalid", String(!isJson));
    this.button.disabled = !isJson || this.fields.querySelector('[aria-invalid="true"]') !== null;
    this.answer.replaceChildren(isJson ? "" : el("p", { class: "category-error" }, "The params are not a JSON object."));
  }

  async send(event) {
    event.preventDefault();
    const { method, answers } = this.chosen;
    this.answer.replaceChildren(el("p", { class: "category-quiet" }, answers ? `${method}: waiting for the answer …` : `${method} was sent.`));
    const found = await source.send({ method, answers, params: parsed(this.json.value) }).catch((error) => ({ error: { message: error.message } }));
    if (!answers && !found.error) return;
    this.answer.replaceChildren(el("p", { class: found.error ? "category-error" : "" }, found.error ? `${method}: ${found.error.code ?? ""} ${found.error.message}` : `${method}: answered`), tree(found.error?.data ?? found.result ?? null, 2));
  }
}

/** Say beside a field why it does not fit; nothing if it does. */
function mark(input, problem) {
  input.setAttribute("aria-invalid", String(problem !== ""));
  input.nextSibling.textContent = problem;
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

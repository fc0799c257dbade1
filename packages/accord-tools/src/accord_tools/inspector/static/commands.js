// Everything that can be done, with its key: the keyboard, the palette and the help are made from one table.

import { byId, el } from "./dom.js";
import { get } from "./store.js";

/** One command: `name` for people, `keys` that do it, and `run`. */
export class Commands {
  constructor(table) {
    this.table = table;
    this.byKey = new Map(table.flatMap((command) => command.keys.map((key) => [key, command])));
    document.addEventListener("keydown", (event) => this.pressed(event));
    byId("palette-button").addEventListener("click", () => this.openPalette());
  }

  pressed(event) {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      this.openPalette();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea, dialog")) return;
    if ((event.key === "Enter" || event.key === " ") && event.target.closest("button, summary")) return;
    const command = this.byKey.get(event.key);
    if (!command) return;
    event.preventDefault();
    command.run();
  }

  openPalette() {
    const dialog = byId("palette");
    const input = el("input", { type: "text", placeholder: "What do you want to do?", "aria-label": "Command", autocomplete: "off", role: "combobox", "aria-expanded": "true", "aria-controls": "commands" });
    const list = el("ul", { role: "listbox", id: "commands", "aria-label": "Commands", tabindex: 0 });
    let [shown, chosen] = [[], 0];
    const draw = () => {
      const wanted = input.value.toLowerCase();
      shown = this.table.filter((command) => command.name.toLowerCase().includes(wanted));
      chosen = Math.max(0, Math.min(chosen, shown.length - 1));
      list.replaceChildren(...shown.map((command, at) => el("li", { class: at === chosen ? "chosen" : "", role: "option", id: `command-${at}`, "aria-selected": String(at === chosen), onclick: () => run(command) }, command.name, el("span", {}, command.keys.map((key) => el("kbd", {}, named(key)))))));
      input.setAttribute("aria-activedescendant", `command-${chosen}`);
    };
    const run = (command) => {
      dialog.close();
      command?.run();
    };
    input.addEventListener("input", draw);
    input.addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        event.preventDefault();
        chosen += event.key === "ArrowDown" ? 1 : -1;
        draw();
        list.children[chosen]?.scrollIntoView({ block: "nearest" });
      } else if (event.key === "Enter") {
        event.preventDefault();
        run(shown[chosen]);
      }
    });
    dialog.replaceChildren(input, list);
    draw();
    dialog.showModal();
    input.focus();
  }

  openHelp() {
    const dialog = byId("help");
    const rows = this.table.flatMap((command) => [el("dt", {}, command.keys.map((key) => [el("kbd", {}, named(key)), " "])), el("dd", {}, command.name)]);
    dialog.replaceChildren(
      el("button", { type: "button", class: "close", onclick: () => dialog.close() }, "Close"), el("h2", {}, "Keys"), el("dl", {}, rows, el("dt", {}, el("kbd", {}, "Ctrl-K")), el("dd", {}, "All commands")),
      el("h2", {}, "Search"),
      el("p", {}, "All have to hold; a minus before one negates it."),
      el("dl", {}, (get().summary?.filters ?? []).map(([example, shows]) => [el("dt", {}, el("code", {}, example)), el("dd", {}, shows)])));
    dialog.showModal();
    dialog.scrollTop = 0;
  }
}

const NAMES = { ArrowDown: "↓", ArrowUp: "↑", PageDown: "Page ↓", PageUp: "Page ↑" };
const named = (key) => NAMES[key] ?? key;

// The search box: what it finds is a view of its own; n and N go through it.

import { byId } from "./dom.js";
import { plural, whole } from "./format.js";
import { askTrace } from "./source.js";
import { get, set, watch } from "./store.js";

const PAUSE = 180; // milliseconds without a key before a search begins

export class SearchBox {
  constructor() {
    this.input = byId("search").querySelector("input");
    this.output = byId("search").querySelector("output");
    this.input.addEventListener("input", () => this.later());
    this.input.addEventListener("keydown", (event) => this.pressed(event));
    watch((changed) => {
      if (changed.has("trace")) this.clear();
      else if (changed.has("status") && this.query && !this.running) this.run();
    });
  }

  focus() {
    this.input.focus();
    this.input.select();
  }

  search(query) {
    this.input.value = query;
    this.later();
  }

  clear() {
    this.input.value = "";
    this.query = "";
    this.output.textContent = "";
    set({ view: "runs", query: "", found: 0 });
  }

  pressed(event) {
    if (event.key === "Escape") {
      this.clear();
      byId("main").focus();
    } else if (event.key === "Enter") {
      event.preventDefault();
      clearTimeout(this.timer);
      byId("main").focus(); // now, and not when all is searched: the next key goes through what is found
      this.run();
    }
  }

  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.run(), PAUSE);
  }

  /** Search until all is searched, and show what is found meanwhile. */
  async run() {
    const query = this.input.value.trim();
    const isNew = query !== this.query;
    this.query = query;
    this.output.classList.remove("bad");
    if (!query) return this.clear();
    this.request?.abort();
    this.request = new AbortController();
    this.running = true;
    try {
      for (let isDone = false, isFirst = true; !isDone; isFirst = false) {
        const found = await askTrace(get().trace, "search", { q: query }, this.request.signal);
        isDone = found.done;
        this.output.textContent = found.count || !isDone ? `${whole(found.count)}${isDone ? "" : " …"}` : "no match";
        this.output.title = plural(found.count, "message");
        const tab = isNew && isFirst && !["messages", "sequence"].includes(get().tab) ? "messages" : get().tab;
        set({ view: found.key, found: found.count, isSearched: isDone, query, tab });
      }
    } catch (error) {
      if (error.name !== "AbortError") {
        this.output.textContent = error.message;
        this.output.classList.add("bad");
      }
    } finally {
      this.running = false;
    }
  }
}

// A list of any length that makes nodes only for the rows that are seen.
//
// Browsers limit the height of an element (Firefox to 17.9 million pixels). So the spacer has a bounded height; beyond
// it a scroll position is a share of the list, and the wheel moves by rows. A layer that stays in place holds the rows.

const HIGHEST = 8_000_000;
const PAGE = 100;
const KEPT = 40;

export class VirtualList {
  /** `load(from, count)` gives a promise of rows; `draw(row, place)` gives the node of one. */
  constructor({ height, load, draw, onchoose = () => {}, label }) {
    Object.assign(this, { height, load, draw, onchoose });
    this.total = 0;
    this.top = 0;
    this.chosen = -1;
    this.pages = new Map();
    this.asked = new Map();
    this.stale = new Set();
    this.node = document.createElement("div");
    this.node.className = "list";
    this.node.tabIndex = 0;
    this.node.setAttribute("role", "listbox");
    this.node.setAttribute("aria-label", label);
    this.layer = document.createElement("div");
    this.layer.className = "layer";
    this.spacer = document.createElement("div");
    this.node.append(this.layer, this.spacer);
    this.node.addEventListener("scroll", () => this.scrolled());
    this.node.addEventListener("wheel", (event) => this.wheeled(event), { passive: false });
    this.sizes = new ResizeObserver(() => this.resized());
    this.sizes.observe(this.node);
    this.queued = false;
  }

  close() {
    this.sizes.disconnect();
    for (const request of this.asked.values()) request.abort();
  }

  /** The chosen row stays in sight when the list becomes lower. */
  resized() {
    const isSeen = this.chosen >= Math.floor(this.top) && this.chosen < this.top + (this.shown ?? Infinity);
    this.shown = Math.max(1, Math.floor(this.node.clientHeight / this.height));
    this.setTotal(this.total);
    if (isSeen) this.show(this.chosen);
  }

  get isScaled() {
    return this.total * this.height > HIGHEST;
  }

  get last() {
    return Math.max(0, this.total - (this.shown ?? 1));
  }

  setTotal(total) {
    this.total = total;
    this.spacer.style.height = `${Math.min(total * this.height, HIGHEST)}px`;
    this.top = Math.min(this.top, this.last);
    this.queue();
  }

  /** Forget all rows: they mean something else now. */
  clear(total) {
    this.pages.clear();
    this.stale.clear();
    for (const request of this.asked.values()) request.abort();
    this.asked.clear();
    this.top = 0;
    this.node.scrollTop = 0;
    this.setTotal(total);
  }

  /** The list has more rows now, and its last page may have been incomplete. */
  grow(total) {
    this.stale.add(Math.floor(Math.max(this.total - 1, 0) / PAGE));
    this.setTotal(total);
  }

  /** Load all rows again; those that are shown stay until then. */
  refresh() {
    for (const page of this.pages.keys()) this.stale.add(page);
    this.queue();
  }

  scrolled() {
    const position = this.node.scrollTop;
    if (this.expected !== undefined && Math.abs(position - this.expected) < 2) {
      this.expected = undefined;
      return;
    }
    this.expected = undefined;
    const most = this.node.scrollHeight - this.node.clientHeight;
    this.top = this.isScaled ? Math.round((position / Math.max(most, 1)) * this.last) : position / this.height;
    this.queue();
  }

  wheeled(event) {
    if (!this.isScaled || event.ctrlKey) return;
    event.preventDefault();
    const rows = event.deltaMode === 1 ? event.deltaY : event.deltaY / this.height;
    this.scrollTo(this.top + rows);
  }

  scrollTo(top) {
    this.top = Math.max(0, Math.min(top, this.last));
    const most = Math.min(this.total * this.height, HIGHEST) - this.node.clientHeight;
    const position = this.isScaled ? (this.top / Math.max(this.last, 1)) * most : this.top * this.height;
    if (Math.abs(position - this.node.scrollTop) >= 1) {
      this.node.scrollTop = position;
      this.expected = this.node.scrollTop;
    }
    this.queue();
  }

  /** Scroll until this place is seen, with a few rows around it. */
  show(place) {
    const around = Math.min(4, Math.floor((this.shown ?? 1) / 3));
    if (place < this.top + around) this.scrollTo(place - around);
    else if (place > this.top + (this.shown ?? 1) - 1 - around) this.scrollTo(place - (this.shown ?? 1) + 1 + around);
    this.queue();
  }

  choose(place) {
    this.chosen = place;
    this.queue();
  }

  /** The row at a place, once it is loaded. */
  async at(place) {
    const page = Math.floor(place / PAGE);
    if (!this.pages.has(page)) await this.fetch(page);
    return this.pages.get(page)?.[place - page * PAGE];
  }

  queue() {
    if (this.queued) return;
    this.queued = true;
    requestAnimationFrame(() => {
      this.queued = false;
      this.paint();
    });
  }

  paint() {
    const first = Math.floor(this.top);
    const end = Math.min(this.total, first + (this.shown ?? 1) + 2);
    const wanted = new Set();
    const nodes = [];
    for (let place = first; place < end; place += 1) {
      const page = Math.floor(place / PAGE);
      wanted.add(page);
      nodes.push(this.rowNode(place, this.pages.get(page)?.[place - page * PAGE], (place - this.top) * this.height));
    }
    this.layer.replaceChildren(...nodes);
    for (const [page, request] of this.asked) {
      if (!wanted.has(page)) {
        request.abort(); // overtaken by scrolling
        this.asked.delete(page);
      }
    }
    for (const page of wanted) if (!this.pages.has(page) || this.stale.has(page)) this.fetch(page);
  }

  rowNode(place, row, y) {
    const node = document.createElement("div");
    node.className = place === this.chosen ? "row chosen" : "row";
    node.style.transform = `translateY(${y}px)`;
    node.style.height = `${this.height}px`;
    node.setAttribute("role", "option");
    node.setAttribute("aria-selected", String(place === this.chosen));
    if (row) {
      node.append(this.draw(row, place));
      node.addEventListener("click", () => this.onchoose(place, row));
    }
    return node;
  }

  async fetch(page) {
    if (this.asked.has(page)) return this.asked.get(page).answer;
    const request = new AbortController();
    this.stale.delete(page);
    request.answer = this.load(page * PAGE, PAGE, request.signal).then(
      (rows) => {
        if (this.asked.get(page) !== request) return;
        this.pages.delete(page); // so that it becomes the newest
        this.pages.set(page, rows);
        if (this.pages.size > KEPT) this.pages.delete(this.pages.keys().next().value);
        this.queue();
      },
      () => {}, // overtaken, or told elsewhere
    ).finally(() => {
      if (this.asked.get(page) === request) this.asked.delete(page);
    });
    this.asked.set(page, request);
    return request.answer;
  }
}

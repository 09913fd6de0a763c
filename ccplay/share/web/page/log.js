// The event log up to the moment shown.

import { make } from "./dom.js";
import { clock } from "./format.js";

export class Log {
  constructor() {
    this.list = document.getElementById("log");
    this.reset([]);
  }

  reset(rows) {
    this.byNumber = new Map();
    this.rows = [];
    this.shown = "";
    this.take(rows);
  }

  /** Take rows of number, moment, kind, text and whether plots mark it; return the new ones. */
  take(rows) {
    const fresh = rows.filter(([number]) => !this.byNumber.has(number));
    for (const row of rows) this.byNumber.set(row[0], row);
    while (this.byNumber.size > 500) this.byNumber.delete(this.byNumber.keys().next().value);
    this.rows = [...this.byNumber.values()].sort((a, b) => a[1] - b[1]);
    this.shown = "";
    return fresh;
  }

  update(t) {
    const seen = this.rows.filter(([, at]) => at <= t + 1e-3).slice(-120);
    const key = `${seen.length} ${seen.at(-1)?.[0]} ${this.rows.length}`;
    if (key === this.shown) return;
    this.shown = key;
    const atEnd = this.list.scrollHeight - this.list.scrollTop - this.list.clientHeight < 40;
    this.list.replaceChildren(...seen.map(([, at, kind, text]) => {
      const item = make("li");
      item.append(make("time", clock(at, true)), make("span", text, kind));
      return item;
    }));
    if (atEnd) this.list.scrollTop = this.list.scrollHeight;
  }
}

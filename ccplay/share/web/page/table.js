// The table of traffic: a row for each flow at the moment shown, and a line for each other traffic.

import { make, put } from "./dom.js";
import { rate, write } from "./format.js";
import { flowInk } from "./look.js";

const LINGERS_S = 10;
const WHOLE = { digits: 0 };

export class Table {
  constructor(page, choose) {
    this.page = page;
    this.choose = choose;
    this.body = document.querySelector("#table tbody");
    this.rows = new Map();
  }

  update() {
    const { facts, view } = this.page, t = view.t;
    const there = facts.flows.filter((flow) => flow.from <= t && (flow.until === null || t < flow.until + LINGERS_S));
    there.sort((a, b) => a.number - b.number);
    const wanted = new Map(there.map((flow) => [flow.name, this.cells(flow, t)]));
    for (const [name, words, from, until] of facts.others)
      if (from <= t && (until === null || t < until + LINGERS_S)) wanted.set(name, [name, words]);
    const [every, drawn] = facts.counts;
    if (drawn < every) wanted.set("", ["", `${drawn} of ${every} flows are shown`]);
    for (const [name, row] of this.rows) if (!wanted.has(name)) { row.remove(); this.rows.delete(name); }
    let at = 0;
    for (const [name, cells] of wanted) {
      const row = this.row(name, cells.length);
      if (this.body.children[at] !== row) this.body.insertBefore(row, this.body.children[at] ?? null);
      at += 1;
      this.fill(row, name, cells, there.find((flow) => flow.name === name), t);
    }
  }

  cells(flow, t) {
    const { values } = this.page;
    const cc = flow.cc.filter(([since]) => since <= t + 0.05).at(-1)?.[1] ?? flow.cc[0]?.[1] ?? "";
    if (flow.until !== null && flow.until <= t) return [flow.name, cc || flow.kind, flow.over];
    const at = (plot, role) => {
      const line = values.lines.find((each) => each.plot === plot && each.role === role && each.subject === flow.name);
      const value = line ? values.at(line, t) : NaN;
      return Number.isNaN(value) ? null : value;
    };
    const goodput = at("throughput", "line"), rtt = at("rtt", "line");
    return [
      flow.name, (flow.wrong ? "! " : "") + (cc || flow.kind), write(WHOLE, at("cwnd", "line")),
      rtt === null ? "–" : `${rtt.toFixed(rtt < 10 ? 1 : 0)} ms`, rate(goodput === null ? null : goodput * 1e6),
      write(WHOLE, at("retr", "table")), flow.path,
    ];
  }

  row(name, width) {
    let row = this.rows.get(name);
    if (row && row.children.length === width) return row;
    row?.remove();
    row = make("tr");
    const button = row.appendChild(make("td")).appendChild(make("button"));
    button.type = "button";
    button.addEventListener("click", () => this.choose(name));
    for (let at = 1; at < width; at++) row.append(make("td"));
    if (width === 2) row.children[1].colSpan = 6;
    if (width === 3) row.children[2].colSpan = 5;
    this.rows.set(name, row);
    return row;
  }

  fill(row, name, cells, flow, t) {
    const chosen = flow && name === this.page.view.selected, button = row.children[0].firstChild;
    row.toggleAttribute("data-chosen", Boolean(chosen));
    row.className = flow && flow.until !== null && flow.until <= t ? "over" : "";
    put(button, name ? `● ${name}` : "…");
    button.style.color = flow ? flowInk(flow.number) : "inherit";
    button.disabled = !flow;
    button.setAttribute("aria-pressed", String(Boolean(chosen)));
    for (let at = 1; at < cells.length; at++) put(row.children[at], cells[at]);
  }
}

// The network: hosts, routers and cables as SVG, and the fill levels of observed queues.

import { put } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";

function make(kind, attributes, parent) {
  const each = document.createElementNS(SVG, kind);
  for (const [name, value] of Object.entries(attributes)) each.setAttribute(name, value);
  return parent.appendChild(each);
}

export class Network {
  constructor(page, choose) {
    this.page = page;
    this.choose = choose;
    this.drawing = document.getElementById("drawing");
    this.words = document.getElementById("queue-words");
    this.queues = new Map();
  }

  /** Draw again after the network has changed. */
  build() {
    const { nodes, cables, chain } = this.page.facts.network;
    this.queues.clear();
    this.drawing.replaceChildren();
    if (!nodes.length) return;
    const rows = new Set(nodes.map(([, , y]) => y)).size;
    const [across, down] = chain ? [170, Math.max(Math.min(34, 420 / rows), 19)] : [64, 74];
    const places = new Map(nodes.map(([name, x, y]) => [name, [x * across, y * down]]));
    const xs = [...places.values()].map(([x]) => x), ys = [...places.values()].map(([, y]) => y);
    const [left, top] = [Math.min(...xs) - 40, Math.min(...ys) - 30];
    const size = [Math.max(...xs) - left + 40, Math.max(...ys) - top + 34];
    const svg = make("svg", { viewBox: `${left} ${top} ${size.join(" ")}`, role: "img", "aria-labelledby": "queue-words" }, this.drawing);
    for (const [from, to, ...links] of cables) {
      const a = places.get(from), b = places.get(to);
      if (!a || !b) continue;
      const observed = links.length > 0;
      make("line", { x1: a[0], y1: a[1], x2: b[0], y2: b[1], class: observed ? "cable busy" : "cable", "stroke-width": observed ? 3 : 1 }, svg);
      links.forEach((link, at) => this.queue(svg, a, b, link, from, at));
    }
    for (const [name, , , role] of nodes) {
      const [x, y] = places.get(name), width = Math.max(name.length * 8 + 12, 30);
      make("rect", { x: x - width / 2, y: y - 9, width, height: 18, rx: role === "router" ? 2 : 9, class: "box" }, svg);
      make("text", { x, y: y + 5, "text-anchor": "middle" }, svg).textContent = name;
    }
  }

  /** Make the gauge of a queue, near the end of the cable that has the queue. */
  queue(svg, a, b, link, from, at) {
    const there = link.startsWith(`${from}->`), share = there ? 0.36 : 0.64;
    const x = a[0] + (b[0] - a[0]) * share, y = a[1] + (b[1] - a[1]) * share + (at ? 14 : -14);
    const group = make("g", {}, svg);
    make("rect", { x: x - 21, y: y - 6, width: 42, height: 12, class: "box" }, group);
    const full = make("rect", { x: x - 20, y: y - 5, width: 0, height: 10, class: "full" }, group);
    group.addEventListener("click", () => this.choose(link));
    make("title", {}, group).textContent = `queue of ${link}`;
    this.queues.set(link, full);
  }

  /** Show the fill levels of queues at the moment shown. */
  update() {
    const { view, values, facts } = this.page, t = view.t, said = [];
    for (const link of facts.network.observed) {
      const setting = this.page.linkSetting(link);
      if (!setting) continue;
      const [, words, rate, limit, bytes] = setting;
      const find = (plot, role) => values.lines.find((each) => each.plot === plot && each.role === role && each.subject === link);
      const line = find("queue", bytes ? "bytes" : "line"), carried = find("carried", "table");
      const held = line ? values.at(line, t) : NaN, sent = carried ? values.at(carried, t) : NaN;
      const most = limit ? (bytes ? limit / 1000 : limit) : Math.max(held, 1);
      const share = Number.isNaN(held) ? 0 : Math.min(held / most, 1);
      const full = this.queues.get(link);
      full?.setAttribute("width", (40 * share).toFixed(1));
      full?.setAttribute("class", share > 0.95 ? "full over" : "full");
      if (link !== this.page.link()) continue;
      const unit = bytes ? "kB" : "packets";
      said.push(`${link}: ${words}`);
      if (!Number.isNaN(held)) said.push(`${Math.round(held)}${limit ? ` of ${Math.round(most)}` : ""} ${unit} wait`);
      if (!Number.isNaN(sent) && rate) said.push(`${Math.round((sent * 1e8) / rate)} % of the rate used`);
    }
    put(this.words, said.join(" · "));
  }
}

// One plot: axes, lines, settings, counters and marks on a canvas, title and values above it.

import { make } from "./dom.js";
import { clock, label, ticks, timeTicks, write } from "./format.js";
import { flowInk, ink } from "./look.js";

const LEFT = 46, TOP = 8, BOTTOM = 22;

export class Plot {
  /** `page` has values, view, facts and marks; the methods of `does` receive the user's gestures. */
  constructor(described, page, does) {
    this.described = described;
    this.page = page;
    this.figure = make("figure");
    const caption = make("figcaption");
    this.title = make("strong");
    this.unit = make("span", "", "unit");
    this.values = make("span", "", "values");
    this.canvas = make("canvas");
    this.words = make("p", "", "unseen");
    caption.id = `plot-${described.name}`;
    this.words.id = `${caption.id}-words`;
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-describedby", this.words.id);
    caption.append(this.title, this.unit, this.values);
    this.figure.append(caption, this.canvas, this.words);
    this.right = 26;
    this.written = this.worded = this.sentence = "";
    gestures(this.canvas, this, does);
  }

  /** Seconds per pixel, and the moment at a position. */
  moment(x) {
    const { view } = this.page, width = this.canvas.clientWidth - LEFT - this.right;
    return view.start + ((x - LEFT) / Math.max(width, 1)) * view.width;
  }

  get perPixel() {
    return this.page.view.width / Math.max(this.canvas.clientWidth - LEFT - this.right, 1);
  }

  /** The lines that are drawn now, from the bottom to the top, with colour and label. */
  lines() {
    const { values, view } = this.page, { name } = this.described;
    const link = this.page.link(), bytes = this.inBytes();
    const flows = this.page.flowsByName();
    return values.lines.filter((line) => {
      if (line.plot !== name || line.role === "summary") return false;
      if (line.role === "bytes" || line.role === "line") {
        if (this.described.bytes && (line.role === "bytes") !== bytes) return false;
      }
      if (line.subject.includes("->")) return line.subject === link || line.subject.startsWith(`${link} `);
      if (line.role === "companion") return flows.size <= 4 || line.subject === view.selected;
      return true;
    }).map((line) => {
      const flow = flows.get(line.subject);
      const own = flow ? flowInk(flow.number) : line.ink ? ink(line.ink) : ink("queue");
      return { line, flow, colour: line.role === "companion" ? ink(line.ink) : own };
    }).sort((a, b) => rank(a, view) - rank(b, view));
  }

  /** Pixels for the labels of lines: the same in every plot, so that the time axes match. */
  margin(pen, named) {
    const widths = [...this.page.flowsByName().keys()].slice(0, 40).map((name) => pen.measureText(name.slice(0, named)).width);
    return Math.max(26, Math.ceil(Math.max(0, ...widths)) + 8);
  }

  inBytes() { return Boolean(this.described.bytes && this.page.linkSetting()?.[4]); }
  get axis() { return this.inBytes() ? this.described.bytes : this.described.axis; }

  settings() {
    const { view } = this.page, flow = this.page.flowsByName().get(view.selected);
    const ends = flow ? flow.ends.join(" ") : null;
    return this.page.facts.settings.filter(([plot, subject]) => plot === this.described.name &&
      (!subject || subject === this.page.link() || subject === (ends ?? this.page.firstEnds())));
  }

  draw() {
    const { canvas } = this, { view, values } = this.page;
    const scale = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
    if (!width || !height) return;
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
    }
    const pen = canvas.getContext("2d");
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = `${width > 700 ? 14 : 12}px system-ui, sans-serif`;
    const named = width > 480 ? 8 : 3;
    this.right = this.margin(pen, named);
    const edge = width - this.right;
    const left = view.start, right = Math.min(view.end, view.until), drawn = this.lines();
    const settings = this.settings();
    const traces = drawn.filter(({ line }) => line.role !== "count");
    let most = this.described.least;
    const points = traces.map(({ line }) => {
      const found = [];
      values.each(line, left, right, (t, low, high) => {
        found.push(t, low, high);
        if (line.role !== "companion" && high > most) most = high;
      });
      return found;
    });
    const near = settings.map(([, , , , steps]) => inForce(steps, left, right)).flat();
    for (const [, value] of near) if (value !== null && value > most && value <= 3 * most) most = value;
    const region = this.page.lesson.region?.[0] === this.described.name ? this.page.lesson.region : null;
    if (region) most = Math.max(most, region[2]);
    most *= 1.06;
    const x = (t) => LEFT + ((t - left) / view.width) * (edge - LEFT);
    const y = (value) => height - BOTTOM - (Math.min(value, most) / most) * (height - TOP - BOTTOM);
    this.axes(pen, { x, y, most, edge, height, left });
    pen.save();
    pen.beginPath();
    pen.rect(LEFT, 0, edge - LEFT, height);
    pen.clip();
    if (region) predicted(pen, y(region[1]), y(region[2]), width);
    for (const [, , colour, , steps] of settings) setting(pen, x, y, inForce(steps, left, right), right, ink(colour), most);
    traces.forEach((each, at) => trace(pen, x, y, points[at], each, view.selected));
    for (const { line } of drawn) if (line.role === "count") this.counts(pen, x, line, left, right);
    this.marks(pen, x, height);
    pen.restore();
    ends(pen, traces, points, x, y, { edge, named });
    if (!points.some((each) => each.length)) {
      pen.fillStyle = ink("muted");
      pen.textAlign = "center";
      pen.fillText(this.described.missing, width / 2, height / 2);
    }
  }

  axes(pen, { x, y, most, edge, height, left }) {
    const { view } = this.page;
    pen.lineWidth = 1;
    pen.strokeStyle = ink("grid");
    pen.fillStyle = ink("muted");
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    const step = ticks(most, height / 50);
    for (let value = 0; value <= most; value += step) {
      const at = Math.round(y(value)) + 0.5;
      pen.beginPath(); pen.moveTo(LEFT, at); pen.lineTo(edge, at); pen.stroke();
      pen.fillText(label(value), LEFT - 5, at);
    }
    pen.textAlign = "center";
    pen.textBaseline = "alphabetic";
    const apart = timeTicks(view.width, edge / 80);
    for (let t = Math.ceil(left / apart) * apart; t <= view.end; t += apart) {
      const at = Math.round(x(t)) + 0.5;
      pen.beginPath(); pen.moveTo(at, TOP); pen.lineTo(at, height - BOTTOM); pen.stroke();
      pen.fillText(clock(t + 1e-6, apart < 1), at, height - 6);
    }
  }

  counts(pen, x, line, left, right) {
    let before = NaN;
    pen.fillStyle = ink(line.ink);
    this.page.values.each(line, left, right, (t, value) => {
      if (value > before) pen.fillRect(x(t) - 1, line.ink === "drop" ? 0 : 8, 2, 7);
      if (value === value) before = value;
    });
  }

  marks(pen, x, height) {
    const { view, log } = this.page, pointer = view.presenter?.pointer;
    pen.setLineDash([2, 4]);
    pen.strokeStyle = ink("mark");
    for (const [, t, , , isMark] of log.rows)
      if (isMark && t >= view.start && t <= Math.min(view.end, view.until)) upright(pen, x(t), height);
    pen.setLineDash([]);
    if (view.cursor !== null) { pen.strokeStyle = ink("cursor"); upright(pen, x(view.cursor), height); }
    if (!pointer) return;
    pen.strokeStyle = pen.fillStyle = ink("cursor");
    pen.lineWidth = 2.5;
    upright(pen, x(pointer.t), height);
    pen.textAlign = x(pointer.t) > 200 ? "right" : "left";
    pen.fillText(`▾ ${pointer.text ?? ""}`, x(pointer.t) + (x(pointer.t) > 200 ? -5 : 5), TOP + 14);
  }

  /** Write title and values, and every two seconds the same in words. */
  write(inWords) {
    const { view, values } = this.page, { axis } = this, t = view.t;
    const head = [this.described.title, axis.unit, clock(t)].join();
    const parts = [];
    for (const { line, flow, colour } of this.lines().reverse()) {
      const value = values.at(line, t);
      if (Number.isNaN(value) || (flow && flow.until !== null && t > flow.until)) continue;
      if (line.role === "count") {
        const count = this.described.counts.find((each) => each.ink === line.ink);
        if (value) parts.push([`${Math.round(value)} ${count?.short ?? ""}`, ink(line.ink)]);
        continue;
      }
      const name = line.role === "companion" ? "ssthresh" : flow || line.plot === "rtt" || line.plot.startsWith("udp") ? line.subject : "";
      parts.push([`${name} ${write(axis, value)}`.trim(), colour, line.role]);
    }
    for (const [, , colour, word, steps] of this.settings()) {
      const value = steps.filter(([since]) => since <= t).at(-1)?.[1];
      if (value !== null && value !== undefined && parts.length) parts.push([`${word} ${write(axis, value)}`, ink(colour)]);
    }
    for (const line of values.lines)
      if (line.role === "summary" && line.plot === this.described.name && view.live && line.last !== null)
        parts.push([`${line.subject} ${(line.last / 1000).toFixed(2)}`, ink("text")]);
    const written = head + JSON.stringify(parts);
    if (inWords && written !== this.worded) {
      this.worded = written;
      const said = parts.map(([text]) => text).join(", ") || this.described.missing;
      this.sentence = `${this.described.title}${axis.unit ? ` in ${axis.unit}` : ""} at ${clock(t)}: ${said}`;
      this.canvas.setAttribute("aria-label", this.described.title);
      this.words.textContent = this.sentence;
    }
    if (written === this.written) return;
    this.written = written;
    this.title.textContent = this.described.title;
    this.unit.textContent = axis.unit;
    this.values.replaceChildren(...parts.map(([text, colour]) => {
      const each = make("span", text);
      each.style.color = colour;
      return each;
    }));
  }
}

/** Draw the selected flow on top, and companions below their lines. */
function rank({ line, flow }, view) {
  if (flow && flow.name === view.selected) return line.role === "companion" ? 2 : 3;
  return line.role === "companion" ? 0 : 1;
}

function inForce(steps, left, right) {
  const within = steps.filter(([t]) => t > left && t <= right);
  const before = steps.filter(([t]) => t <= left).at(-1);
  return before ? [[left, before[1]], ...within] : within;
}

function upright(pen, x, height) {
  pen.beginPath(); pen.moveTo(x, TOP); pen.lineTo(x, height - BOTTOM); pen.stroke();
}

function setting(pen, x, y, steps, right, colour, most) {
  pen.strokeStyle = colour;
  pen.lineWidth = 1.3;
  pen.setLineDash([2, 3]);
  steps.forEach(([t, value], at) => {
    if (value === null || value > most) return;
    pen.beginPath(); pen.moveTo(x(t), y(value)); pen.lineTo(x(steps[at + 1]?.[0] ?? right), y(value)); pen.stroke();
  });
  pen.setLineDash([]);
}

/** What a lesson's question lets one predict: a band with edges. */
function predicted(pen, low, high, width) {
  pen.fillStyle = pen.strokeStyle = ink("accent");
  pen.globalAlpha = 0.2;
  pen.fillRect(LEFT, high, width, low - high);
  pen.globalAlpha = 1;
  pen.lineWidth = 1.5;
  for (const at of [low, high]) { pen.beginPath(); pen.moveTo(LEFT, at); pen.lineTo(width, at); pen.stroke(); }
}

function trace(pen, x, y, points, { line, flow, colour }, selected) {
  pen.strokeStyle = pen.fillStyle = colour;
  if (line.style === "dots") {
    for (let at = 0; at < points.length; at += 3)
      if (points[at + 2] === points[at + 2]) pen.fillRect(x(points[at]) - 1.2, y(points[at + 2]) - 1.2, 2.4, 2.4);
    return;
  }
  pen.lineWidth = flow && flow.name === selected ? 2.6 : 1.5;
  if (line.role === "companion") pen.setLineDash([1, 3]);
  const filled = line.style === "area";
  pen.beginPath();
  let open = false, from = 0, last = 0;
  const close = () => {
    if (!filled || !open) return;
    pen.lineTo(last, y(0)); pen.lineTo(from, y(0)); pen.closePath();
  };
  for (let at = 0; at < points.length; at += 3) {
    const low = points[at + 1], high = points[at + 2], place = x(points[at]);
    if (high !== high) { close(); open = false; continue; }
    if (!open) { pen.moveTo(place, y(high)); from = place; } else pen.lineTo(place, y(high));
    if (!filled && low !== high) pen.lineTo(place, y(low));
    open = true;
    last = place;
  }
  close();
  pen.stroke();
  if (filled) { pen.globalAlpha = 0.35; pen.fill(); pen.globalAlpha = 1; }
  pen.setLineDash([]);
}

/** Label each line at its right end: colour is never the only cue. */
function ends(pen, traces, points, x, y, { edge, named }) {
  const taken = [];
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  for (let at = traces.length - 1; at >= 0; at--) {
    const { flow, line, colour } = traces[at], found = points[at];
    if (!flow || line.role === "companion" || found.length < 3) continue;
    const value = found.at(-1), place = y(value);
    if (value !== value || taken.some((each) => Math.abs(each - place) < 11)) continue;
    taken.push(place);
    pen.fillStyle = colour;
    pen.fillText(flow.name.slice(0, named), Math.min(x(found.at(-3)) + 4, edge + 3), place);
  }
  pen.textBaseline = "alphabetic";
}

/** Hovering shows values, dragging moves the time axis, pinching and ctrl with the wheel zoom. */
function gestures(canvas, plot, does) {
  const touches = new Map();
  let apart = 0;
  canvas.addEventListener("pointermove", (event) => {
    const before = touches.get(event.pointerId);
    if (!before) { if (event.pointerType === "mouse") does.hover(plot.moment(event.offsetX)); return; }
    touches.set(event.pointerId, event.offsetX);
    if (touches.size === 1) does.pan((before - event.offsetX) * plot.perPixel);
    if (touches.size === 2) {
      const [a, b] = touches.values(), distance = Math.max(Math.abs(a - b), 10);
      if (apart) does.zoom(apart / distance);
      apart = distance;
    }
  });
  canvas.addEventListener("pointerdown", (event) => {
    touches.set(event.pointerId, event.offsetX);
    canvas.setPointerCapture(event.pointerId);
    does.hover(null);
  });
  const up = (event) => { touches.delete(event.pointerId); apart = 0; };
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);
  canvas.addEventListener("pointerleave", () => does.hover(null));
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && Math.abs(event.deltaX) <= Math.abs(event.deltaY)) return;
    event.preventDefault();
    if (event.ctrlKey) does.zoom(event.deltaY > 0 ? 1.2 : 1 / 1.2);
    else does.pan(event.deltaX * plot.perPixel);
  }, { passive: false });
}

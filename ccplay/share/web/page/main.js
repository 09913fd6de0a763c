// The page: messages change the data, the view decides what is shown, a frame draws it.

import { make, put } from "./dom.js";
import { clock } from "./format.js";
import { KEYS, listen } from "./keys.js";
import { Lesson } from "./lesson.js";
import { loadLooks, nextLook } from "./look.js";
import { Log } from "./log.js";
import { Network } from "./network.js";
import { Plot } from "./plot.js";
import { announce, say } from "./speech.js";
import { connect, past } from "./stream.js";
import { Table } from "./table.js";
import { Values } from "./values.js";
import { View } from "./view.js";

const WRITE_MS = 250, WORDS_MS = 2000;
const EMPTY = { phase: {}, plots: [], settings: [], flows: [], others: [], links: {}, counts: [0, 0], network: { nodes: [], cables: [], observed: [] } };

const page = {
  facts: { ...EMPTY },
  values: new Values(past),
  view: new View(),
  log: new Log(),
  lesson: new Lesson(() => { dirty = true; }),
  /** The observed link whose queue is shown. */
  link() {
    const links = this.facts.network.observed;
    return links.length ? links[((this.view.observed % links.length) + links.length) % links.length] : null;
  },
  linkSetting(link = this.link()) {
    return (this.facts.links[link] ?? []).filter(([t]) => t <= this.view.t + 1e-3).at(-1) ?? this.facts.links[link]?.[0];
  },
  flowsByName() { return this.byName ??= new Map(this.facts.flows.map((flow) => [flow.name, flow])); },
  firstEnds() { return [...this.flowsByName().values()].find((flow) => flow.until === null)?.ends.join(" "); },
};
const view = page.view;
const elements = Object.fromEntries(["title", "state", "notice", "plots", "offered", "help", "keys"].map((id) => [id, document.getElementById(id)]));
const network = new Network(page, chooseLink), table = new Table(page, chooseFlow);
let plots = new Map(), connection = "connecting", over = "", missed = "", awaited = "", dirty = true, unwritten = false, unworded = false, wrote = 0, worded = 0;

// --- messages

const TAKE = {
  opening(opening) {
    awaited = "";
    document.title = `${opening.title || "ccplay"} · ccplay`;
    elements.title.textContent = opening.title || "ccplay";
    Object.assign(view, { recorded: opening.recorded, now: opening.now });
    page.values.reset(opening.lines, opening.last);
    page.values.until = opening.now;
    page.facts = { ...EMPTY, ...opening.facts };
    page.byName = null;
    page.log.reset(opening.log);
    network.build();
    if (opening.view) view.present(opening.view);
    page.lesson.show(page.facts.lesson ?? null);
    choices();
  },
  facts(facts) {
    Object.assign(page.facts, facts);
    page.byName = null;
    if (facts.network) network.build();
    if (facts.plots) choices();
    if ("lesson" in facts) page.lesson.show(facts.lesson);
  },
  lines(lines) { page.values.add(lines); },
  log(rows) {
    for (const [, , kind, text] of page.log.take(rows))
      if (kind !== "info" && kind !== "file") announce(text);
  },
  frame(frame) {
    page.values.take(frame);
    view.now = Math.max(view.now, page.values.now);
    page.values.until = view.now;
    missed = "";
  },
  view(presented) {
    const pointed = view.presenter?.pointer?.text;
    view.present(presented);
    if (presented.pointer?.text && presented.pointer.text !== pointed) say(`The presenter points at ${clock(presented.pointer.t)}: ${presented.pointer.text}`);
  },
  gap() { missed = "This browser was too slow and missed some seconds; they are read again."; },
  another() {
    awaited = "The presenter starts another network; this page joins it.";
    view.restart();
    say(awaited);
  },
  over({ reason }) {
    awaited = "";
    over = reason;
    page.lesson.end();
    page.values.ended = true;
    say(`The session is over: ${reason}`);
  },
};

connect((kind, content) => { TAKE[kind](content); dirty = true; }, (word) => {
  if (word === "lost" && connection !== "lost") say("Connection lost; reconnecting");
  if (word === "connected" && connection === "lost") say("Reconnected");
  connection = word;
  dirty = true;
});

// --- actions

const ACTIONS = {
  follow: () => view.takeOver(),
  freeze: () => view.hold(),
  earlier: () => view.pan(-view.width / 4),
  later: () => view.pan(view.width / 4),
  step: (way) => view.pan((way * view.width) / 10),
  window: (way) => view.pan(way * view.width),
  wider: () => view.zoom(1.5),
  narrower: () => view.zoom(1 / 1.5),
  home: () => view.home(),
  end: () => view.toEnd(),
  theme: () => say(`Theme ${nextLook()}`),
  help: () => elements.help.showModal(),
  queue: () => { view.roam(); view.observed += 1; say(`Queue of ${page.link()}`); },
  values: () => { write(true); say([...plots.values()].map((plot) => plot.sentence).join(". ")); },
  answer: () => page.lesson.focus(),
  plot: (at) => page.lesson.press(at) || elements.offered.querySelectorAll("input")[at]?.click(),
  select(way) {
    const t = view.t, there = page.facts.flows.filter((flow) => flow.from <= t && (flow.until === null || t < flow.until));
    there.sort((a, b) => a.number - b.number);
    const at = there.findIndex((flow) => flow.name === view.selected);
    const next = there[(at < 0 ? (way > 0 ? 0 : there.length - 1) : at + way + there.length) % Math.max(there.length, 1)];
    if (next) { chooseFlow(next.name); say(`Flow ${next.name}, ${next.cc.at(-1)?.[1] ?? ""}`); }
  },
};

listen((name, argument) => { ACTIONS[name](argument); dirty = true; });

function chooseFlow(name) { view.roam(); view.selected = name; dirty = true; }
function chooseLink(link) { view.roam(); view.observed = page.facts.network.observed.indexOf(link); dirty = true; }

const GESTURES = {
  hover(t) { view.hover = t === null ? null : Math.min(Math.max(t, 0), view.until); dirty = true; },
  pan(seconds) { view.pan(seconds); dirty = true; },
  zoom(factor) { view.zoom(factor); dirty = true; },
};

/** List every plot of the session as a choice. */
function choices() {
  elements.offered.replaceChildren(...page.facts.plots.map(({ name, title, help }) => {
    const label = make("label"), box = make("input");
    box.type = "checkbox";
    box.name = name;
    label.title = help;
    label.append(box, title);
    box.addEventListener("change", () => {
      view.roam();
      view.plots = box.checked ? [...view.plots, name] : view.plots.filter((each) => each !== name);
      dirty = true;
    });
    return label;
  }));
}

// --- frames

/** Make a figure for each plot shown, in order. */
function arrange() {
  const known = new Map(page.facts.plots.map((plot) => [plot.name, plot]));
  const wanted = view.plots.filter((name) => known.has(name));
  if (wanted.join() !== [...plots.keys()].join()) {
    plots = new Map(wanted.map((name) => [name, plots.get(name) ?? new Plot(known.get(name), page, GESTURES)]));
    elements.plots.replaceChildren(...[...plots.values()].map((plot) => plot.figure));
  }
  for (const plot of plots.values()) plot.described = known.get(plot.described.name);
  for (const box of elements.offered.querySelectorAll("input")) box.checked = plots.has(box.name);
}

function write(inWords) {
  for (const plot of plots.values()) plot.write(inWords);
  table.update();
  network.update();
  page.log.update(view.t);
}

function state() {
  const where = view.presenter === null ? "watching" : view.following ? "following the presenter" : "roaming";
  const how = over ? "over" : view.live ? "● live" : view.recorded ? "replay" : "held";
  const building = page.facts.phase.phase === "building" ? ` · building: ${page.facts.phase.step}` : "";
  const lost = connection === "lost" && !over;
  const text = lost ? "Connection lost; reconnecting …" : connection === "connecting" ? "connecting …" : `${how} ${clock(view.t)} · ${where}${building}`;
  put(elements.state, text);
  elements.state.className = lost ? "lost" : "";
  const pointer = view.presenter?.pointer;
  const pointed = pointer ? `▾ ${clock(pointer.t)} ${pointer.text ?? ""}` : "";
  const notice = over ? `The session is over: ${over}. This page keeps what it has received.` : awaited || missed || pointed;
  elements.notice.hidden = !notice;
  put(elements.notice, notice);
  document.querySelector("[data-does=follow]").setAttribute("aria-pressed", String(view.follows));
  document.querySelector("[data-does=freeze]").setAttribute("aria-pressed", String(!view.live));
}

function frame(now) {
  requestAnimationFrame(frame);
  const moves = view.recorded && view.follows && view.presenter.running;
  if (dirty || moves) {
    dirty = false;
    unwritten = unworded = true;
    arrange();
    page.values.require(view.start, Math.min(view.end, view.until), () => { dirty = true; });
    for (const plot of plots.values()) plot.draw();
    state();
  }
  // What is written less often than drawn is written in the end, even if no message follows.
  const inWords = unworded && now - worded > WORDS_MS;
  if (!inWords && !(unwritten && (now - wrote > WRITE_MS || !view.live))) return;
  if (inWords) { worded = now; unworded = false; }
  wrote = now;
  unwritten = false;
  write(inWords);
}

for (const [key, , words] of KEYS) elements.keys.append(make("dt", key), make("dd", words));
addEventListener("resize", () => { dirty = true; });
await loadLooks(() => { dirty = true; });
requestAnimationFrame(frame);

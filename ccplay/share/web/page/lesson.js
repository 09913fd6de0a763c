// The lesson that the presenter shows: its page, the question, and this browser's vote.

import { make, put } from "./dom.js";
import { announce, say } from "./speech.js";
import { VOTER, vote } from "./stream.js";

const ELEMENTS = new Set(["p", "ul", "ol", "li", "strong", "em", "code", "pre", "blockquote", "h3", "hr", "br"]);
const REFUSED = { 403: "This browser is not connected: try again in a moment.", 409: "The vote is closed.", 429: "Too many votes at once: wait a moment." };
const KEPT = `votes ${VOTER}`;

export class Lesson {
  /** `changed` is called when plots show another region. */
  constructor(changed) {
    this.section = document.getElementById("lesson");
    this.changed = changed;
    this.shown = null;
    this.key = "";
    this.region = null; // plot, lower and upper end of what is predicted
    this.voting = Promise.resolve();
    this.votes = JSON.parse(sessionStorage.getItem(KEPT) ?? "{}"); // by question
  }

  get question() { return this.shown?.question ?? null; }
  get mine() { return this.votes[this.question?.number] ?? null; }
  get asks() { return this.question?.open && this.question.votes ? this.question.kind : ""; }

  /** Show a page, or none; what has not changed stays, with what was typed. */
  show(lesson) {
    const before = this.shown, key = JSON.stringify({ ...lesson, phase: "" });
    this.shown = lesson;
    this.section.hidden = !lesson;
    document.querySelector("main").classList.toggle("taught", Boolean(lesson));
    if (!lesson) { this.key = ""; this.region = null; this.section.replaceChildren(); this.changed(); return; }
    if (key === this.key) { this.update(); return; }
    this.key = key;
    this.build();
    if (before?.place !== lesson.place || before?.title !== lesson.title)
      announce(`Lesson, page ${lesson.place.replace("/", " of ")}: ${lesson.heading}. ${this.question?.ask ?? ""}`);
    else if (!before.revealed && lesson.revealed && this.question) say([...this.outcome(), ...this.measured()].join(" "));
  }

  /** The session is over: what was shown stays, and no vote counts. */
  end() {
    if (this.question?.open) this.show({ ...this.shown, question: { ...this.question, open: false } });
  }

  build() {
    const { question, shown } = this, revealed = Boolean(question) && shown.revealed;
    const head = make("h2", "", "");
    head.id = "lesson-title";
    head.append(make("span", shown.place, "place"), ` ${shown.heading}`);
    head.title = shown.title;
    this.verdict = make("div", "", "verdict");
    this.status = make("p", "", "status");
    this.status.setAttribute("role", "status");
    const reading = make("div", "", "reading"), why = make("div", "", "reading why");
    reading.append(...nodes(shown.text));
    if (shown.why.length) why.append(make("h3", "Why"), ...nodes(shown.why));
    const asked = question ? [this.form(), this.status] : [this.status];
    // What is new comes first: a small screen shows little more.
    const parts = revealed ? [this.verdict, ...asked, measured(shown.measured), why, reading] : [reading, ...asked];
    this.section.replaceChildren(head, ...parts);
    this.update();
  }

  form() {
    const { question } = this, form = make("form"), set = make("fieldset");
    set.append(make("legend", question.ask));
    set.disabled = !this.asks;
    form.append(set);
    form.noValidate = true;
    form.addEventListener("submit", (event) => { event.preventDefault(); this.submit(); });
    this.field = null;
    if (question.kind === "choices") set.append(...question.choices.map((text, at) => this.choice(text, at)));
    else if (this.asks) set.append(...this.number());
    if (question.kind !== "choices") set.append(...bars(question));
    return form;
  }

  choice(text, at) {
    const { question } = this, label = make("label", "", "answer"), box = make("input");
    Object.assign(box, { type: "radio", name: "answer", value: String(at) });
    box.addEventListener("change", () => this.give(at));
    label.append(box, make("kbd", String(at + 1)), make("span", text, "text"));
    if (question.right === at) { label.classList.add("right"); label.append(make("span", "✓ right", "sign")); }
    if (question.counts.some(Boolean)) label.append(bar(question.counts, at));
    return label;
  }

  /** Return the field for a number, or the slider of a region, and its button. */
  number() {
    const { question } = this, { low, high, width, unit } = question, slides = question.kind === "region";
    const label = make("label", slides ? `on the plot of ${question.title}: ` : `a number from ${short(low)} to ${short(high)} ${unit} `, "number");
    this.field = make("input");
    Object.assign(this.field, { type: slides ? "range" : "number", min: low, max: high - width, step: slides ? question.step : "any" });
    this.field.inputMode = "decimal";
    this.field.autocomplete = "off";
    const start = this.mine ?? (slides ? (low + high - width) / 2 : "");
    this.field.value = start;
    if (slides) {
      this.where = make("output");
      this.field.addEventListener("input", () => this.move());
      label.append(this.where, this.field);
      this.move();
    } else label.append(this.field);
    const button = make("button", slides ? "Vote for this" : "Vote");
    button.type = "submit";
    return [label, button];
  }

  move() {
    const { question } = this, low = Number(this.field.value), words = span(question, low);
    this.where.textContent = words;
    this.field.setAttribute("aria-valuetext", words);
    this.region = [question.plot, low, low + question.width];
    this.changed();
  }

  /** Answer by a digit, or begin to; return whether the question takes answers. */
  press(at) {
    if (!this.asks) return false;
    if (this.asks !== "choices") {
      if (this.asks === "number") this.field.value = String(at + 1);
      this.field.focus();
    } else if (at < this.question.choices.length) this.give(at);
    return true;
  }

  /** Go to where the answer is given. */
  focus() { this.section.querySelector("fieldset:enabled input:checked, fieldset:enabled input")?.focus(); }

  submit() {
    const { low, high, width, unit } = this.question, given = this.field?.value.trim().replace(",", ".");
    const value = Number(given);
    if (!given || !(value >= low && value <= high - width)) {
      this.note(`A number from ${short(low)} to ${short(high)} ${unit}, please.`);
      this.field?.focus();
    } else this.give(value);
  }

  /** Vote; of several votes in a row the last one counts. */
  give(value) {
    const { number } = this.question;
    this.voting = this.voting.then(async () => {
      const status = await vote(number, value);
      if (status === 204) {
        this.votes[number] = value;
        sessionStorage.setItem(KEPT, JSON.stringify(this.votes));
      }
      if (number !== this.question?.number) return;
      this.update();
      if (status !== 204) this.note(REFUSED[status] ?? "Your vote did not arrive: try again.");
    });
  }

  note(words) { put(this.status, words); }

  /** Show the vote as it is now, and what can be done. */
  update() {
    const { question, mine } = this;
    for (const box of this.section.querySelectorAll("input[type=radio]")) {
      box.checked = mine !== null && Number(box.value) === mine;
      box.closest("label").classList.toggle("mine", box.checked);
    }
    if (question?.kind !== "region") this.region = null;
    else if (!this.asks) this.region = mine === null ? null : [question.plot, mine, mine + question.width];
    this.changed();
    this.note(this.words());
    this.verdict.replaceChildren(...(question && this.shown.revealed ? this.outcome().map((each) => make("p", each)) : []));
  }

  words() {
    const { question, mine, shown } = this;
    if (!question) return "The presenter turns the pages.";
    if (shown.revealed && question.counts.length && !question.counts.some(Boolean)) return "The vote is closed: nobody voted.";
    if (!question.open) return mine === null || shown.revealed ? "The vote is closed." : `The vote is closed. Your vote${this.voted} counts.`;
    if (!question.votes) return "This link can't vote: ask the presenter for theirs.";
    if (mine !== null) return `Your vote${this.voted} counts. It can be changed until the run starts.`;
    return { choices: "Tap an answer, or press its number.", number: "Type a number and vote.", region: "Move it to where you expect it, and vote." }[question.kind];
  }

  get voted() { return this.question.kind === "choices" ? "" : `, ${span(this.question, this.mine)},`; }

  /** What was revealed, in sentences. */
  outcome() {
    const { question, mine } = this, { answers, kind } = question, found = [];
    if (answers && mine !== null) found.push(answers[0] <= mine && mine <= answers[1] ? "✓ That is right." : "✗ Not this time.");
    if (mine !== null && kind !== "choices") found.push(`Your answer: ${span(question, mine)}.`);
    found.push(...question.verdict);
    return found;
  }

  /** What answers a question for a number, in sentences. */
  measured() {
    return this.question.kind === "choices" ? [] : this.shown.measured.map(([what, value]) => `${what}: ${value}.`);
  }
}

/** Nodes of texts and of elements that are known; of another one only what is in it. */
function nodes(parts) {
  return parts.flatMap((part) => {
    if (!Array.isArray(part)) return [document.createTextNode(String(part))];
    const [name, ...inside] = part;
    if (!ELEMENTS.has(name)) return nodes(inside);
    const node = make(name);
    node.append(...nodes(inside));
    return [node];
  });
}

const short = (value) => String(Number(value.toPrecision(4)));

function span({ kind, width, unit }, low) {
  return `${short(low)}${kind === "region" ? ` to ${short(low + width)}` : ""} ${unit}`.trim();
}

/** Votes as a bar and a number. */
function bar(counts, at) {
  const whole = make("span", "", "votes"), drawn = make("span", "", "bar");
  drawn.style.inlineSize = `${(100 * counts[at]) / Math.max(...counts, 1)}%`;
  whole.append(drawn, make("span", `${counts[at]} ${counts[at] === 1 ? "vote" : "votes"}`));
  return whole;
}

function bars({ kind, counts, bins }) {
  if (!counts.some(Boolean)) return [];
  const caption = kind === "region" ? [make("p", "Votes, by the middle of their regions:")] : [];
  const list = make("ul", "", "bins");
  list.append(...bins.map((words, at) => {
    const item = make("li", words);
    item.append(bar(counts, at));
    return item;
  }));
  return [...caption, list];
}

function measured(rows) {
  const list = make("dl", "", "measured");
  for (const [what, value] of rows) list.append(make("dt", what), make("dd", value));
  return list;
}

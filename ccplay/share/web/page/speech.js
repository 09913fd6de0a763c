// Texts for screen readers: news at intervals, and answers to the user at once.

const APART_MS = 8000;
const region = document.getElementById("spoken");
let waiting = [], last = -APART_MS, timer = 0;

/** Announce news at the next interval; of many, only the newest three. */
export function announce(text) {
  waiting = [...waiting, text].slice(-3);
  if (!timer) timer = setTimeout(speak, Math.max(last + APART_MS - performance.now(), 0));
}

/** Announce a text now: the user requested it, or it is urgent. */
export function say(text) {
  waiting = [text];
  clearTimeout(timer);
  speak();
}

function speak() {
  timer = 0;
  last = performance.now();
  region.textContent = waiting.join(". ");
  waiting = [];
}

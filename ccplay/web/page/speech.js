// What a screen reader says by itself: news, not often, and what was asked for, at once.

const APART_MS = 8000;
const region = document.getElementById("spoken");
let waiting = [], last = -APART_MS, timer = 0;

/** Say something when it is time; of many things only the newest are said. */
export function announce(text) {
  waiting = [...waiting, text].slice(-3);
  if (!timer) timer = setTimeout(speak, Math.max(last + APART_MS - performance.now(), 0));
}

/** Say something now: it was asked for, or it matters. */
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

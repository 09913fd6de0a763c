// Keys and buttons: their names and their actions.

export const KEYS = [
  ["F", "follow", "see what the presenter sees"],
  ["space", "freeze", "stop the time axis, or let it run"],
  ["← →", "", "earlier, later; with shift by a whole window"],
  ["+ −", "", "shorten or lengthen the time axis"],
  ["home end", "", "the beginning, and now"],
  ["↑ ↓", "", "select another flow"],
  ["o", "queue", "show another queue"],
  ["1 … 9", "", "answer a lesson's question, or begin to; else show or hide a plot, in the order of the list"],
  ["a", "answer", "go to the answer of a lesson's question"],
  ["v", "values", "say the newest values of all plots"],
  ["t", "theme", "change the theme"],
  ["?", "help", "these keys"],
];

const ACTIONS = {
  f: ["follow"], F: ["follow"], " ": ["freeze"], t: ["theme"], "?": ["help"], v: ["values"], o: ["queue"], a: ["answer"],
  "+": ["narrower"], "=": ["narrower"], "-": ["wider"], Home: ["home"], End: ["end"],
  ArrowUp: ["select", -1], ArrowDown: ["select", 1],
};

/** Call `act(name, argument)` for keys and for buttons with that name. */
export function listen(act) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    // Of a box only the keys that move or set it are its own.
    // The button of a dialog that was just closed keeps the focus until the next frame.
    const on = event.target.closest?.("dialog") ? document.body : event.target, box = on.matches?.("input[type=radio], input[type=checkbox]");
    const inside = box ? /^( |Enter|Arrow.*)$/.test(event.key) : on.closest?.("input, select, textarea, summary");
    const button = on.closest?.("button");
    if (inside || (button && [" ", "Enter"].includes(event.key))) return;
    if (on.closest?.("#log") && event.key.startsWith("Arrow")) return;
    let found = ACTIONS[event.key];
    if (event.key === "ArrowLeft") found = [event.shiftKey ? "window" : "step", -1];
    if (event.key === "ArrowRight") found = [event.shiftKey ? "window" : "step", 1];
    if (/^[1-9]$/.test(event.key)) found = ["plot", Number(event.key) - 1];
    if (!found) return;
    event.preventDefault();
    act(...found);
  });
  for (const button of document.querySelectorAll("[data-does]"))
    button.addEventListener("click", () => act(button.dataset.does));
}

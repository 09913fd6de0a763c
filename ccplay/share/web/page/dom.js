// Elements of the page: made with their text, and written only where that changes.

/** Make an element with a text and a class. */
export function make(name, words = "", kind = "") {
  const node = document.createElement(name);
  node.textContent = words;
  if (kind) node.className = kind;
  return node;
}

/** Set the text of an element, unless it has that text already. */
export function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

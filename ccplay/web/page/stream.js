// The stream of messages: reconnects by itself, and reports it.

const KINDS = ["opening", "facts", "lines", "log", "frame", "view", "gap", "over"];

/** Call `take(kind, content)` for each message, and `status(word)` when the connection changes. */
export function connect(take, status) {
  let source = null, over = false, quiet = 0;
  const open = () => {
    source?.close();
    source = new EventSource("events");
    source.onopen = () => status("connected");
    source.onerror = () => {
      if (over) return;
      status("lost");
      // A browser does not reconnect by itself after a refusal.
      if (source.readyState === EventSource.CLOSED) setTimeout(open, 2000 + Math.random() * 1000);
    };
    for (const kind of KINDS)
      source.addEventListener(kind, (event) => {
        clearTimeout(quiet);
        quiet = setTimeout(() => { if (!over) { status("lost"); open(); } }, 25000);
        if (kind === "over") { over = true; clearTimeout(quiet); source.close(); }
        take(kind, JSON.parse(event.data));
      });
  };
  open();
}

/** Fetch the values between two moments of the past. */
export async function past(from, to) {
  const response = await fetch(`window?from=${from.toFixed(3)}&to=${to.toFixed(3)}`);
  if (!response.ok) throw new Error(`${response.status}`);
  return response.json();
}

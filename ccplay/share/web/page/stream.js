// The stream of messages: reconnects by itself, and reports it.

/** This tab's name among the voters: nobody else can know it. */
export const VOTER = named();

function named() {
  const key = `voter ${location.pathname}`;
  const known = sessionStorage.getItem(key);
  if (/^[0-9a-f]{32}$/.test(known ?? "")) return known;
  const drawn = [...crypto.getRandomValues(new Uint8Array(16))].map((each) => each.toString(16).padStart(2, "0")).join("");
  sessionStorage.setItem(key, drawn);
  return drawn;
}

const KINDS = ["opening", "facts", "lines", "log", "frame", "view", "gap", "another", "over"];

/** Call `take(kind, content)` for each message, and `status(word)` when the connection changes. */
export function connect(take, status) {
  let source = null, over = false, quiet = 0;
  const open = () => {
    source?.close();
    source = new EventSource(`events?as=${VOTER}`);
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

/** Vote on a question of a lesson; return the status of the answer, or 0 without one. */
export async function vote(question, choice) {
  try {
    const body = JSON.stringify({ question, choice });
    return (await fetch(`vote?as=${VOTER}`, { method: "POST", headers: { "Content-Type": "application/json" }, body })).status;
  } catch { return 0; }
}

/** Ask for the past between two moments. */
export async function past(from, to) {
  const response = await fetch(`window?from=${from.toFixed(3)}&to=${to.toFixed(3)}`);
  if (!response.ok) throw new Error(`${response.status}`);
  return response.json();
}

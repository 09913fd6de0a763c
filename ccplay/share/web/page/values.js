// The values of all lines: live ones, and windows of the past that were fetched.

const MOST = 12000; // live moments kept: ten minutes at 20 Hz
const KEPT = 4; // windows kept

/** Turn the differences of a row into values; a single number means that all are equal. */
function undone(row, count, per, known = 0) {
  const found = new Float64Array(count).fill(NaN);
  if (row === null || row === undefined) return found;
  if (!Array.isArray(row)) return found.fill(row * per);
  row.forEach((step, at) => {
    if (step !== null) found[at] = (known += step) * per;
  });
  return found;
}

export class Values {
  constructor(ask) {
    this.ask = ask; // (from, to) => Promise of a window
    this.ended = false; // whether nobody answers any more
    this.reset([], []);
  }

  reset(lines, last) {
    this.lines = [];
    this.times = [];
    this.windows = [];
    this.asked = "";
    this.add(lines, last);
  }

  add(lines, last = []) {
    for (const [plot, role, subject, per, style, ink] of lines) {
      const number = this.lines.length;
      this.lines.push({
        number, plot, role, subject, per, style, ink,
        last: last[number] ?? null,
        live: new Array(this.times.length).fill(NaN),
      });
    }
  }

  /** Take the values of some moments: step in ms, first number, count, a row for each line. */
  take([stepMs, first, count, rows]) {
    for (let at = 0; at < count; at++) this.times.push(((first + at) * stepMs) / 1000);
    this.lines.forEach((line, number) => {
      const row = rows[number];
      if (Array.isArray(row)) {
        let known = line.last ?? 0;
        for (const step of row) {
          if (step !== null) known += step;
          line.live.push(step === null ? NaN : known * line.per);
          line.last = step === null ? null : known;
        }
      } else {
        if (row === null || row === undefined) line.last = null;
        const value = line.last === null ? NaN : line.last * line.per;
        for (let at = 0; at < count; at++) line.live.push(value);
      }
    });
    if (this.times.length > MOST) {
      this.times.splice(0, MOST / 3);
      for (const line of this.lines) line.live.splice(0, MOST / 3);
    }
  }

  get now() { return this.times.at(-1) ?? 0; }
  get liveFrom() { return this.times[0] ?? Infinity; }

  /** Fetch the values between two moments unless they are here. */
  require(left, right, changed) {
    const until = Math.min(right, this.liveFrom, this.until ?? Infinity), since = Math.max(left, 0);
    if (since >= until) return;
    const fine = Math.max((right - left) / 200, 0.05);
    if (this.windows.some((w) => w.from <= since && w.to >= until - fine && w.step <= fine)) return;
    const margin = (right - left) / 2;
    const from = Math.max(since - margin, 0), to = Math.min(until + margin, until + 30);
    const key = `${from.toFixed(1)} ${to.toFixed(1)}`;
    if (this.asked || this.ended) return;
    this.asked = key;
    const lines = this.lines;
    this.ask(from, to).then((found) => {
      if (lines !== this.lines) return;
      const decoded = found.rows.map((row, number) => {
        const per = lines[number]?.per ?? 1, low = undone(row[0], found.count, per);
        return [low, row.length > 1 ? undone(row[1], found.count, per) : low];
      });
      const step = found.step;
      this.windows.unshift({ from: found.from, to: found.from + step * found.count, step, rows: decoded });
      this.windows.length = Math.min(this.windows.length, KEPT);
      changed();
    }).catch(() => {}).finally(() => setTimeout(() => { this.asked = ""; changed(); }, 300));
  }

  _window(left, right) {
    const until = Math.min(right, this.liveFrom);
    let best = null, most = 0;
    for (const each of this.windows) {
      const covers = Math.min(each.to, until) - Math.max(each.from, left);
      if (covers > most * 1.05 + 1e-9 || (best && covers > most * 0.95 && each.step < best.step)) {
        best = each; most = Math.max(covers, 1e-9);
      }
    }
    return best;
  }

  /** Call `put(t, least, greatest)` for each known value of a line between two moments, in order. */
  each(line, left, right, put) {
    const past = this._window(left, right);
    if (past && past.rows[line.number]) {
      const [low, high] = past.rows[line.number];
      const first = Math.max(Math.floor((left - past.from) / past.step) - 1, 0);
      for (let at = first; at < low.length; at++) {
        const t = past.from + (at + 1) * past.step;
        if (t >= this.liveFrom || t > right + past.step) break;
        put(t, low[at], high[at]);
      }
    }
    const start = Math.max(this._index(left) - 1, 0);
    for (let at = start; at < this.times.length && this.times[at] <= right + 0.5; at++)
      put(this.times[at], line.live[at], line.live[at]);
  }

  /** The value of a line at a moment; NaN where it is not known. */
  at(line, t) {
    if (t >= this.liveFrom) return line.live[this._index(t + 1e-6) - 1] ?? NaN;
    const past = this._window(t - 1, t);
    const row = past?.rows[line.number]?.[1];
    if (!row?.length) return NaN;
    const place = Math.min(Math.max(Math.ceil((t - past.from) / past.step) - 1, 0), row.length - 1);
    // The newest step of a recording may end before anything was sampled in it.
    return Number.isNaN(row[place]) && place === row.length - 1 ? row[place - 1] ?? NaN : row[place];
  }

  /** The first live moment that is not before `t`. */
  _index(t) {
    let low = 0, high = this.times.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.times[middle] < t) low = middle + 1; else high = middle;
    }
    return low;
  }
}

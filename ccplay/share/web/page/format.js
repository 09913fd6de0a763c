// Formats numbers and moments as the terminal does.

/** A moment of the session as minutes and seconds. */
export function clock(t, fraction = false) {
  const whole = Math.max(fraction ? Math.floor(t * 10) / 10 : Math.floor(t), 0);
  const hours = Math.floor(whole / 3600), minutes = Math.floor(whole / 60) % 60;
  const seconds = (whole % 60).toFixed(fraction ? 1 : 0).padStart(fraction ? 4 : 2, "0");
  return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${seconds}` : `${minutes}:${seconds}`;
}

/** A value on an axis, without its unit; see `Variable.write`. */
export function write(axis, value) {
  if (value === null || value === undefined) return "–";
  if (value >= 1e7) return value.toExponential(1);
  const digits = axis.digits ?? (axis.scaled && value < 100 ? 1 : 0);
  return value.toFixed(digits);
}

/** A rate in bits per second, with its unit. */
export function rate(bps) {
  if (bps === null || bps === undefined) return "–";
  for (const [unit, size] of [["Gbit/s", 1e9], ["Mbit/s", 1e6], ["kbit/s", 1e3]])
    if (bps >= size) return `${Number((bps / size).toPrecision(3))} ${unit}`;
  return `${Math.round(bps)} bit/s`;
}

/** A short label of an axis, for any magnitude. */
export function label(value) {
  for (const [unit, size] of [["G", 1e9], ["M", 1e6], ["k", 1e4]])
    if (value >= size) return `${Number((value / (unit === "k" ? 1e3 : size)).toPrecision(4))}${unit}`;
  return String(Number(value.toPrecision(6)));
}

/** Distance of an axis' labels: 1, 2 or 5 times a power of ten. */
export function ticks(span, most) {
  const least = span / Math.max(most, 1);
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((each) => each * power).find((each) => each >= least);
}

const SECONDS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200];

/** Distance of a time axis' labels, in seconds. */
export function timeTicks(span, most) {
  return SECONDS.find((each) => each >= span / Math.max(most, 1)) ?? 14400;
}

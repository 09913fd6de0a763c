// What is shown: window of time, selected flow, queue and plots; the presenter's, or the user's own.

const DEFAULT = ["cwnd", "queue", "rtt", "throughput"];

export class View {
  constructor() {
    this.plots = DEFAULT;
    this.width = 30;
    this.restart();
  }

  /** Begin anew, following the presenter, with another network. */
  restart() {
    this.presenter = null; // the newest view of the presenter
    this.since = 0; // when it arrived, in ms
    this.following = true;
    this.recorded = false;
    this.live = true; // whether the axis runs
    this.left = 0;
    this.selected = null;
    this.observed = 0;
    this.hover = null;
    this.now = 0;
    this.seen = 0;
  }

  present({ playhead, ...rest }) {
    const view = { ...rest, ...playhead };
    this.seen = Math.max(this.seen, view.t);
    this.presenter = view;
    this.since = performance.now();
    if (this.following) this.takeOver();
  }

  takeOver() {
    const view = this.presenter;
    this.following = true;
    this.live = !view || (view.running && !this.recorded);
    if (!view) return;
    this.width = view.width;
    this.left = view.left;
    this.selected = view.selected ?? null;
    this.observed = view.observed ?? 0;
    if (view.plots?.length) this.plots = view.plots;
  }

  get follows() { return this.following && this.presenter !== null; }

  /** Seconds that a replay has run since the presenter's last view. */
  get _ran() {
    const view = this.presenter;
    if (!this.following || !view?.running || !this.recorded) return 0;
    return ((performance.now() - this.since) / 1000) * (view.speed ?? 1);
  }

  get start() {
    if (this.live) return Math.max(this.now - this.width, 0);
    if (!this.follows || !this.recorded || !this.presenter.running) return this.left;
    // A replay runs to the right edge, and then pages, as the presenter's screen does.
    const t = this.presenter.t + this._ran, quarter = this.width / 4;
    return t < this.left + this.width ? this.left : Math.max(Math.floor(t / quarter) - 3, 0) * quarter;
  }

  get end() { return this.start + this.width; }

  /** The moment up to which plots draw: in a replay, what the presenter has not reached is hidden. */
  get until() {
    if (!this.follows || !this.recorded) return this.now;
    const t = Math.min(this.presenter.t + this._ran, this.now);
    this.seen = Math.max(this.seen, t);
    return this.presenter.running ? t : Math.max(t, Math.min(this.seen, this.end));
  }

  /** The moment whose values are shown. */
  get t() {
    if (this.hover !== null) return this.hover;
    if (this.live) return this.now;
    if (this.follows) return Math.min(this.presenter.t + this._ran, this.now);
    return Math.min(this.end, this.now);
  }

  /** The moment of the cursor; null while the axis runs. */
  get cursor() { return this.hover ?? (this.live ? null : this.t); }

  roam() {
    if (!this.live) this.left = this.start;
    this.following = false;
  }

  hold() {
    this.left = this.start;
    this.roam();
    this.live = !this.live;
  }

  pan(seconds) {
    const left = this.start;
    this.roam();
    this.left = Math.max(left + seconds, 0);
    this.live = seconds > 0 && this.left + this.width >= this.now && !this.recorded;
  }

  zoom(factor, at = this.live ? 1 : 0.5) {
    const left = this.start, width = this.width;
    this.roam();
    this.width = Math.min(Math.max(width * factor, 0.5), Math.max(this.now, 30) * 1.5);
    this.left = Math.max(left + (width - this.width) * at, 0);
  }

  home() { this.roam(); this.live = false; this.left = 0; }
  toEnd() { this.roam(); this.live = !this.recorded; this.left = Math.max(this.now - this.width, 0); }
}

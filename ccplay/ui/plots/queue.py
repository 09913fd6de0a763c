"""The plot of the observed queue's occupancy, with its limit, drops and ECN marks."""

from __future__ import annotations

from ccplay.model.values import Qdisc
from ccplay.model.wording import limit_unit
from ccplay.ui.cells.sheet import Run
from ccplay.ui.plots import ghost_plots
from ccplay.ui.plots.plot import WIDE, Plot
from ccplay.ui.plots.traces import CountTrace, Pen, SeriesTrace, ShiftedTrace, StepTrace, Trace
from ccplay.ui.view import View


def counts_bytes(view: View) -> bool:
    """Say whether the limit of the shown queue is in bytes, at the moment shown."""
    setting = view.setting
    qdisc = setting.setting.qdisc if setting else None
    return qdisc is not None and "limit" in qdisc.options and limit_unit(qdisc.kind) == "bytes"


def _in_bytes(view: View) -> bool:
    return view.queue is not None and counts_bytes(view)


def _traces(view: View) -> list[Trace]:
    """Return packets that wait, or kB where the queue's limit is in bytes."""
    if view.queue is None or view.link is None:
        return []
    in_bytes = counts_bytes(view)
    series = view.queue.series
    traces: list[Trace] = [
        SeriesTrace(
            series["backlog" if in_bytes else "qlen"],
            # Beside a second curve the ground below the first is more clutter than help.
            Pen(view.ink("queue"), "line" if _ghost(view) else "area", ascii="#"),
            factor=1e-3 if in_bytes else 1.0,
            interval=view.interval,
        )
    ]
    limits = tuple(
        (change.t, _limit(change.setting.qdisc, in_bytes))
        for change in view.state.links.get(view.link, ())
        if change.t <= view.playhead.until
    )
    if any(limit is not None for _, limit in limits):
        pen = Pen(view.ink("queue_limit"), "dotted", ascii="-")
        greatest = series["qlen"].extremes(0, view.tick + 1)
        # A limit far above all that ever queued would press the plot flat.
        near = in_bytes or max(v or 0 for _, v in limits) <= 3 * max(greatest or (0, 0)) + 100
        traces.insert(0, StepTrace(limits, pen, float(near)))
    return traces


def _limit(qdisc: Qdisc | None, in_bytes: bool) -> float | None:
    if qdisc is None or (limit_unit(qdisc.kind) == "bytes") != in_bytes:
        return None
    limit = qdisc.options.get("limit")
    if not isinstance(limit, int | float):
        return None
    return limit * 1e-3 if in_bytes else float(limit)


def _ghost(view: View) -> list[ShiftedTrace]:
    return ghost_plots.queue(view, in_bytes=_in_bytes(view))


def _counts(view: View) -> tuple[CountTrace, ...]:
    if view.queue is None:
        return ()
    series = view.queue.series
    return (
        CountTrace(series["drops"], Pen(view.ink("drop"), mark=view.glyphs.drop)),
        CountTrace(series["ecn_marks"], Pen(view.ink("mark"), mark=view.glyphs.mark)),
    )


def _numbers(view: View, width: int) -> list[Run]:
    in_bytes = counts_bytes(view)
    runs: list[Run] = []
    if view.queue is not None:
        series, tick = view.queue.series, view.tick
        for name, ink, word in (("drops", "drop", "drop"), ("ecn_marks", "mark", "mark")):
            if count := series[name].at(tick):
                sign = view.glyphs.drop if name == "drops" else view.glyphs.mark
                text = f"{sign} {count:.0f} {word}s" if width >= WIDE else f"{sign}{count:.0f}"
                runs.append((f"{text} ", view.ink(ink)))
        value = series["backlog" if in_bytes else "qlen"].at(tick)
        if value is not None:
            number = f"{value / 1e3:.1f}" if in_bytes else f"{value:.0f}"
            runs.append((f" {number}", f"bold {view.ink('queue')}"))
    return runs + ghost_plots.queue_value(view, in_bytes=in_bytes)


QUEUE = Plot(
    name="queue",
    title="queue",
    unit=lambda view: "kB" if counts_bytes(view) else "packets",
    help="packets that wait in front of the observed link; a line shows the limit",
    traces=_traces,
    numbers=_numbers,
    ghost=_ghost,
    counts=_counts,
    least=8.0,
)

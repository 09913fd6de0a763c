"""The plot of goodput: what each flow's receiver acknowledged, smoothed over a second."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from ccplay.analysis.fairness import jain
from ccplay.state.lab_state import Flow
from ccplay.state.series import Series
from ccplay.ui.cells.sheet import Run
from ccplay.ui.plots import flow_traces, ghost_plots
from ccplay.ui.plots.plot import WIDE, Plot
from ccplay.ui.plots.traces import Pen, ShiftedTrace, Span
from ccplay.ui.view import View, goodput

OVER_S = 1.0
"""A rate is the mean of so many seconds; at a flow's start of what there is of them."""

_LEAST_S = 0.1
"""Less of a flow gives no rate: single ACKs would look like peaks."""
_MBITS = 1e-6
_WHOLE = 100
"""From so many Mbit/s on a fraction is not worth its room."""
_MOST_POINTS = 20
"""A slice of time is looked at at no more moments than these."""
_PEAK_POINTS = 300
"""At so many moments the greatest rate of a window is looked for."""


@dataclass(frozen=True, slots=True)
class RateTrace:
    """How fast a counter of bytes grew, in Mbit/s, over the second before each moment."""

    series: Series
    pen: Pen
    lasting: ClassVar[bool] = False

    def spans(self, edges: Sequence[float]) -> list[Span | None]:
        """Return the least and the greatest rate in each slice, its ends included."""
        return [self._span(start, end) for start, end in pairwise(edges)]

    def _span(self, start: float, end: float) -> Span | None:
        points = min(math.ceil((end - start) / (OVER_S / 2)), _MOST_POINTS)
        times = (start + (end - start) * at / points for at in range(points + 1))
        rates = [rate for t in times if (rate := self._rate(t)) is not None]
        return (min(rates), max(rates)) if rates else None

    def peak(self, start: float, end: float) -> float:
        """Return the greatest rate from ``start`` to ``end``."""
        step = max((end - start) / _PEAK_POINTS, 0.01)
        count = max(math.ceil((end - start) / step), 0) + 1
        rates = (self._rate(min(start + step * at, end)) for at in range(count))
        return max((rate for rate in rates if rate is not None), default=0.0)

    def _rate(self, t: float) -> float | None:
        series, timeline = self.series, self.series.timeline
        tick = timeline.before_or_at(t)
        first = max(series.first, timeline.first)
        since = max(timeline.at_or_after(t - OVER_S), first)
        if not first <= since < tick < series.end:
            return None
        now, before = series.at(tick), series.at(since)
        seconds = timeline.time(tick) - timeline.time(since)
        if now is None or before is None or seconds < _LEAST_S:
            return None
        return (now - before) * 8 * _MBITS / seconds


def _traces(view: View) -> list[RateTrace]:
    flows = view.state.flows
    return [
        RateTrace(flows[name].series["bytes_acked"], flow_traces.pen(view, name))
        for name in flow_traces.names(view)
    ]


def _ghost(view: View) -> list[ShiftedTrace]:
    return ghost_plots.flow_traces(
        view, lambda flow, pen, _: RateTrace(flow.series["bytes_acked"], pen)
    )


def _rate(flow: Flow, tick: int) -> float | None:
    rate = goodput(flow, tick, OVER_S)
    return None if rate is None else rate * _MBITS


def _numbers(view: View, width: int) -> list[Run]:
    """Return the selected flow's goodput, fairness and utilisation, then all others'."""
    runs = flow_traces.values(view, lambda flow: _rate(flow, view.tick), _write)
    rates = [_rate(flow, view.tick) for flow in view.running()]
    index = jain([rate for rate in rates if rate is not None])
    used = _utilisation(view)
    shares: list[Run] = []
    for share, word, sign in ((index, "Jain", "J"), (used, "used", "u")):
        if share is not None:
            text = f" {word} {share:.2f}" if width >= WIDE else f" {sign}{share:.2f}"
            shares.append((text, view.ink("text")))
    runs[1:1] = shares
    return runs + ghost_plots.values(view, _rate, _write)


def _utilisation(view: View) -> float | None:
    """Return which share of the observed link's rate left its queue over the same second."""
    setting, tick, timeline = view.setting, view.tick, view.state.sweeps
    if view.queue is None or setting is None or not setting.setting.rate:
        return None
    carried = view.queue.series["bytes"]
    since = max(timeline.at_or_after(view.t - OVER_S), carried.first)
    now, before = carried.at(tick), carried.at(since)
    if now is None or before is None or since >= tick:
        return None
    could = setting.setting.rate * (timeline.time(tick) - timeline.time(since))
    return (now - before) * 8 / could


def _write(mbits: float) -> str:
    return f"{mbits:.1f}" if mbits < _WHOLE else f"{mbits:.0f}"


THROUGHPUT = Plot(
    name="throughput",
    title="goodput",
    unit=lambda _: "Mbit/s",
    help="payload acknowledged, as the mean of the last second; Jain's index, share of rate used",
    traces=_traces,
    numbers=_numbers,
    ghost=_ghost,
    missing=("flow", "f"),
    least=0.1,
)

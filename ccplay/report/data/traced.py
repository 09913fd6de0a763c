"""Traces in a run's figures: lines with a point per ACK, exact states, the first reduction."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import inf
from operator import itemgetter
from typing import TypeAlias

from ccplay.analysis.trust import credible
from ccplay.report.data.curves import COLUMNS, Curve, curve, state_spans
from ccplay.state.lab_state import Flow
from ccplay.state.series import Series
from ccplay.state.trace import Trace

Stretch: TypeAlias = tuple[float, float]
"""Start and end of a period in seconds."""

_HOLD_S = 0.1
"""Seconds without an ACK after which samples replace the trace: a timer may change cwnd too."""
_HOLD_STATE_S = 1.0
"""Seconds without an ACK after which samples replace the traced state; as every change of state is
traced, more than for cwnd."""
_RTTS, _MOST_RTTS = 2, 10
"""Number of RTTs shown before and after a reduction, and the most shown from its start."""


def line(
    flow: Flow, name: str, *, factor: float = 1.0, start: float = 0.0, columns: int = COLUMNS
) -> Curve:
    """Return a series of a flow as ``curve`` does, with a point per ACK while it was traced."""
    most = credible(name)
    sampled = curve(flow.series[name], factor=factor, start=start, columns=columns, most=most)
    if flow.trace is None or name not in flow.trace.series:
        return sampled
    exact = curve(flow.trace.series[name], factor=factor, start=start, columns=columns, most=most)
    traced = _inside(_stretches(flow.trace, _HOLD_S, start))
    # Gaps between ACKs are filled with samples.
    points = [(t, y) for t, y in zip(exact.t, exact.y, strict=True) if y == y and traced(t)]
    points += [(t, y) for t, y in zip(sampled.t, sampled.y, strict=True) if not traced(t)]
    points.sort(key=itemgetter(0))
    return Curve([t for t, _ in points], [y for _, y in points])


def states(flow: Flow, *, start: float = 0.0) -> list[tuple[float, float, int]]:
    """Return a flow's states as ``state_spans`` does, exact while it was traced."""
    sampled = state_spans(flow.series["ca_state"], start=start)
    if flow.trace is None:
        return sampled
    stretches = _stretches(flow.trace, _HOLD_STATE_S, start)
    traced = _inside(stretches)
    found = [each for each in sampled if not traced(each[0])]
    for left, right, state in _changes(flow.trace):
        for begin, end in stretches:
            if state and max(left - start, begin) < min(right - start, end):
                found.append((max(left - start, begin), min(right - start, end), state))
    return sorted(found)


def first_reduction(flow: Flow) -> Stretch | None:
    """Return the period around the first traced reduction of cwnd; None if there is none."""
    if flow.trace is None:
        return None
    changes = _changes(flow.trace)
    # Only CWR, Recovery and Loss reduce cwnd; Disorder does not.
    reduced = next((n for n, (*_, state) in enumerate(changes) if n and state > 1), None)
    if reduced is None:
        return None
    begun = changes[reduced][0]
    over = next((left for left, _, state in changes[reduced:] if state < 2), changes[-1][1])
    rtt_s = (flow.trace.series["srtt_us"].latest(flow.trace.moments.before_or_at(begun)) or 0) / 1e6
    return begun - _RTTS * rtt_s, min(over + _RTTS * rtt_s, begun + _MOST_RTTS * rtt_s)


def within(series: Series, stretch: Stretch, *, start: float = 0.0, most: float = inf) -> Curve:
    """Return every value of a series within a period, with gaps for values above ``most``."""
    timeline, found = series.timeline, Curve()
    first = max(timeline.at_or_after(stretch[0]), series.first)
    for tick in range(first, min(timeline.at_or_after(stretch[1]), series.end)):
        value = series.at(tick)
        found.add(timeline.time(tick) - start, None if value is None or value > most else value)
    return found


def _stretches(trace: Trace, hold_s: float, start: float) -> list[Stretch]:
    """Return the periods without long gaps between ACKs."""
    moments = trace.moments.moments(trace.moments.first, trace.moments.end)
    breaks = [n + 1 for n, (a, b) in enumerate(pairwise(moments)) if b - a > hold_s]
    edges = pairwise([0, *breaks, len(moments)])
    return [(moments[a] - start, moments[b - 1] - start) for a, b in edges if a < b]


def _inside(stretches: Sequence[Stretch]) -> Callable[[float], bool]:
    starts = [start for start, _ in stretches]

    def inside(t: float) -> bool:
        at = bisect_right(starts, t) - 1
        return at >= 0 and t <= stretches[at][1]

    return inside


def _changes(trace: Trace) -> list[tuple[float, float, int]]:
    """Return the spans (start, end, state) of a traced connection's states."""
    timeline, moments = trace.ca_state.timeline, trace.moments
    if timeline.end == timeline.first or moments.end == moments.first:
        return []
    begins = timeline.moments(timeline.first, timeline.end)
    last = max(begins[-1], moments.time(moments.end - 1))
    values = trace.ca_state.values(timeline.first, timeline.end)
    spans = zip(pairwise([*begins, last]), values, strict=True)
    return [(left, right, round(value)) for (left, right), value in spans]

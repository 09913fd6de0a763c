"""Fairness of flows: Jain's index, and the time until they share fairly."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ccplay.state.lab_state import Flow, LabState

SHORTEST_S = 1.0
"""Shortest time in seconds for which flows must run together for meaningful shares."""
FAIR = 0.95
"""Jain's index from which on flows count as converged: of two flows neither has more than 61 %."""
_STEP_S = 0.1
_MOST_SHARES = 1_000_000
"""Largest number of shares computed; many long flows are sampled in longer steps."""


def jain(shares: Sequence[float]) -> float | None:
    """Return Jain's index of two or more shares: 1 if they are equal, 1/n if one flow has all.

    Jain, Chiu and Hawe, "A Quantitative Measure of Fairness and Discrimination", DEC-TR-301, 1984.
    Return None for fewer than two shares, or if all are zero.
    """
    squares = math.fsum(share * share for share in shares)
    if len(shares) < 2 or not squares:
        return None
    return math.fsum(shares) ** 2 / (len(shares) * squares)


def fairness(state: LabState) -> float | None:
    """Return Jain's index of the long-lived flows' goodput, over the time in which all of them ran.

    Flows that had ended before the last one began are left out. Return None for fewer than two
    flows, or for less than a second.
    """
    together = _together(state)
    if together is None:
        return None
    flows, start, end = together
    return _rounded(jain(_acked_between(flows, *_ticks(state, start, end))))


def converged_s(state: LabState) -> float | None:
    """Return the time from the last flow's start until flows first shared fairly; None if never.

    Flows share fairly if their index is ``FAIR`` over a window of a second, or of ten round trips
    if these are longer; after Bansal and others, "Dynamic Behavior of Slowly-Responsive Congestion
    Control Algorithms", SIGCOMM 2001, section 4.1.
    """
    together = _together(state)
    if together is None:
        return None
    flows, start, end = together
    trips = [flow.series["min_rtt_us"].last or 0.0 for streams in flows for flow in streams]
    window = max(SHORTEST_S, 10e-6 * max(trips))
    step_s = max(_STEP_S, (end - start) * sum(map(len, flows)) / _MOST_SHARES)
    before = None
    for step in range(max(0, math.floor((end - start - window) / step_s)) + 1):
        until = start + window + step * step_s
        ticks = _ticks(state, until - window, until)
        if ticks == before:
            continue
        before = ticks
        index = jain(_acked_between(flows, *ticks))
        if until <= end and index is not None and index >= FAIR:
            return round(until - start, 3)
    return None


def _together(state: LabState) -> tuple[list[list[Flow]], float, float] | None:
    """Return the long-lived flows, each as its streams, and the time in which all of them ran.

    Flows that had ended before the last one began are left out, because they never competed with
    it.
    """
    flows = [
        list(state.streams[first.name].values())
        for first in state.flows.values()
        if first.kind == "flow" and first.parent == first.name
    ]
    start = max((streams[0].started for streams in flows), default=0.0)
    flows = [each for each in flows if (t := each[0].ended) is None or t > start]
    if len(flows) < 2:
        return None
    end = min(state.now if (t := streams[0].ended) is None else t for streams in flows)
    return (flows, start, end) if end - start >= SHORTEST_S else None


def _ticks(state: LabState, start: float, end: float) -> tuple[int, int]:
    return state.sweeps.before_or_at(start), state.sweeps.before_or_at(end)


def _acked_between(flows: list[list[Flow]], first: int, last: int) -> list[float]:
    return [sum(_acked(flow, last) - _acked(flow, first) for flow in streams) for streams in flows]


def _acked(flow: Flow, tick: int) -> float:
    return flow.series["bytes_acked"].latest(tick) or 0.0


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)

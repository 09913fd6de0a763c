"""The effects of a queue on its link: queueing delay and utilisation."""

from __future__ import annotations

from itertools import pairwise

from ccplay.model.traffic import KINDS
from ccplay.state.lab_state import LabState, Queue, Traffic


def filling(state: LabState) -> list[Traffic]:
    """Return the traffic that sends enough to fill a queue."""
    return [each for each in state.traffic.values() if KINDS[each.kind].fills]


def while_traffic_ran(state: LabState) -> tuple[float, float]:
    """Return the time from the first start to the last end; without traffic the whole session."""
    traffic = filling(state)
    start = min((each.started for each in traffic), default=0.0)
    ends = (state.now if each.ended is None else each.ended for each in traffic)
    return start, max(ends, default=state.now)


def occupancy(state: LabState, queue: Queue, name: str) -> list[float]:
    """Return ``qlen`` (packets) or ``backlog`` (bytes) in each sweep while traffic ran."""
    start, end = while_traffic_ran(state)
    ticks = state.sweeps.at_or_after(start), state.sweeps.before_or_at(end) + 1
    return queue.series[name].values(*ticks)


def queueing_delays_us(state: LabState, queue: Queue) -> list[float]:
    """Return the queueing delay, backlog over rate, in each sweep while traffic ran.

    Empty if the link has no rate, and so no queue.
    """
    backlog = queue.series["backlog"]
    start, end = while_traffic_ran(state)
    delays = []
    for tick in range(state.sweeps.at_or_after(start), state.sweeps.before_or_at(end) + 1):
        waiting = backlog.at(tick)
        rate = _rate(state, queue.link, state.sweeps.time(tick))
        if waiting is not None and rate:
            delays.append(waiting * 8e6 / rate)
    return delays


def utilisation(state: LabState, queue: Queue) -> float | None:
    """Return the share of its rate that a link carried while traffic ran.

    It is the bytes that left the queue over those that could have left; both count Ethernet
    headers. None without a rate or without traffic.
    """
    start, end = while_traffic_ran(state)
    carried = queue.series["bytes"]
    first, last = state.sweeps.at_or_after(start), state.sweeps.before_or_at(end)
    since, until = carried.latest(first), carried.latest(last)
    if not filling(state) or since is None or until is None or last <= first:
        return None
    could = _capacity(state, queue.link, state.sweeps.time(first), state.sweeps.time(last))
    return round(8 * (until - since) / could, 4) if could else None


def loss(queue: Queue) -> float | None:
    """Return the share of arriving packets that a queue dropped; None if none arrived."""
    drops, left = queue.series["drops"].last or 0.0, queue.series["packets"].last or 0.0
    return round(drops / (drops + left), 6) if drops + left else None


def _rate(state: LabState, link: str, t: float) -> int | None:
    then = state.link_at(link, t)
    return None if then is None else then.setting.rate


def _capacity(state: LabState, link: str, start: float, end: float) -> float | None:
    """Return the bits that a link could carry between two moments; None without a rate."""
    changes = sorted(change.t for change in state.links.get(link, ()))
    moments = [start, *(t for t in changes if start < t < end), end]
    total = 0.0
    for since, until in pairwise(moments):
        rate = _rate(state, link, since)
        if not rate:
            return None
        total += rate * (until - since)
    return total

"""The utilisation of links and the fill of queues, for drawings of networks."""

from __future__ import annotations

from ccplay.plots.levels import counts_bytes
from ccplay.state.lab_state import LabState, mean_capacity

IDLE, BUSY = 0.02, 0.8
"""Shares of a link's rate below which a link counts as idle, and at or above which as busy."""

BUILDING = 0.1
"""Smallest share of a queue's limit at which the queue counts as building."""


def utilisation(state: LabState, link: str, start: float, end: float) -> float | None:
    """Return the traffic that left on a link between two moments as a share of what could leave.

    Return None if the link is not observed, has no rate, or let nothing pass.
    """
    queue = state.queues.get(link)
    if queue is None:
        return None
    carried = queue.series["bytes"]
    first = max(state.sweeps.before_or_at(start), carried.first)
    last = min(state.sweeps.before_or_at(end), carried.end - 1)
    if last <= first:
        return None
    before, after = carried.at(first), carried.at(last)
    since, until = state.sweeps.time(first), state.sweeps.time(last)
    could = mean_capacity(state, link, since, until)
    if before is None or after is None or not could:
        return None
    return max(after - before, 0.0) * 8 / (until - since) / could


def fill(state: LabState, link: str, start: int, end: int) -> float | None:
    """Return the greatest length of a queue from tick ``start`` to ``end`` (not included).

    The length is a share of the queue's limit, at most 1; None if length or limit is unknown.
    """
    queue = state.queues.get(link)
    if queue is None or end <= start or start < 0:
        return None
    setting = state.link_at(link, state.sweeps.time(end - 1))
    qdisc = setting.setting.qdisc if setting is not None else None
    limit = qdisc.options.get("limit") if qdisc is not None else None
    if isinstance(limit, bool) or not isinstance(limit, int | float) or limit <= 0:
        return None
    found = queue.series["backlog" if counts_bytes(qdisc) else "qlen"].extremes(start, end)
    return None if found is None else min(found[1] / limit, 1.0)

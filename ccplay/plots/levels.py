"""What plots draw beside measured values: limits, thresholds, delays, rates; and summaries."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ccplay.analysis import sharing
from ccplay.model.values import LinkSetting, Qdisc
from ccplay.model.wording import limit_unit
from ccplay.plots.subjects import growth
from ccplay.state import lab_state
from ccplay.state.lab_state import LabState, mean_capacity
from ccplay.traffic.plot import Changes


class Scope(msgspec.Struct, frozen=True):
    """The part of a session that a setting or a summary concerns."""

    state: LabState
    link: str = ""
    """The link, or ``LINK CLASS``, whose queue is drawn."""
    ends: tuple[str, str] = ("", "")
    """Source and destination hosts, between which a base RTT is computed."""
    in_bytes: bool = False
    """Whether the queue is drawn in bytes rather than packets."""
    converts: bool = False
    """Whether a limit in the other unit is converted by full frames rather than left out."""
    t: float = 0.0
    """The moment of a summary, in seconds since the start of the stream."""
    values: Sequence[float] = ()
    """Values of the plot's first variable, in its unit, for the flows that run at ``t``."""


_HEADER_BYTES = 14

FRAME_BYTES = 1514
"""Length of a full Ethernet frame in bytes, for converting between packets and bytes."""


def qdiscs(state: LabState, link: str) -> list[tuple[float, LinkSetting, Qdisc | None]]:
    """Return moment, setting and the queue's discipline of each change of a link.

    ``link`` may be ``LINK CLASS``, for the queue of a class.
    """
    direction, _, name = link.partition(" ")
    changes = state.links.get(direction, ())
    return [
        (each.t, each.setting, each.setting.queue_of(name) or each.setting.qdisc)
        for each in changes
    ]


def counts_bytes(qdisc: Qdisc | None) -> bool:
    """Return whether the limit of a discipline counts bytes; False also if it has no limit."""
    return qdisc is not None and "limit" in qdisc.options and limit_unit(qdisc.kind) == "bytes"


def limits(scope: Scope) -> Changes:
    """Return a queue's limit at each change, in the scope's unit; None if there is none."""
    every = qdiscs(scope.state, scope.link)
    return tuple((t, _limit(qdisc, _frame(setting), scope)) for t, setting, qdisc in every)


def thresholds(scope: Scope) -> Changes:
    """Return at each change the backlog at which a link starts to mark, in bytes or in packets."""
    return tuple(
        (t, setting.mark and setting.mark * (_frame(setting) if scope.in_bytes else 1.0))
        for t, setting, _ in qdiscs(scope.state, scope.link)
    )


def rates(scope: Scope) -> Changes:
    """Return a link's rate at each change, in bits per second; None while a trace gives it."""
    changes = scope.state.links.get(scope.link.partition(" ")[0], ())
    return tuple(
        (each.t, None if each.setting.is_paced else each.setting.rate and float(each.setting.rate))
        for each in changes
    )


def base_rtts(scope: Scope) -> Changes:
    """Return the base RTT between two hosts at each change, in microseconds."""
    hello = scope.state.hello
    found = lab_state.base_rtt(scope.state, hello.network if hello else None, *scope.ends)
    return tuple((t, None if ms is None else ms * 1e3) for t, ms in found)


def _frame(setting: LinkSetting) -> int:
    """Return the length of a link's full packet in bytes, including its Ethernet header."""
    return FRAME_BYTES if setting.mtu is None else setting.mtu + _HEADER_BYTES


def _limit(qdisc: Qdisc | None, frame: int, scope: Scope) -> float | None:
    if qdisc is None:
        return None
    limit, in_bytes = qdisc.options.get("limit"), limit_unit(qdisc.kind) == "bytes"
    if not isinstance(limit, int | float):
        return None
    if in_bytes == scope.in_bytes:
        return float(limit)
    if not scope.converts:
        return None
    return limit / frame if in_bytes else float(limit * frame)


# --- summaries of all flows -----------------------------------------------------------------------


def jain(scope: Scope) -> float | None:
    """Return Jain's fairness index of the flows' values; None for fewer than two."""
    return sharing.jain(list(scope.values))


def used(scope: Scope, over_s: float = 1.0) -> float | None:
    """Return the share of what could leave on a link that left in ``over_s`` seconds."""
    queue = scope.state.queues.get(scope.link)
    could = mean_capacity(scope.state, scope.link, scope.t - over_s, scope.t)
    bytes_s = None if queue is None else growth(queue.series["bytes"], scope.t, over_s)
    return None if bytes_s is None or not could else bytes_s * 8 / could


# --- utilisation of links and fill of queues, for drawings of networks ----------------------------

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

"""Settings that plots draw beside measured values: limits, thresholds, delays, rates."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ccplay.model.values import LinkSetting, Qdisc
from ccplay.model.wording import limit_unit
from ccplay.state import lab_state
from ccplay.state.lab_state import LabState
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
    return [(each.t, each.setting, _qdisc(each.setting, name)) for each in changes]


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


def _qdisc(setting: LinkSetting, name: str) -> Qdisc | None:
    """Return the queue of a class, or of the link itself if no class is named."""
    own = next((each.qdisc for each in setting.classes or () if each.name == name), None)
    return own or setting.qdisc


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

"""Checks the goodput of flows against what a link can carry with frame headers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from ccplay.model.events import LinkChanged
from ccplay.state.lab_state import Flow, LabState

_ETHERNET, _IP_AND_TCP, _TIMESTAMPS, _MOST_OPTIONS = 14, 40, 12, 40
"""Lengths of headers in bytes; HTB counts Ethernet's too, and most segments have no option but
timestamps."""

_USUAL_MTU = 1500
_LONGEST_PACKET = 1 << 16
"""Longest packet of a queue with offloads, in bytes; it is sent whole once its first bit is due."""

_EXACT_S = 0.001
"""Error of the start and end of flows, in seconds."""
_BURST_S = 0.001
"""Seconds of its rate that HTB lets pass at once after it was idle; at least two frames."""
_REPORTED_S = 0.1
"""Seconds by which a new rate may be in force before it is reported, as it is read back first."""


class _Transfer(NamedTuple):
    """The bytes of a flow, all its streams together."""

    name: str
    begin: float
    end: float
    bits: float
    """Number of bits of payload."""
    links: tuple[str, ...]
    share: float
    """Share of payload in the bits on the wire."""


def above_framing(state: LabState) -> str | None:
    """Return where flows, alone or together, exceeded a link's capacity; None if nowhere.

    The links' rates over time, their MTU and the headers count. Such a result can't be right.
    """
    transfers = sorted(_transfers(state), key=lambda each: each.begin)
    for name in dict.fromkeys(link for each in transfers for link in each.links):
        link = _Link(state.links.get(name, ()))
        over = [each for each in transfers if name in each.links]
        for group in [*([each] for each in over), *_together(over)] if link.has_rate else ():
            begin, end = group[0].begin, max(each.end for each in group)
            needed = sum(each.bits / each.share for each in group)
            carried = link.carried(begin, end)
            if end > begin and needed > carried + link.slack:
                had = sum(each.bits for each in group) / (end - begin)
                who = f"flow {group[0].name}" if len(group) == 1 else f"{len(group)} flows together"
                return (
                    f"{who} had {had / 1e6:,.5g} Mbit/s of payload over {name}, "
                    f"where framing allows {had * carried / needed / 1e6:,.5g} Mbit/s"
                )
    return None


def _transfers(state: LabState) -> Iterator[_Transfer]:
    if state.hello is None:
        return
    streams: dict[str, list[Flow]] = {}
    ways: dict[tuple[str, str], tuple[list[str], int]] = {}
    for flow in state.flows.values():
        if flow.mptcp or flow.kind == "download":
            continue
        if flow.paths or flow.kind == "subflow":
            yield from _over_one_path(state, flow)
        else:
            streams.setdefault(flow.parent, []).append(flow)
    for name, members in streams.items():
        first = state.flows.get(name)
        if first is None:
            continue
        ended = first.ended is not None
        ends = (first.src, first.dst)
        if ends not in ways:
            way = [link.name for link in state.hello.network.path(*ends)]
            ways[ends] = (way, _mtu(state, way))
        links, mtu = ways[ends]
        yield _Transfer(
            name,
            first.started,
            first.started + first.duration_s if ended else state.now,
            8.0 * (first.bytes if ended else sum(each.acked for each in members)),
            tuple(links),
            _payload_share(mtu, first.mss),
        )


def _over_one_path(state: LabState, flow: Flow) -> Iterator[_Transfer]:
    """Yield the transfer of a connection over its path; nothing if it took several.

    In a recording from elsewhere a connection may have no path.
    """
    assert state.hello is not None  # noqa: S101 - ``_transfers`` has looked
    ways = state.hello.network.paths(flow.src, flow.dst)
    if flow.paths:
        links = flow.paths[0].links
    else:
        links = [link.name for link in ways[0]] if len(ways) == 1 else []
    if links and len(flow.paths) < 2:
        share = _payload_share(_mtu(state, links), flow.mss)
        end = state.now if flow.ended is None else flow.ended
        yield _Transfer(flow.name, flow.started, end, 8.0 * flow.acked, tuple(links), share)


def _mtu(state: LabState, links: Sequence[str]) -> int:
    settings = (each.setting for link in links for each in state.links.get(link, ()))
    return min((each.mtu for each in settings if each.mtu), default=_USUAL_MTU)


def _payload_share(mtu: int, mss: int) -> float:
    """Return the share of payload in the bits on the wire; ``mss`` is 0 if unknown."""
    mss = mss or max(mtu - _IP_AND_TCP - _TIMESTAMPS, 1)
    headers = mtu - mss
    if not _IP_AND_TCP <= headers <= _IP_AND_TCP + _MOST_OPTIONS:
        # Something else keeps segments short, but they have at least these headers.
        headers = _IP_AND_TCP
    return mss / (mss + headers + _ETHERNET)


def _together(transfers: Sequence[_Transfer]) -> Iterator[list[_Transfer]]:
    """Yield groups of transfers that overlap in time; ``transfers`` are ordered by start."""
    group: list[_Transfer] = []
    end = 0.0
    for each in transfers:
        if each.begin >= end:
            if len(group) > 1:
                yield group
            group = []
        group.append(each)
        end = max(end, each.end)
    if len(group) > 1:
        yield group


class _Link:
    """The capacity of one direction of a link."""

    def __init__(self, changes: Sequence[LinkChanged]) -> None:
        rates = [each.setting.rate or 0 for each in changes]
        self.has_rate = bool(rates) and all(rates)
        before = [rates[0] if rates else 0, *rates]
        steps = sorted(
            (each.t - _REPORTED_S if rate > last else each.t, rate)
            for each, rate, last in zip(changes, rates, before, strict=False)
        )
        # The first setting was in force before its report, too.
        self._steps = [(0.0, before[0]), *((max(t, 0.0), rate) for t, rate in steps)]
        passed = ((until - since) * rate for (since, rate), (until, _) in pairwise(self._steps))
        self._passed = list(accumulate(passed, initial=0.0))
        packets = (_LONGEST_PACKET if c.offloads else c.setting.mtu or _USUAL_MTU for c in changes)
        packet = max(packets, default=_USUAL_MTU)
        burst = max(max(before) * _BURST_S, 2 * 8 * (_USUAL_MTU + _ETHERNET))
        self.slack = max(before) * _EXACT_S + burst + 8 * packet
        """Tolerance in bits: the precision of times, and the bits that may be sent at once."""

    def carried(self, begin: float, end: float) -> float:
        """Return the bits that the link can carry from ``begin`` to ``end``."""
        return self._until(end) - self._until(begin)

    def _until(self, t: float) -> float:
        at = bisect_right(self._steps, t, key=lambda step: step[0]) - 1
        since, rate = self._steps[max(at, 0)]
        return self._passed[max(at, 0)] + rate * (t - since)

"""The bytes that each flow, download and UDP traffic moved in every interval of a run."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, stdev

import msgspec

from ccplay.model.variables import VARIABLES
from ccplay.report.data.curves import bins, count_at, flow_groups, transfers
from ccplay.state.columns import COUNT, SIZE, Column, Table
from ccplay.state.lab_state import LabState
from ccplay.state.udp import Udp

INTERVAL_S = 1.0
"""Default length of an interval in seconds."""


MOST_INTERVALS = 100_000
"""Largest number of intervals in a run, more than a day of seconds; limits the memory that a faulty
recording can use."""


class Moved(msgspec.Struct, frozen=True):
    """The bytes that some traffic moved."""

    kind: str
    """Kind of the traffic: ``flow``, ``download`` or ``udp``."""
    name: str
    bytes: list[float]
    """Payload in bytes, acknowledged or (UDP) received, in each interval while the traffic ran."""
    first: int
    """Index, from 0, of the interval in which the traffic started."""


def moved(state: LabState, start: float, end: float, interval_s: float) -> list[Moved]:
    """Return the bytes moved between two moments of a session, TCP before UDP, in order of start.

    Intervals count from ``start``; the last one may extend beyond ``end``. Between two samples
    bytes are distributed evenly. Empty for more than ``MOST_INTERVALS`` intervals.
    """
    if end - start > MOST_INTERVALS * interval_s:
        return []
    edges, acked = bins(start, end, interval_s), VARIABLES["flow"]["bytes_acked"]
    found = []
    for streams in flow_groups(state):
        first = streams[0]
        name = first.parent if first.kind == "flow" else first.name
        ran = (first.started, first.ended or end)
        found.append(_within(first.kind, name, ran, edges, transfers(streams, edges, acked)))
    for udp in state.of(Udp).values():
        if udp.received_bytes.end > 0:
            counts = [count_at(udp.received_bytes, t) for t in edges]
            ran = (udp.started, udp.ended or end)
            grown = [max(b - a, 0.0) for a, b in pairwise(counts)]
            found.append(_within("udp", udp.name, ran, edges, grown))
    return found


def _within(
    kind: str,
    name: str,
    ran: tuple[float, float],
    edges: Sequence[float],
    amounts: Sequence[float],
) -> Moved:
    """Return the bytes in those intervals in which the traffic ran."""
    inside = [place for place, (a, b) in enumerate(pairwise(edges)) if b > ran[0] and a < ran[1]]
    return Moved(kind, name, [amounts[place] for place in inside], inside[0] if inside else 0)


class Summary(msgspec.Struct, frozen=True):
    """Statistics of the bytes that some traffic moved in the intervals through which it ran."""

    traffic: str
    count: int
    mean: float | None
    sd: float | None
    least: float | None
    greatest: float | None


def summaries(found: Sequence[Moved]) -> list[Summary]:
    """Return the statistics of all traffic over its intervals except the first and the last.

    These two are usually incomplete; traffic without others is left out.
    """
    rows = []
    for each in found:
        whole = each.bytes[1:-1]
        if whole:
            sd = stdev(whole) if len(whole) > 1 else None
            what = f"UDP {each.name}" if each.kind == "udp" else f"{each.kind} {each.name}"
            rows.append(Summary(what, len(whole), fmean(whole), sd, min(whole), max(whole)))
    return rows


TABLE = Table(
    "Bytes in each second",
    (
        Column("traffic", ("traffic",)),
        Column("seconds", ("count",), COUNT),
        Column("mean", ("mean",), SIZE),
        Column("standard deviation", ("sd",), SIZE),
        Column("minimum", ("least",), SIZE),
        Column("maximum", ("greatest",), SIZE),
    ),
)
"""Description of the table of ``summaries``."""

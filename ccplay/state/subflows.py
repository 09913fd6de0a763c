"""The result of a subflow of an MPTCP connection, and its columns in tables."""

from __future__ import annotations

from typing import Any

import msgspec

from ccplay.state.columns import (
    MILLISECONDS,
    RATE,
    SECONDS,
    SEGMENTS,
    SIZE,
    Column,
    Table,
)
from ccplay.state.connections import Flow
from ccplay.state.rounding import milliseconds, percentile, percentiles_ms, rate_bps
from ccplay.state.routes import nodes_of
from ccplay.state.samples import Sampled


class Subflow(msgspec.Struct, frozen=True, kw_only=True):
    """A subflow of an MPTCP connection, which is a TCP connection of its own."""

    id: str
    src: str
    """IPv4 address of the sender."""
    dst: str
    cc: str
    started_s: float
    """Seconds since the start of the stream."""
    duration_s: float
    goodput_bps: float | None
    """Acknowledged payload in bits per second over ``duration_s``; data sent again by another
    subflow count for both, so the sum may exceed the flow's."""
    bytes: int
    retransmits: int
    """Number of retransmitted segments."""
    cwnd_p50: float | None
    """Median of cwnd in segments."""
    srtt_p50_ms: float | None
    min_rtt_ms: float | None
    nodes: list[str] = []
    """Nodes on the newest path, both hosts included; empty if there is only one path."""
    ended: bool = False
    """Whether the subflow ended before its flow."""

    @property
    def path(self) -> str:
        """Nodes of the path as text, or else the addresses."""
        return " → ".join(self.nodes or (self.src, self.dst))


def _subflows(result: Any) -> list[Subflow]:
    return list(result.subflows)


SUBFLOWS = Table(
    "Subflows",
    (
        Column("subflow", ("id",)),
        Column("algorithm", ("cc",), short="cc"),
        Column("path", ("path",), brief=()),
        Column("goodput", ("goodput_bps",), RATE),
        Column("payload", ("bytes",), SIZE, short="bytes"),
        Column("time", ("duration_s",), SECONDS),
        Column("retransmits", ("retransmits",), SEGMENTS, short="retr"),
        Column("median cwnd", ("cwnd_p50",), SEGMENTS, short="cwnd p50"),
        Column("median srtt", ("srtt_p50_ms",), MILLISECONDS, short="srtt p50"),
    ),
    _subflows,
)
"""Table of the subflows of all MPTCP flows."""


def subflow_result(state: Sampled, flow: Flow, subflow: Flow) -> Subflow:
    """Return the result of a subflow so far, or until its flow's last byte."""
    end = flow.started + flow.duration_s if flow.ended is not None else state.now
    gone = subflow.ended is not None and (flow.ended is None or subflow.ended < flow.ended)
    duration = max((subflow.ended if gone and subflow.ended else end) - subflow.started, 0.0)
    least = [each for each in subflow.series["min_rtt_us"].all() if each > 0]
    return Subflow(
        id=subflow.name,
        src=subflow.ends[0],
        dst=subflow.ends[1],
        cc=subflow.cc,
        started_s=round(subflow.started, 3),
        duration_s=round(duration, 3),
        goodput_bps=rate_bps(subflow.acked, duration),
        bytes=subflow.acked,
        retransmits=round(subflow.series["total_retrans"].newest or 0),
        cwnd_p50=percentile(list(subflow.series["cwnd"].all()), 50),
        srtt_p50_ms=percentiles_ms(list(subflow.series["srtt_us"].all()), 50)[0],
        min_rtt_ms=milliseconds(min(least, default=None)),
        nodes=list(nodes_of(subflow.paths[-1])) if subflow.paths else [],
        ended=gone,
    )

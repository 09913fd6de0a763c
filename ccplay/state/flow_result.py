"""The result of a flow and of its subflows, and their columns in tables."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from ccplay.model.columns import (
    MILLISECONDS,
    MONITORED,
    RATE,
    SECONDS,
    SEGMENTS,
    SIZE,
    Column,
    Table,
    delays,
    mean,
    milliseconds,
    percentile,
    percentiles_ms,
    rate_bps,
)
from ccplay.model.values import Monitored
from ccplay.state.connections import Flow
from ccplay.state.routes import ROUTES, Route, nodes_of, routes
from ccplay.state.samples import Sampled

# --- the result of a subflow of an MPTCP connection, and its columns in tables --------------------


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


# --- the result of a flow, all its parallel streams together, and its columns in tables -----------


class Switch(msgspec.Struct, frozen=True):
    """A switch of a running flow to another congestion control."""

    t: float
    """Seconds since the start of the stream."""
    cc: str


class Misbehaviour(msgspec.Struct, frozen=True):
    """A misbehaviour of a congestion control."""

    t: float
    """Seconds from the start of the stream until the misbehaviour was detected."""
    until: float | None
    """Seconds from the start of the stream until it stopped; null if it lasted until the flow
    ended."""
    cc: str
    wrong: str
    """Description, such as ``keeps cwnd at 1``."""


class FlowResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a long-lived flow, its parallel streams together.

    cwnd and srtt percentiles are over all sweeps in which a stream was sampled.
    """

    id: str
    cc: str
    """Algorithm at the start; ``switches`` has later ones."""
    switches: list[Switch]
    src: str
    dst: str
    streams: int
    started_s: float
    """Seconds since the start of the stream."""
    goodput_bps: float | None
    """Payload acknowledged by the receiver, in bits per second over ``duration_s``."""
    bytes: int
    """Acknowledged payload in bytes."""
    duration_s: float
    fct_s: float | None = None
    """Flow completion time in seconds, from the first to the last byte; null if the flow had no
    fixed size or was not done."""
    retransmits: int
    """Number of retransmitted segments."""
    loss: float | None = None
    """Share of the flow's segments that were retransmitted."""
    tx_bps: float | None = None
    """Payload sent, retransmissions included, in bits per second over ``duration_s``."""
    ecn: bool = False
    """Whether both ends agreed on ECN."""
    cwnd_p50: float | None
    """Median of cwnd in segments."""
    cwnd_p99: float | None
    cwnd_max: float | None
    slow_start_s: float | None = None
    """Seconds until the flow left slow start, by a loss, a mark or HyStart; null if it never
    did."""
    slow_start_cwnd: float | None = None
    """cwnd at the end of slow start, in segments."""
    srtt_p50_ms: float | None
    srtt_p95_ms: float | None
    srtt_p99_ms: float | None
    srtt_mean_ms: float | None = None
    """Mean of srtt in ms over all sweeps, there and back."""
    min_rtt_ms: float | None
    """Lowest RTT in ms measured by the kernel."""
    misbehaved: list[Misbehaviour] = []
    """Misbehaviour of the flow's algorithms, in any of its parallel streams."""
    delay_mean_ms: float | None = None
    """Mean one-way delay in ms from the sending host's IP to the receiving one's, over every packet
    that arrived; null, like the next fields, if the flow was not monitored."""
    delay_min_ms: float | None = None
    delay_max_ms: float | None = None
    rx_bps: float | None = None
    """Payload that arrived, duplicates included, in bits per second over ``duration_s``."""
    packets: int | None = None
    """Packets sent up to the newest that arrived, copies included, packets without payload
    excluded."""
    packet_loss: float | None = None
    """Share of packets that did not arrive."""
    routes: list[Route] = []
    """Paths that each stream took, if there were several."""
    mptcp: bool = False
    """Whether the flow was one MPTCP connection; its goodput is the connection's, over all
    subflows."""
    subflows: list[Subflow] = []
    """Subflows in the order in which they opened."""
    error: str | None
    """Reason why the flow died, if it was not stopped."""

    @property
    def algorithms(self) -> str:
        """Algorithms in the order of their use: ``reno → cubic``."""
        return " → ".join([self.cc, *(switch.cc for switch in self.switches)])

    @property
    def path(self) -> str:
        """Source and destination: ``h1 → h2``."""
        return f"{self.src} → {self.dst}"


TABLES = (
    Table(
        "Flows",
        (
            Column("flow", ("id",)),
            Column("algorithm", ("algorithms",), short="cc"),
            Column("path", ("path",), brief=()),
            Column("goodput", ("goodput_bps",), RATE),
            Column("payload", ("bytes",), SIZE, short="bytes"),
            Column("time", ("duration_s",), SECONDS),
            Column("retransmits", ("retransmits",), SEGMENTS, short="retr"),
            Column(
                "cwnd",
                ("cwnd_p50", "cwnd_p99", "cwnd_max"),
                SEGMENTS,
                ("p50", "p99", "max"),
                brief=(0, 1),
            ),
            Column(
                "srtt",
                ("srtt_p50_ms", "srtt_p95_ms", "srtt_p99_ms"),
                MILLISECONDS,
                ("p50", "p95", "p99"),
                brief=(0, 2),
            ),
            Column("minimum RTT", ("min_rtt_ms",), MILLISECONDS, brief=()),
        ),
    ),
    SUBFLOWS,
    MONITORED,
    ROUTES,
)
METRICS = {
    "delay_mean_ms": "mean one-way delay",
    "delay_min_ms": "least one-way delay",
    "delay_max_ms": "greatest one-way delay",
}
"""Names of a flow's metrics."""


def result(state: Sampled, flow: Flow) -> FlowResult:
    """Return the result of a flow so far; ``flow`` is its first stream."""
    first, streams = flow, list(state.streams[flow.name].values())
    size = state.sizes.get(flow.name)
    sent = first.bytes if first.ended is not None else _sum_of_last(streams, "bytes_acked")
    retransmits = (
        first.retransmits if first.ended is not None else _sum_of_last(streams, "total_retrans")
    )
    # After the end the first stream has the sum of all.
    total = first.sent if first.ended is not None else sum(each.sent for each in streams)
    duration = first.duration_s if first.ended is not None else state.now - first.started
    cwnd, srtt, least = (_values(streams, name) for name in ("cwnd", "srtt_us", "min_rtt_us"))
    srtt_p50, srtt_p95, srtt_p99 = percentiles_ms(srtt, 50, 95, 99)
    slow_start_s, slow_start_cwnd = _slow_start(state, first)
    changes = first.cc_changes or [(first.started, first.cc)]
    return FlowResult(
        id=first.name,
        cc=changes[0][1],
        switches=[Switch(round(t, 3), cc) for t, cc in changes[1:]],
        src=first.src,
        dst=first.dst,
        streams=len(streams),
        started_s=round(first.started, 3),
        goodput_bps=rate_bps(sent, duration),
        bytes=sent,
        duration_s=round(duration, 3),
        fct_s=_completion_time(size, first),
        retransmits=retransmits,
        tx_bps=rate_bps(total, duration) if total else None,
        ecn=first.ecn,
        srtt_mean_ms=milliseconds(mean(srtt)),
        loss=_lost_share(retransmits, sent, first.mss),
        cwnd_p50=percentile(cwnd, 50),
        cwnd_p99=percentile(cwnd, 99),
        cwnd_max=percentile(cwnd, 100),
        slow_start_s=slow_start_s,
        slow_start_cwnd=slow_start_cwnd,
        srtt_p50_ms=srtt_p50,
        srtt_p95_ms=srtt_p95,
        srtt_p99_ms=srtt_p99,
        min_rtt_ms=milliseconds(min((each for each in least if each > 0), default=None)),
        **delays(first.monitored),
        **_arrivals(first.monitored, duration),
        misbehaved=[each for stream in streams for each in _misbehaved(stream)],
        routes=[route for stream in (*streams, *first.subflows) for route in routes(stream.paths)],
        mptcp=first.mptcp,
        subflows=[subflow_result(state, first, each) for each in first.subflows],
        error=first.error,
    )


def _misbehaved(flow: Flow) -> list[Misbehaviour]:
    """Return the periods in which a connection's algorithms misbehaved."""
    ends = [*(round(each.t, 3) for each in flow.misbehaved[1:]), None]
    return [
        Misbehaviour(round(each.t, 3), until, each.cc, each.wrong)
        for each, until in zip(flow.misbehaved, ends, strict=False)
        if each.wrong
    ]


def _arrivals(seen: Monitored | None, duration: float) -> dict[str, Any]:
    """Return the counts of a flow's packets, if they were monitored."""
    if seen is None:
        return {}
    return {
        "rx_bps": rate_bps(seen.received_bytes, duration),
        "packets": seen.sent,
        "packet_loss": round(1 - seen.received / seen.sent, 6) if seen.sent else None,
    }


def _slow_start(state: Sampled, flow: Flow) -> tuple[float | None, float | None]:
    """Return the length of the first slow start, until ssthresh was finite, and cwnd at its end."""
    ssthresh, cwnd = flow.series["ssthresh"], flow.series["cwnd"]
    ticks = range(max(ssthresh.first, state.sweeps.first, 0), ssthresh.end)
    left = next((tick for tick in ticks if ssthresh.at(tick) is not None), None)
    if left is None:
        return None, None
    reached = cwnd.extremes(cwnd.first, left + 1)
    took = round(state.sweeps.time(left) - flow.started, 3)
    return took, None if reached is None else reached[1]


def _completion_time(size: int | None, flow: Flow) -> float | None:
    """Return the completion time of a flow of a fixed size; None for other flows."""
    done = size is not None and flow.ended is not None and flow.bytes >= size
    return round(flow.duration_s, 3) if done else None


def _lost_share(retransmits: int, sent: int, mss: int) -> float | None:
    segments = math.ceil(sent / mss) + retransmits if mss else 0
    return round(retransmits / segments, 6) if segments else None


def _values(streams: list[Flow], name: str) -> list[float]:
    return [value for flow in streams for value in flow.series[name].all()]


def _sum_of_last(streams: list[Flow], name: str) -> int:
    """Return the sum of a counter's newest values; exact to a ten-millionth (series are floats)."""
    return round(sum(flow.series[name].newest or 0 for flow in streams))

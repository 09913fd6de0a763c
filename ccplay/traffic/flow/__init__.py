"""Long-lived flows by iperf3, also over Multipath TCP: commands, events, and results.

Their connections, which are sampled, are in ``traffic.connections``.
"""

from __future__ import annotations

import math
from typing import Annotated, Any

import msgspec
from msgspec.structs import replace

from ccplay.model import settings
from ccplay.model.algorithms import DEFAULT
from ccplay.model.base import (
    ConnectionName,
    Count,
    Name,
    StartRoutedTraffic,
    StopTraffic,
    TrafficEnded,
    TrafficEvent,
    TrafficStarted,
)
from ccplay.model.columns import (
    MILLISECONDS,
    SECONDS,
    SEGMENTS,
    Column,
    ResultTable,
    mean,
    milliseconds,
    percentile,
    percentiles_ms,
    rate_bps,
)
from ccplay.model.columns import RATE as RATE_COLUMN
from ccplay.model.columns import SIZE as SIZE_COLUMN
from ccplay.model.events import Applied
from ccplay.model.quantities import FLAG, WHOLE, Field
from ccplay.model.texts import NAME, choice
from ccplay.model.values import Monitored
from ccplay.model.variables import FLOW_VARIABLES
from ccplay.model.wording import one_way
from ccplay.traffic import connections, monitored
from ccplay.traffic.base import Form, Handlers, Tool, TrafficKind, Transfer
from ccplay.traffic.connections import Connections, Flow
from ccplay.traffic.monitored import PACKETS_TABLE, MonitoredResult, delays
from ccplay.traffic.routes import ROUTES, nodes_of, routes

KERNEL_PATH_MANAGERS = ("kernel-signal", "kernel-subflow")
"""Path managers of the kernel itself, with endpoints at the receiver or at the sender."""

PATH_MANAGERS = ("ndiffports", "fullmesh", *KERNEL_PATH_MANAGERS)
"""Ways in which an MPTCP connection obtains its subflows; the first is the default."""


class StartFlow(StartRoutedTraffic, frozen=True):
    """Start a long-lived iperf3 transfer from ``src`` to ``dst``."""

    WORD = "flow"

    flow: Annotated[str | None, settings.FLOW] = None
    """Name of the flow; None takes the next free number."""
    cc: Annotated[str | None, settings.CC] = None
    """Congestion control; None takes the sending host's default."""
    streams: Annotated[
        int,
        # 128 is iperf3's own limit.
        Field(
            *(WHOLE, "Parallel connections", 1, 128), label="streams", hint="parallel connections"
        ),
    ] = 1
    bytes: Annotated[int | None, settings.PAYLOAD] = None
    duration_s: Annotated[
        float | None, replace(settings.DURATION, label="or after", unset="no limit")
    ] = None
    ecn: Annotated[
        bool,
        Field(
            FLAG,
            "Negotiate ECN, so that queues can mark its packets instead of dropping them",
            label="ECN",
        ),
    ] = False
    """Whether to negotiate ECN (RFC 3168); some algorithms, such as DCTCP, always do."""
    l4s: Annotated[
        bool,
        Field(FLAG, "Send data as ECT(1), which L4S queues keep apart (RFC 9331); includes ecn"),
    ] = False
    """Whether to send ECT(1). The kernel's TCP sends ECT(0), which is rewritten as packets leave
    the host."""
    dscp: Annotated[str, settings.DSCP] = DEFAULT
    monitor: Annotated[bool, settings.MONITOR] = False
    bidir: Annotated[bool, settings.BIDIR] = False
    """Whether data flow both ways, as with iperf3's ``--bidir`` and iperf's ``-d``; the lab answers
    with two commands."""
    senders: Annotated[
        int,
        Field(
            *(WHOLE, "Number of hosts that each send such a flow, beginning with src: an incast"),
            *(1, 128),
        ),
    ] = 1
    """Number of hosts that send; the lab answers with a command for each, whose names end in
    ``-2``, ``-3`` …"""
    mptcp: Annotated[
        bool,
        Field(
            FLAG, "Use Multipath TCP: one connection of several subflows (RFC 8684)", label="MPTCP"
        ),
    ] = False
    subflows: Annotated[
        int, Field(*(WHOLE, "Subflows of a flow over MPTCP, 2 by default", 1, 8))
    ] = 2
    path_manager: Annotated[
        str,
        Field(
            choice("path manager", PATH_MANAGERS),
            "How MPTCP gets subflows: ndiffports varies the source port, fullmesh the addresses; "
            "kernel-signal and kernel-subflow leave it to the kernel's path manager",
            key="path-manager",
        ),
    ] = PATH_MANAGERS[0]
    scheduler: Annotated[
        str | None,
        Field(NAME, "The MPTCP scheduler of Linux that shares the data between subflows"),
    ] = None
    """Scheduler, one of the sysctl ``net.mptcp.available_schedulers``; None takes the host's
    default."""

    def detail(self) -> str:
        """Return what the event log shows of the start, apart from its path."""
        over = ""
        ecn = " with L4S" if self.l4s else " with ECN" if self.ecn else ""
        marked = "" if self.dscp == DEFAULT else f", {self.dscp}"
        if self.mptcp:
            over = f" over MPTCP, {self.path_manager} of {self.subflows}"
            over += f", scheduler {self.scheduler}" if self.scheduler else ""
        return f"{self.cc or 'default'}{ecn}{marked}{over}"


def conflict(command: StartFlow) -> tuple[str, str]:
    """Return a field that does not go with the flow's ``mptcp``, and the reason.

    Both are empty if there is no such field.
    """
    if command.mptcp:
        if command.streams > 1:
            return "streams", "a flow over mptcp has one stream: give it more subflows"
        if command.monitor:
            return "monitor", "packets of a flow over mptcp can't be monitored"
        if command.via:
            return "via", "subflows take paths of their own, which the path manager chooses"
        if command.dscp != DEFAULT:
            return "dscp", "packets of a flow over mptcp can't be given a code point"
        if command.l4s:
            return "l4s", "packets of a flow over mptcp can't be made ECT(1)"
        return "", ""
    plain = StartFlow()
    for name in ("subflows", "path_manager", "scheduler"):
        if getattr(command, name) != getattr(plain, name):
            return name, "only a flow with mptcp = true has it"
    return "", ""


class StopFlow(StopTraffic, frozen=True):
    """End a flow."""

    WORD = "flow"

    flow: Annotated[str, settings.FLOW]


class FlowStarted(TrafficStarted, frozen=True):
    """A flow has sent its first data. Its stream 2 is sampled as ``flow/2``, and so on."""

    flow: Name
    cc: str
    port: int
    """TCP port of the receiver."""
    streams: Annotated[int, msgspec.Meta(ge=1, le=128)] = 1
    """Number of parallel connections, up to iperf3's limit."""
    ecn: bool = False
    """Whether both ends have agreed on ECN, so that queues may mark packets rather than drop
    them."""
    mptcp: bool = False
    """Whether the flow is one MPTCP connection, sampled as a whole under the name of the flow; each
    subflow is sampled under its own name."""


class SubflowStarted(TrafficEvent, frozen=True):
    """A subflow of an MPTCP connection is open; it is sampled under its own name."""

    flow: Name
    subflow: ConnectionName
    """Name of the subflow, ``1/2``: the flow, and a number in the order in which ccplay requested
    or found its subflows."""
    src: str
    """IPv4 address of the sender."""
    dst: str
    sport: int
    """TCP port of the sender; the receiver's is the flow's."""


class SubflowEnded(TrafficEvent, frozen=True):
    """A subflow has ended while its flow continues: the kernel closed it, perhaps on request."""

    flow: Name
    subflow: ConnectionName


class FlowEnded(TrafficEnded, frozen=True):
    """A flow has ended. ``error`` is the reason if nobody requested the end."""

    flow: str
    bytes: int
    """Acknowledged payload in bytes, all streams together."""
    duration_s: float
    retransmits: int
    """Number of retransmitted segments."""
    sent: Count = 0
    """Payload sent in bytes, retransmissions included; 0 in older recordings, which lack it."""
    monitored: Monitored | None = None
    """Monitors' counts of the flow's packets; None if not requested or unavailable."""


class Subflow(Transfer, frozen=True, kw_only=True):
    """A subflow of an MPTCP connection, which is a TCP connection of its own.

    Its ends are IPv4 addresses.
    """

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
        return " → ".join(self.nodes) or super().path


SUBFLOWS = ResultTable(
    "Subflows",
    (
        Column("subflow", ("id",)),
        Column("algorithm", ("cc",), short="cc"),
        Column("path", ("path",), brief=()),
        Column("goodput", ("goodput_bps",), RATE_COLUMN),
        Column("payload", ("bytes",), SIZE_COLUMN, short="bytes"),
        Column("time", ("duration_s",), SECONDS),
        Column("retransmits", ("retransmits",), SEGMENTS, short="retr"),
        Column("median cwnd", ("cwnd_p50",), SEGMENTS, short="cwnd p50"),
        Column("median srtt", ("srtt_p50_ms",), MILLISECONDS, short="srtt p50"),
    ),
    lambda result: list(result.subflows),
)
"""Table of the subflows of all MPTCP flows."""


def subflow_result(state: Connections, flow: Flow, subflow: Flow) -> Subflow:
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


# --- the result of a flow, all its parallel streams together --------------------------------------


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


class FlowResult(MonitoredResult, frozen=True, kw_only=True):
    """The result of a long-lived flow, its parallel streams together.

    cwnd and srtt percentiles are over all sweeps in which a stream was sampled.
    """

    cc: str
    """Algorithm at the start; ``switches`` has later ones."""
    switches: list[Switch]
    streams: int
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
    packets: int | None = None
    """Packets sent up to the newest that arrived, copies included, packets without payload
    excluded."""
    packet_loss: float | None = None
    """Share of packets that did not arrive."""
    mptcp: bool = False
    """Whether the flow was one MPTCP connection; its goodput is the connection's, over all
    subflows."""
    subflows: list[Subflow] = []
    """Subflows in the order in which they opened."""

    @property
    def algorithms(self) -> str:
        """Algorithms in the order of their use: ``reno → cubic``."""
        return " → ".join([self.cc, *(switch.cc for switch in self.switches)])


TABLES = (
    ResultTable(
        "Flows",
        (
            Column("flow", ("id",)),
            Column("algorithm", ("algorithms",), short="cc"),
            Column("path", ("path",), brief=()),
            Column("goodput", ("goodput_bps",), RATE_COLUMN),
            Column("payload", ("bytes",), SIZE_COLUMN, short="bytes"),
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
    PACKETS_TABLE,
    ROUTES,
)


def result(state: Connections, flow: Flow) -> FlowResult:
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
    cwnd, srtt, least = (
        [value for flow in streams for value in flow.series[name].all()]
        for name in ("cwnd", "srtt_us", "min_rtt_us")
    )
    srtt_p50, srtt_p95, srtt_p99 = percentiles_ms(srtt, 50, 95, 99)
    slow_start_s, slow_start_cwnd = _slow_start(state, first)
    changes = first.cc_changes or [(first.started, first.cc)]
    return FlowResult(
        **first.identity(),
        cc=changes[0][1],
        switches=[Switch(round(t, 3), cc) for t, cc in changes[1:]],
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


def _slow_start(state: Connections, flow: Flow) -> tuple[float | None, float | None]:
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


def _sum_of_last(streams: list[Flow], name: str) -> int:
    """Return the sum of a counter's newest values; exact to a ten-millionth (series are floats)."""
    return round(sum(flow.series[name].newest or 0 for flow in streams))


# --- how events change the state ------------------------------------------------------------------


def _flow_started(state: Connections, event: FlowStarted) -> None:
    for stream in range(1, event.streams + 1):
        name = event.flow if stream == 1 else f"{event.flow}/{stream}"
        flow = state.open(name, "flow", event, event.cc)
        flow.ecn, flow.mptcp = event.ecn, event.mptcp
        if stream == 1:
            state.add(flow)


def _subflow_started(state: Connections, event: SubflowStarted) -> None:
    flow = state.flows.get(event.flow)
    # A stranger's recording may call anything a subflow.
    if flow is None or not flow.mptcp or event.subflow in state.flows:
        return
    state.open_subflow(flow, event.subflow, (event.src, event.dst), event.t)
    state.write(event.t, "traffic", f"subflow {event.subflow} opens: {event.src} → {event.dst}")


def _subflow_ended(state: Connections, event: SubflowEnded) -> None:
    subflow = state.flows.get(event.subflow)
    if subflow is not None and subflow.kind == "subflow" and subflow.running:
        subflow.ended, subflow.bytes = event.t, subflow.acked
        state.write(event.t, "warning", f"subflow {event.subflow} is gone")


def _flow_ended(state: Connections, event: FlowEnded) -> None:
    for flow in state.streams.get(event.flow, {}).values():
        if flow.running:
            flow.ended, flow.error = event.t, event.error
    if (first := state.flows.get(event.flow)) is not None:
        for each in first.subflows:
            if each.running:
                each.ended, each.bytes = event.t, each.acked
        sent = max(event.sent, first.sent)
        first.end(event)
        first.sent = sent
    if event.error:
        state.write(event.t, "error", f"flow {event.flow} died: {event.error}")
    else:
        state.write(event.t, "traffic", f"flow {event.flow} ended{one_way(event.monitored)}")


def _applied(state: Connections, event: Applied) -> None:
    # Any of several flows may open first; colours follow the order of the requests.
    if isinstance(event.command, StartFlow) and event.command.flow is not None:
        state.places.setdefault(event.command.flow, len(state.places))


HANDLERS: Handlers = {
    **connections.HANDLERS,
    Applied: _applied,
    FlowStarted: _flow_started,
    SubflowStarted: _subflow_started,
    SubflowEnded: _subflow_ended,
    FlowEnded: _flow_ended,
}

KIND = TrafficKind(
    name="flow",
    plural="flows",
    prefix="",
    start=StartFlow,
    stop=StopFlow,
    started=FlowStarted,
    ended=FlowEnded,
    others=(SubflowStarted, SubflowEnded),
    more=HANDLERS,
    result=result,
    tables=TABLES,
    metrics=monitored.METRICS,
    metric="goodput_bps",
    needs={
        "fct_s": ("bytes", "the flow has no fixed size: give it bytes"),
        **monitored.needing_monitor("rx_bps", "packets", "packet_loss"),
    },
    unmeasured={
        "fct_s": "the flow was not done before the end",
        **dict.fromkeys(
            ("slow_start_s", "slow_start_cwnd"),
            "the flow never left slow start: ssthresh was not set",
        ),
    },
    variables=FLOW_VARIABLES,
    tools=(Tool("iperf3", "iperf3", "generates long-lived flows"),),
    limits=("bytes", "duration_s"),
    limit_words="bytes, a duration",
    connection=True,
    form=Form(
        key="f",
        title="New flow",
        about="TCP, as fast as its congestion control allows",
        asks=(
            *("cc", "src", "dst", "streams", "bytes", "duration_s"),
            *("ecn", "mptcp", "monitor", "flow", "bidir"),
        ),
    ),
)

"""The result of a run: figures of every flow, queue, ping and download, read off the state.

The JSON that ``ccplay run --json`` prints is ``Result``. Its keys are stable: new ones may come,
none goes or changes its meaning while ``format`` stays. What is not known is null, never NaN.
"""

from __future__ import annotations

import math

import msgspec

from ccplay.model import Hello
from ccplay.report.checkpoint import Checkpoint
from ccplay.report.percentiles import percentile
from ccplay.report.statistics import Statistic
from ccplay.report.trust import HealthResult, judge
from ccplay.series import Series
from ccplay.state import Download, Flow, LabState, Ping, Queue

FORMAT = 1
"""Version of the result's shape."""


class Switch(msgspec.Struct, frozen=True):
    """A running flow took another congestion control."""

    t: float
    """Seconds since the start of the stream."""
    cc: str


class FlowResult(msgspec.Struct, frozen=True, kw_only=True):
    """A long-lived flow, its parallel streams together.

    cwnd and srtt percentiles are over all sweeps in which a stream was sampled.
    """

    id: str
    cc: str
    """The algorithm that it started with; ``switches`` has later ones."""
    switches: list[Switch]
    src: str
    dst: str
    streams: int
    started_s: float
    """Seconds since the start of the stream."""
    goodput_bps: float | None
    """Payload acknowledged by the receiver, in bits, over ``duration_s``."""
    bytes: int
    """Payload acknowledged."""
    duration_s: float
    retransmits: int
    """Segments sent again."""
    cwnd_p50: float | None
    """Segments."""
    cwnd_p99: float | None
    cwnd_max: float | None
    srtt_p50_ms: float | None
    srtt_p95_ms: float | None
    srtt_p99_ms: float | None
    min_rtt_ms: float | None
    """The least RTT that the kernel has measured."""
    error: str | None
    """Why it died, where nobody asked for it."""


class QueueResult(msgspec.Struct, frozen=True, kw_only=True):
    """The queue of one direction of a link, over all sweeps of the case."""

    link: str
    kind: str
    """The discipline at the start; ``kinds`` has all that followed one another."""
    kinds: list[str]
    qlen_p50: float | None
    """Packets waiting."""
    qlen_p99: float | None
    qlen_max: float | None
    backlog_p50: float | None
    """Bytes waiting."""
    backlog_p99: float | None
    drops: int
    """Packets, all disciplines together."""
    marks: int | None
    """Packets marked with ECN's CE; null where the discipline does not mark."""
    bytes: int
    """Bytes that left the queue, headers included."""


class PingResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a ping measured. Times are over the answers that came."""

    id: str
    src: str
    dst: str
    sent: int
    lost: int
    min_ms: float | None
    p50_ms: float | None
    p95_ms: float | None
    max_ms: float | None
    error: str | None


class DownloadResult(msgspec.Struct, frozen=True, kw_only=True):
    """A web page fetched with wget."""

    id: str
    src: str
    dst: str
    bytes: int
    """Bytes that arrived."""
    total: int
    """Bytes asked for."""
    seconds: float | None
    """wget's own clock; null where it did not finish."""
    rate_bps: float | None
    """``bytes`` in bits over ``seconds``."""
    cwnd_max: float | None
    """The web server's, in segments."""
    error: str | None


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """An expectation of the scenario, and whether it held."""

    figure: str
    text: str
    """What was expected, as the file has it."""
    why: str
    value: float | None
    """What was measured; null where nothing was."""
    ok: bool


class CaseResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one run of a case measured."""

    name: str
    parameters: dict[str, str | int | float | bool] = {}
    """Where in the file's matrix the case lies, by axis."""
    repeat: int = 1
    attempt: int = 1
    """More than 1 where earlier attempts could not be trusted; see ``Result.discarded``."""
    recording: str | None = None
    """Where its stream is kept, seen from the result's own file."""
    duration_s: float
    """From the moment at which the network stood to the last event."""
    interrupted: bool
    flows: list[FlowResult]
    queues: list[QueueResult]
    pings: list[PingResult]
    downloads: list[DownloadResult]
    checkpoint: Checkpoint | None = None
    """When the first flow of a fixed size was done; null where none was."""
    checks: list[Check] = []
    health: HealthResult
    errors: list[str]
    """What the lab refused, what died, what never came."""


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """Where the lab ran: what explains a difference between two results."""

    kernel: str
    cpus: int
    python: str
    ccplay: str
    privilege: str
    delay_engines: list[str]
    """Those that links of the run used."""
    offloads: bool
    """Whether any link had TSO, GSO or GRO on."""
    sample_hz: float


class PublishedResult(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody else measured of a figure."""

    figure: str
    values: list[float]
    note: str


class CaseStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """The repeats of one case together."""

    name: str
    parameters: dict[str, str | int | float | bool] = {}
    runs: int
    figures: dict[str, Statistic]
    """By the figure's place in a run's object, such as ``checkpoint.ratio``."""
    published: list[PublishedResult] = []


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """A whole experiment."""

    format: int = FORMAT
    scenario: str
    """The file's name without its ending."""
    title: str
    machine: Machine | None
    """Null where no lab came to life."""
    cases: list[CaseResult]
    """One a run: with repeats, several have one name."""
    statistics: list[CaseStatistics] = []
    """One a case."""
    discarded: list[CaseResult] = []
    """Attempts whose emulation could not be trusted, and which were done again."""


def summarise(
    state: LabState,
    name: str,
    *,
    interrupted: bool = False,
    errors: tuple[str, ...] = (),
    checkpoint: Checkpoint | None = None,
) -> CaseResult:
    """Return what a session, live or recorded, has measured until now."""
    start = state.ready_at or 0.0
    flows = [
        _flow(state, [each for each in state.flows.values() if each.parent == flow.name])
        for flow in state.flows.values()
        if flow.kind == "flow" and flow.parent == flow.name
    ]
    return CaseResult(
        name=name,
        duration_s=round(state.now - start, 3),
        interrupted=interrupted,
        flows=flows,
        queues=[_queue(state, queue) for queue in state.queues.values()],
        pings=[_ping(ping) for ping in state.pings.values()],
        downloads=[_download(state, each) for each in state.downloads.values()],
        checkpoint=checkpoint,
        health=judge(state),
        errors=[*(entry.text for entry in state.log if entry.kind == "error"), *errors],
    )


def machine(state: LabState) -> Machine | None:
    """Return where the lab of a session ran; None before its ``Hello``."""
    hello: Hello | None = state.hello
    if hello is None:
        return None
    links = [change for changes in state.links.values() for change in changes]
    return Machine(
        kernel=hello.capabilities.kernel,
        cpus=hello.capabilities.cpus,
        python=hello.capabilities.python,
        ccplay=hello.version,
        privilege=hello.capabilities.privilege,
        delay_engines=sorted({link.delay_engine for link in links} - {"none"}),
        offloads=any(link.offloads for link in links),
        sample_hz=hello.sample_hz,
    )


def _flow(state: LabState, streams: list[Flow]) -> FlowResult:
    first = streams[0]
    sent = first.bytes if first.ended is not None else _sum_of_last(streams, "bytes_acked")
    retransmits = (
        first.retransmits if first.ended is not None else _sum_of_last(streams, "total_retrans")
    )
    duration = first.duration_s if first.ended is not None else state.now - first.started
    cwnd, srtt, least = (_values(streams, name) for name in ("cwnd", "srtt_us", "min_rtt_us"))
    changes = first.cc_changes or [(first.started, first.cc)]
    return FlowResult(
        id=first.name,
        cc=changes[0][1],
        switches=[Switch(round(t, 3), cc) for t, cc in changes[1:]],
        src=first.src,
        dst=first.dst,
        streams=len(streams),
        started_s=round(first.started, 3),
        goodput_bps=_rate(sent, duration),
        bytes=sent,
        duration_s=round(duration, 3),
        retransmits=retransmits,
        cwnd_p50=percentile(cwnd, 50),
        cwnd_p99=percentile(cwnd, 99),
        cwnd_max=percentile(cwnd, 100),
        srtt_p50_ms=_ms(percentile(srtt, 50)),
        srtt_p95_ms=_ms(percentile(srtt, 95)),
        srtt_p99_ms=_ms(percentile(srtt, 99)),
        min_rtt_ms=_ms(min((each for each in least if each > 0), default=None)),
        error=first.error,
    )


def _queue(state: LabState, queue: Queue) -> QueueResult:
    qlen, backlog = (_all(queue.series[name]) for name in ("qlen", "backlog"))
    kinds: list[str] = []
    for change in state.links.get(queue.link, ()):
        kind = change.setting.qdisc.kind if change.setting.qdisc else None
        if kind is not None and kinds[-1:] != [kind]:
            kinds.append(kind)
    kinds = kinds or [queue.kind]
    marks = _last(queue.series["ecn_marks"])
    return QueueResult(
        link=queue.link,
        kind=kinds[0],
        kinds=kinds,
        qlen_p50=percentile(qlen, 50),
        qlen_p99=percentile(qlen, 99),
        qlen_max=percentile(qlen, 100),
        backlog_p50=percentile(backlog, 50),
        backlog_p99=percentile(backlog, 99),
        drops=round(_last(queue.series["drops"]) or 0),
        marks=None if marks is None else round(marks),
        bytes=round(_last(queue.series["bytes"]) or 0),
    )


def _ping(ping: Ping) -> PingResult:
    times = _all(ping.rtt_us)
    return PingResult(
        id=ping.name,
        src=ping.src,
        dst=ping.dst,
        sent=ping.sent,
        lost=ping.lost,
        min_ms=_ms(percentile(times, 0)),
        p50_ms=_ms(percentile(times, 50)),
        p95_ms=_ms(percentile(times, 95)),
        max_ms=_ms(percentile(times, 100)),
        error=ping.error,
    )


def _download(state: LabState, download: Download) -> DownloadResult:
    finished = download.ended is not None and download.error is None
    seconds = download.duration_s if finished else None
    flow = state.flows.get(download.name)
    return DownloadResult(
        id=download.name,
        src=download.src,
        dst=download.dst,
        bytes=download.bytes,
        total=download.total,
        seconds=None if seconds is None else round(seconds, 6),
        rate_bps=None if seconds is None else _rate(download.bytes, seconds),
        cwnd_max=percentile(_values([flow], "cwnd"), 100) if flow else None,
        error=download.error,
    )


def _all(series: Series) -> list[float]:
    return series.values(series.first, series.end)


def _values(streams: list[Flow], name: str) -> list[float]:
    return [value for flow in streams for value in _all(flow.series[name])]


def _last(series: Series) -> float | None:
    return next(reversed(_all(series)), None)


def _sum_of_last(streams: list[Flow], name: str) -> int:
    """Add up the newest values of a counter; exact to a ten-millionth (series are floats)."""
    return round(sum(_last(flow.series[name]) or 0 for flow in streams))


def _rate(size: int, seconds: float) -> float | None:
    return round(size * 8 / seconds, 1) if seconds > 0 and math.isfinite(seconds) else None


def _ms(microseconds: float | None) -> float | None:
    return None if microseconds is None else round(microseconds / 1000, 3)

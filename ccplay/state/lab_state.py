"""LabState: everything known of a session, a pure fold of its events."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ccplay.model.base import Event, Row
from ccplay.model.commands import (
    ChangeMark,
    Mark,
    RemoveMark,
    SetCongestionControl,
    StopDownload,
    StopFlow,
    StopPing,
    StopUdp,
    TraceFlow,
    UntraceFlow,
)
from ccplay.model.events import (
    MOST_LATE_S,
    Applied,
    Building,
    CaptureEnded,
    CaptureStarted,
    DownloadEnded,
    DownloadProgress,
    DownloadStarted,
    Ended,
    Failed,
    FlowEnded,
    FlowStarted,
    Health,
    Hello,
    HostChanged,
    InterfaceCounters,
    LinkChanged,
    Log,
    Misbehaved,
    PingEnded,
    PingSample,
    PingStarted,
    Ready,
    TraceEnded,
    TraceLost,
    TraceStarted,
    UdpEnded,
    UdpSample,
    UdpStarted,
)
from ccplay.model.sampled import FLOW_VARIABLES, QUEUE_VARIABLES
from ccplay.model.samples import (
    CaStateChanged,
    QdiscRows,
    QdiscSamples,
    Sweep,
    Sweeps,
    TcpRows,
    TcpSamples,
    TraceSamples,
)
from ccplay.model.values import MOST_VARIABLES, Monitored
from ccplay.model.wording import describe, describe_loss, one_way
from ccplay.state.monitor_rates import lately
from ccplay.state.series import Series, Timeline
from ccplay.state.trace import Trace
from ccplay.stream import sweep_codec
from ccplay.units import format_clock, format_size

FLOW_SERIES = tuple(each.name for each in FLOW_VARIABLES if each.kept)
"""Fields of ``TcpSamples`` that are kept over time for every flow."""

QUEUE_SERIES = tuple(each.name for each in QUEUE_VARIABLES if each.kept)
"""Fields of ``QdiscSamples`` that are kept over time for every queue."""


@dataclass(slots=True)
class Flow:
    """A TCP connection that is sampled: a stream of a flow, or a download's."""

    name: str
    src: str
    dst: str
    cc: str
    kind: str
    """``flow`` or ``download``."""
    started: float
    series: dict[str, Series]
    mss: int = 0
    acked: int = 0
    """Payload acknowledged at the newest sweep, exact where a series is rounded."""
    sent: int = 0
    """Payload sent by then, what was sent again included; at the end that of all streams."""
    ecn: bool = False
    """Both ends have agreed on ECN."""
    ended: float | None = None
    error: str | None = None
    bytes: int = 0
    duration_s: float = 0.0
    retransmits: int = 0
    monitored: Monitored | None = None
    """What became of the packets of all streams; None before the end, or where nobody asked."""
    cc_changes: list[tuple[float, str]] = field(default_factory=list)
    """When which algorithm began, first one included."""
    trace: Trace | None = None
    """None where it never was traced."""
    own: dict[str, Series] = field(default_factory=dict)
    """What its algorithms have said of themselves, by the names of ``Sweep.own``."""
    misbehaved: list[Misbehaved] = field(default_factory=list)
    """When an algorithm began to do it no good, and when that was over, oldest first."""

    @property
    def parent(self) -> str:
        """The flow that this stream belongs to: ``1`` for ``1/2`` and for itself."""
        return self.name.partition("/")[0]

    @property
    def running(self) -> bool:
        """Whether the flow has not ended."""
        return self.ended is None

    def wrong_at(self, t: float) -> str:
        """Return what its algorithm did wrong at ``t``; nothing where all was well, or over."""
        then = [each.wrong for each in self.misbehaved if each.t <= t]
        over = self.ended is not None and self.ended <= t
        return then[-1] if then and not over else ""

    def learn(self, t: float, cc: str, mss: int, acked: int, sent: int) -> None:
        """Take in what a sweep at ``t`` says of the flow as it is now."""
        self.mss, self.sent = mss, sent
        # tcp_info counts the SYN too.
        self.acked = max(acked - 1, 0)
        if self.cc != cc:
            self.cc = cc
            self.cc_changes.append((t, cc))


@dataclass(slots=True)
class Queue:
    """The queue of one direction of a link, over time."""

    link: str
    kind: str
    series: dict[str, Series]
    own: dict[str, Series] = field(default_factory=dict)
    """What its disciplines have reported of themselves, by the names of ``Sweep.queue_own``."""


@dataclass(slots=True)
class Ping:
    """A ping and its answers; a lost one is a missing value of ``rtt_us``."""

    name: str
    src: str
    dst: str
    started: float
    rtt_us: Series
    sent: int = 0
    lost: int = 0
    ended: float | None = None
    error: str | None = None


@dataclass(slots=True)
class Download:
    """A download and how far it has come."""

    name: str
    src: str
    dst: str
    total: int
    started: float
    bytes: int = 0
    duration_s: float | None = None
    ended: float | None = None
    error: str | None = None


@dataclass(slots=True)
class Udp:
    """Cross traffic, and at its end what became of its packets."""

    name: str
    src: str
    dst: str
    rate_bps: int
    packet_bytes: int
    started: float
    sent: int = 0
    received: int = 0
    under_way: int = 0
    """Packets of which nobody knows whether they would have arrived."""
    jitter_us: float | None = None
    monitored: Monitored | None = None
    """What has become of its packets so far; None where nobody knows."""
    timeline: Timeline = field(default_factory=Timeline)
    seen: dict[str, Series] = field(default_factory=dict)
    """What its monitor has seen over time, as ``monitored.lately`` has it; empty as above."""
    stopped: float | None = None
    """When it was told to end: the last of its packets may be under way."""
    duration_s: float | None = None
    ended: float | None = None
    error: str | None = None

    @property
    def loss(self) -> float | None:
        """The share of its packets that was lost; None where that of none is known."""
        known = self.sent - self.under_way
        return (known - self.received) / known if known > 0 else None

    def learn(self, t: float, seen: Monitored) -> None:
        """Take in what the monitor has seen by ``t``."""
        timeline = self.timeline
        since = timeline.time(timeline.end - 1) if timeline.end else self.started
        news = lately(self.monitored, seen, t - since)
        tick = timeline.append(t)
        for name, value in news.items():
            self.seen.setdefault(name, Series(timeline)).put(tick, value)
        self.monitored = seen


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the event log."""

    t: float
    kind: str
    """``applied``, ``mark``, ``traffic``, ``file``, ``info``, ``warning`` or ``error``."""
    text: str
    name: str = ""
    """What commands call it, where it is a mark of one's own."""

    @property
    def is_mark(self) -> bool:
        """Whether it is drawn through the plots: a cause that an effect may follow."""
        return self.kind in ("applied", "mark")


class LabState:
    """What the screen, the report and the exporters read; only ``apply`` changes it."""

    def __init__(self) -> None:
        self.phase = "starting"
        """``starting``, ``building``, ``ready`` or ``ended``."""
        self.ready_at: float | None = None
        """When the network stood; None before."""
        self.now = 0.0
        """``t`` of the newest event."""
        self.hello: Hello | None = None
        self.building: Building | None = None
        self.sweeps = Timeline()
        self.flows: dict[str, Flow] = {}
        self.streams: dict[str, dict[str, Flow]] = {}
        """Connections by the name of their flow or download, then by their own."""
        self.places: dict[str, int] = {}
        """Of each connection its number, from 0, in the order of ``flows``."""
        self.queues: dict[str, Queue] = {}
        self.pings: dict[str, Ping] = {}
        self.downloads: dict[str, Download] = {}
        self.udp: dict[str, Udp] = {}
        self.interfaces: InterfaceCounters | None = None
        """What they have counted; None before the end."""
        self.captures: dict[str, CaptureStarted] = {}
        """Those that run."""
        self.traced: set[str] = set()
        """Flows and downloads that are traced now."""
        self.untold = 0
        """Segments that are missing from those traces, and from any that they overlap with."""
        self.links: dict[str, list[LinkChanged]] = {}
        """By direction: every setting that it had, oldest first."""
        self.hosts: dict[str, str] = {}
        """Default congestion control by host."""
        self.host_changes: list[HostChanged] = []
        """Every default that a host had, oldest first."""
        self.applied: list[Applied] = []
        """Commands that took effect, in their order: what a session did."""
        self.log: list[Entry] = []
        """In the order of arrival; a mark may stand at an earlier moment than what came before."""
        self.spoiled: list[str] = []
        """Why what was measured can't be trusted, as far as the lab or the session noticed it."""
        self._marks: dict[str, int] = {}
        """By name the line of the log that a mark is."""
        self.health: Health | None = None
        self.healths: list[Health] = []
        self.end_reason: str | None = None

    def apply(self, event: object) -> None:
        """Take one event into account; one of an unknown kind changes nothing."""
        if isinstance(event, Sweep):
            self._sweep(event)
        elif (handler := _HANDLERS.get(type(event))) is not None:
            handler(self, event)
        else:
            return
        if isinstance(event, Event) and event.t > self.now:
            self.now = event.t

    def link_at(self, link: str, t: float) -> LinkChanged | None:
        """Return what a direction of a link did at ``t``, None before it was built."""
        changes = self.links.get(link)
        if not changes:
            return None
        return changes[max(bisect_right(changes, t, key=lambda change: change.t) - 1, 0)]

    def cc_at(self, flow: Flow, t: float) -> str:
        """Return the congestion control of ``flow`` at ``t``."""
        cc = flow.cc_changes[0][1] if flow.cc_changes else flow.cc
        for since, name in flow.cc_changes:
            if since > t:
                break
            cc = name
        return cc

    # --- one method an event ----------------------------------------------------------------

    def _sweep(self, event: Sweep) -> None:
        tick = self.sweeps.append(event.t)
        if event.tcp is not None:
            self._tcp(tick, event.t, event.tcp)
            self._own(tick, self._flows(event.tcp.flow), event.own)
        if event.qdisc is not None:
            self._qdisc(tick, event.qdisc)
            self._own(tick, self._queues(event.qdisc.link), event.queue_own)

    def _tcp(self, tick: int, t: float, samples: TcpSamples) -> None:
        flows = [self.flows.get(name) for name in samples.flow]
        for name in FLOW_SERIES:
            for flow, value in zip(flows, getattr(samples, name), strict=True):
                if flow is not None:
                    flow.series[name].put(tick, value)
        counts = (samples.mss, samples.bytes_acked, samples.bytes_sent)
        for flow, cc, *lasts in zip(flows, samples.cc, *counts, strict=True):
            if flow is not None:
                flow.learn(t, cc, *lasts)

    def _flows(self, names: Sequence[str]) -> list[Flow | None]:
        return [self.flows.get(name) for name in names]

    def _queues(self, links: Sequence[str]) -> list[Queue | None]:
        return [self.queues.get(link) for link in links]

    def _own(
        self,
        tick: int,
        subjects: Sequence[Flow | Queue | None],
        own: Mapping[str, Sequence[int | None]],
    ) -> None:
        for variable, values in own.items():
            for subject, value in zip(subjects, values, strict=True):
                if value is not None and (series := self._variable(subject, variable)) is not None:
                    series.put(tick, value)

    def _variable(self, subject: Flow | Queue | None, variable: str) -> Series | None:
        """Return the series of a variable; None where the subject has too many, or is unknown."""
        if subject is None:
            return None
        if variable not in subject.own and len(subject.own) < MOST_VARIABLES:
            subject.own[variable] = Series(self.sweeps)
        return subject.own.get(variable)

    def _qdisc(self, tick: int, samples: QdiscSamples) -> None:
        for row, link in enumerate(samples.link):
            series = self._queue(link, samples.kind[row]).series
            for name in QUEUE_SERIES:
                series[name].put(tick, getattr(samples, name)[row])

    def _sweeps(self, event: Sweeps) -> None:
        moments = sweep_codec.moments(event)
        tick = self.sweeps.extend(moments)
        if event.tcp is not None:
            self._tcp_rows(tick, event.t, event.tcp, len(moments))
            self._own_rows(tick, self._flows(event.tcp.flow), event.own, len(moments))
        if event.qdisc is not None:
            self._qdisc_rows(tick, event.qdisc, len(moments))
            queues = self._queues(event.qdisc.link)
            self._own_rows(tick, queues, event.queue_own, len(moments))
        self.now = max(self.now, moments[-1])

    def _tcp_rows(self, tick: int, t: float, rows: TcpRows, sweeps: int) -> None:
        flows = [self.flows.get(name) for name in rows.flow]
        series = [None if flow is None else flow.series for flow in flows]
        _extend(series, FLOW_SERIES, tick, rows.fields, sweeps)
        nothing = [0] * len(flows)
        names = ("mss", "bytes_acked", "bytes_sent")
        counts = (rows.fields.get(name, nothing) for name in names)
        for flow, cc, *lasts in zip(flows, rows.cc, *counts, strict=True):
            if flow is not None:
                flow.learn(t, cc, *(sweep_codec.last(row) or 0 for row in lasts))

    def _own_rows(
        self,
        tick: int,
        subjects: Sequence[Flow | Queue | None],
        own: Mapping[str, Sequence[Row]],
        sweeps: int,
    ) -> None:
        for variable, rows in own.items():
            for subject, row in zip(subjects, rows, strict=True):
                if row is not None and (series := self._variable(subject, variable)) is not None:
                    series.extend(tick, *sweep_codec.floats([row], sweeps))

    def _qdisc_rows(self, tick: int, rows: QdiscRows, sweeps: int) -> None:
        queues = [self._queue(*each) for each in zip(rows.link, rows.kind, strict=True)]
        _extend([queue.series for queue in queues], QUEUE_SERIES, tick, rows.fields, sweeps)

    def _queue(self, link: str, kind: str) -> Queue:
        queue = self.queues.get(link)
        if queue is None:
            series = {name: Series(self.sweeps) for name in QUEUE_SERIES}
            queue = self.queues[link] = Queue(link, kind, series)
        queue.kind = kind
        return queue

    def _hello(self, event: Hello) -> None:
        self.hello = event
        self.building = None
        self.phase = "building"

    def _building(self, event: Building) -> None:
        self.building = event

    def _ready(self, event: Ready) -> None:
        self.phase = "ready"
        self.ready_at = event.t

    def _link_changed(self, event: LinkChanged) -> None:
        self.links.setdefault(event.link, []).append(event)

    def _host_changed(self, event: HostChanged) -> None:
        self.hosts[event.host] = event.cc
        self.host_changes.append(event)

    def _flow_started(self, event: FlowStarted) -> None:
        for stream in range(1, event.streams + 1):
            name = event.flow if stream == 1 else f"{event.flow}/{stream}"
            self._open(name, "flow", event)
            self.flows[name].ecn = event.ecn

    def _open(self, name: str, kind: str, event: FlowStarted | DownloadStarted) -> None:
        series = {each: Series(self.sweeps) for each in FLOW_SERIES}
        flow = Flow(name, event.src, event.dst, event.cc, kind, event.t, series)
        if event.cc:
            flow.cc_changes.append((event.t, event.cc))
        self.flows[name] = flow
        self.streams.setdefault(flow.parent, {})[name] = flow
        self.places.setdefault(name, len(self.places))

    def _flow_ended(self, event: FlowEnded) -> None:
        for flow in self.streams.get(event.flow, {}).values():
            if flow.running:
                flow.ended, flow.error = event.t, event.error
        if (first := self.flows.get(event.flow)) is not None:
            first.bytes, first.duration_s = event.bytes, event.duration_s
            first.retransmits = event.retransmits
            first.sent = max(event.sent, first.sent)
            first.monitored = event.monitored
        if event.error:
            self._write(event.t, "error", f"flow {event.flow} died: {event.error}")
        else:
            self._write(event.t, "traffic", f"flow {event.flow} ended{one_way(event.monitored)}")

    def _misbehaved(self, event: Misbehaved) -> None:
        if (flow := self.flows.get(event.flow)) is not None:
            flow.misbehaved.append(event)
        if event.wrong:
            text = f"flow {event.flow}: {event.cc} {event.wrong}"
            self._write(event.t, "warning", f"{text}: look at its program, or switch it")

    def _download_started(self, event: DownloadStarted) -> None:
        self.downloads[event.download] = Download(
            event.download, event.src, event.dst, event.bytes, event.t
        )
        self._open(event.download, "download", event)

    def _download_progress(self, event: DownloadProgress) -> None:
        if (download := self.downloads.get(event.download)) is not None:
            download.bytes = event.bytes

    def _download_ended(self, event: DownloadEnded) -> None:
        if (flow := self.flows.get(event.download)) is not None:
            flow.ended, flow.error = event.t, event.error
        if (download := self.downloads.get(event.download)) is not None:
            download.bytes, download.duration_s = event.bytes, event.duration_s
            download.ended, download.error = event.t, event.error
        if event.error:
            self._write(event.t, "error", f"download {event.download} failed: {event.error}")
        else:
            text = f"download {event.download} done in {event.duration_s:.2f} s"
            self._write(event.t, "traffic", text)

    def _ping_started(self, event: PingStarted) -> None:
        series = Series(Timeline())
        self.pings[event.ping] = Ping(event.ping, event.src, event.dst, event.t, series)

    def _ping_sample(self, event: PingSample) -> None:
        if (ping := self.pings.get(event.ping)) is not None:
            ping.sent += 1
            ping.lost += event.rtt_us is None
            ping.rtt_us.put(ping.rtt_us.timeline.append(event.t), event.rtt_us)

    def _ping_ended(self, event: PingEnded) -> None:
        if (ping := self.pings.get(event.ping)) is not None:
            ping.sent, ping.lost = event.sent, event.lost
            ping.ended, ping.error = event.t, event.error
        if event.error:
            self._write(event.t, "error", f"ping {event.ping} died: {event.error}")
        else:
            text = f"ping {event.ping} ended: {event.sent} sent, {event.lost} lost"
            self._write(event.t, "traffic", text)

    def _udp_started(self, event: UdpStarted) -> None:
        self.udp[event.udp] = Udp(
            event.udp, event.src, event.dst, event.rate_bps, event.packet_bytes, event.t
        )

    def _udp_sample(self, event: UdpSample) -> None:
        if (udp := self.udp.get(event.udp)) is not None:
            udp.learn(event.t, event.monitored)

    def _udp_ended(self, event: UdpEnded) -> None:
        if (udp := self.udp.get(event.udp)) is None:
            return
        udp.sent, udp.received, udp.under_way = event.sent, event.received, event.under_way
        udp.jitter_us, udp.monitored = event.jitter_us, event.monitored
        udp.duration_s, udp.ended, udp.error = event.duration_s, event.t, event.error
        if event.error:
            self._write(event.t, "error", f"UDP {event.udp} died: {event.error}")
        else:
            lost = describe_loss(udp.loss, udp.monitored)
            self._write(event.t, "traffic", f"UDP {event.udp} ended: {event.sent:,} sent, {lost}")

    def _interface_counters(self, event: InterfaceCounters) -> None:
        self.interfaces = event

    def _capture_started(self, event: CaptureStarted) -> None:
        self.captures[event.capture] = event
        text = f"capture {event.capture} of {event.link} goes to {event.path}"
        self._write(event.t, "file", text)

    def _capture_ended(self, event: CaptureEnded) -> None:
        self.captures.pop(event.capture, None)
        text = f"capture {event.capture}: {event.packets:,} packets in {event.path}"
        if event.full:
            text += f", full at {format_size(event.bytes)}"
        if event.dropped:
            text += f", {event.dropped:,} more dropped"
        level = "warning" if event.dropped or event.full else "file"
        if event.error:
            level, text = "error", f"{text}: {event.error}"
        self._write(event.t, level, text)

    def _trace_started(self, event: TraceStarted) -> None:
        self.traced.add(event.flow)

    def _trace_ended(self, event: TraceEnded) -> None:
        self.traced.discard(event.flow)
        text = f"flow {event.flow} was traced: {event.segments:,} segments"
        if self.untold and not self.traced:
            text += f"; {self.untold:,} were missed, all traces together"
            self.untold = 0
        self._write(event.t, "info", text)

    def _trace_lost(self, event: TraceLost) -> None:
        if not self.untold:
            self._write(event.t, "warning", "the kernel does not tell every segment it traces")
        self.untold += event.segments

    def _trace_samples(self, event: TraceSamples) -> None:
        if (flow := self.flows.get(event.flow)) is not None:
            flow.trace = flow.trace or Trace()
            flow.trace.add(event)

    def _ca_state_changed(self, event: CaStateChanged) -> None:
        if (flow := self.flows.get(event.flow)) is not None:
            flow.trace = flow.trace or Trace()
            flow.trace.change(event)

    def _applied(self, event: Applied) -> None:
        self.applied.append(event)
        command = event.command
        if isinstance(command, Mark | ChangeMark | RemoveMark):
            self._marked(event, command)
            return
        text = describe(command)
        if isinstance(command, StopUdp) and command.udp in self.udp:
            self.udp[command.udp].stopped = event.t
        if isinstance(command, SetCongestionControl) and command.flow in self.flows:
            before = self.flows[command.flow].cc
            text = f"flow {command.flow} switches {before} → {command.cc}"
            if event.renewed:
                text = f"flow {command.flow} goes on with the new {command.cc}"
            elif before == command.cc:
                text = f"flow {command.flow} stays with {command.cc}"
        self._write(event.t, "applied", text + _lateness(event))

    def _marked(self, event: Applied, command: Mark | ChangeMark | RemoveMark) -> None:
        if isinstance(command, Mark):
            at = event.t if command.at is None else command.at
            if command.name is not None:
                self._marks[command.name] = len(self.log)
            text = command.text + _lateness(event)
            self.log.append(Entry(at, "mark", text, command.name or ""))
            return
        row = self._marks.get(command.name)
        if row is None:
            return
        # In its place: readers count on what they have seen of the log.
        was = self.log[row]
        if isinstance(command, RemoveMark):
            del self._marks[command.name]
            text = f"mark {was.text!r} at {format_clock(was.t)} is removed"
            self.log[row] = Entry(event.t, "info", text)
        else:
            text = was.text if command.text is None else command.text
            at = was.t if command.at is None else command.at
            self.log[row] = replace(was, t=at, text=text)

    def _failed(self, event: Failed) -> None:
        level = "warning" if isinstance(event.command, _SPOILING_NOTHING) else "error"
        self._write(event.t, level, event.message)

    def _health(self, event: Health) -> None:
        self.health = event
        self.healths.append(event)

    def _log(self, event: Log) -> None:
        self._write(event.t, event.level, event.text)
        if event.spoils:
            self.spoiled.append(event.text)

    def _ended(self, event: Ended) -> None:
        self.phase = "ended"
        self.end_reason = event.reason

    def _write(self, t: float, kind: str, text: str) -> None:
        self.log.append(Entry(t, kind, text))


_SPOILING_NOTHING = (TraceFlow, UntraceFlow, StopFlow, StopDownload, StopPing, StopUdp)
"""A trace only adds to what is sampled, and what can't be stopped has just ended by itself."""


def _lateness(event: Applied) -> str:
    """Return how late a step of the timeline took effect; empty within the tolerance."""
    return f", {event.late_s:.1f} s late" if event.late_s > MOST_LATE_S else ""


def _extend(
    owners: Sequence[dict[str, Series] | None],
    names: Sequence[str],
    tick: int,
    fields: dict[str, list[Row]],
    sweeps: int,
) -> None:
    """Give the series of each flow or queue what the rows of a block say."""
    for name in names:
        if name in fields:
            for series, floats in zip(
                owners, sweep_codec.floats(fields[name], sweeps), strict=True
            ):
                if series is not None:
                    series[name].extend(tick, floats)


_HANDLERS: dict[type, Callable[[LabState, Any], None]] = {
    Hello: LabState._hello,
    Sweeps: LabState._sweeps,
    Building: LabState._building,
    Ready: LabState._ready,
    LinkChanged: LabState._link_changed,
    HostChanged: LabState._host_changed,
    FlowStarted: LabState._flow_started,
    FlowEnded: LabState._flow_ended,
    Misbehaved: LabState._misbehaved,
    DownloadStarted: LabState._download_started,
    DownloadProgress: LabState._download_progress,
    DownloadEnded: LabState._download_ended,
    PingStarted: LabState._ping_started,
    PingSample: LabState._ping_sample,
    PingEnded: LabState._ping_ended,
    UdpStarted: LabState._udp_started,
    UdpSample: LabState._udp_sample,
    UdpEnded: LabState._udp_ended,
    InterfaceCounters: LabState._interface_counters,
    CaptureStarted: LabState._capture_started,
    CaptureEnded: LabState._capture_ended,
    TraceStarted: LabState._trace_started,
    TraceEnded: LabState._trace_ended,
    TraceLost: LabState._trace_lost,
    TraceSamples: LabState._trace_samples,
    CaStateChanged: LabState._ca_state_changed,
    Applied: LabState._applied,
    Failed: LabState._failed,
    Health: LabState._health,
    Log: LabState._log,
    Ended: LabState._ended,
}

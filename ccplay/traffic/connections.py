"""Sampled TCP connections: the streams of flows, their subflows over MPTCP, and downloads."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

import msgspec

from ccplay.model import blocks
from ccplay.model.base import TrafficStarted
from ccplay.model.events import FlowPath, Misbehaved, TraceEnded, TraceLost, TraceStarted
from ccplay.model.samples import CaStateChanged, QdiscSamples, TcpSamples, TraceSamples
from ccplay.model.series import Feed, Rows, Series, Timeline
from ccplay.model.values import Monitored
from ccplay.model.variables import FLOW_VARIABLES, kept
from ccplay.traffic.base import Handlers, Traffic, TrafficState
from ccplay.traffic.routes import back_of, nodes_of, way_back

# --- accepts samples row by row; each series reads its column when it is needed -------------------
# A thousand connections have 17,000 series, of which a screen shows a hundred at a time.

_LONGEST = 256
"""Largest number of sweeps that wait to be read; they are kept twice, in 4 bytes per value."""


class _Sampled(Protocol):
    @property
    def series(self) -> dict[str, Series]: ...

    @property
    def feed(self) -> Feed: ...


Owner = TypeVar("Owner", bound=_Sampled)


class Intake(Generic[Owner]):
    """Samples of connections or queues, sweep by sweep."""

    def __init__(self, names: Sequence[str]) -> None:
        """Keep the fields ``names`` of samples, in the order of an owner's series."""
        self._names = names
        self._members: Sequence[object] = ()
        self.owners: list[Owner | None] = []
        """Owners of the newest sweep's samples, in its order; None if unknown."""
        self._rows = Rows(0, 0, 0)
        self._turn = 0
        """Index of the owner that reads next."""
        self._due = 0
        """Number of reads that are due, in fractions of an owner."""

    def fits(self, tick: int, members: Sequence[object]) -> bool:
        """Return whether a sweep of ``members`` at ``tick`` can be added without ``begin``."""
        rows = self._rows
        if rows.complete or rows.end != tick or rows.end - rows.tick >= _LONGEST:
            return False
        return members == self._members

    def begin(self, tick: int, members: Sequence[object], owners: list[Owner | None]) -> None:
        """Start with the members ``members`` at ``tick``, which belong to ``owners``."""
        self.renew()
        staying = {id(owner) for owner in owners}
        for owner in self.owners:
            if owner is not None and id(owner) not in staying:
                _read(owner)
        self._members, self.owners = members, owners
        self._rows = Rows(tick, len(self._names), len(members))
        for column, owner in enumerate(owners):
            if owner is not None:
                owner.feed.columns.append((self._rows, column))

    def add(self, samples: TcpSamples | QdiscSamples) -> None:
        """Add the values of the next tick."""
        self._rows.append(getattr(samples, name) for name in self._names)
        # Series that are not needed read in turn, each once in ``_LONGEST`` sweeps.
        turns, self._due = divmod(self._due + len(self.owners), _LONGEST)
        for _ in range(turns):
            owner = self.owners[self._turn % len(self.owners)]
            self._turn = (self._turn + 1) % len(self.owners)
            if owner is not None:
                _read(owner)

    def renew(self) -> None:
        """Start over with the next sweep, because a name may have another owner."""
        self._rows.complete = True


def _read(owner: _Sampled) -> None:
    if owner.feed.columns:
        for series in owner.series.values():
            series.read_on()
        owner.feed.drop()


# --- A trace of a flow: the values of its sender's kernel at each ACK, as series of their own -----


def _series() -> dict[str, Series]:
    timeline = Timeline()
    return {name: Series(timeline) for name in blocks.TRACE_FIELDS}


class AckTrace(msgspec.Struct):
    """Values of a connection at each segment that its sender received."""

    series: dict[str, Series] = msgspec.field(default_factory=_series)
    """Series of ``blocks.TRACE_FIELDS`` on their own timeline, with one moment per segment."""
    ca_state: Series = msgspec.field(default_factory=lambda: Series(Timeline()))
    """Congestion states, one value per change at its exact moment."""

    @property
    def moments(self) -> Timeline:
        """Moments of the segments."""
        return self.series["cwnd"].timeline

    def covers(self, t: float, within_s: float = 1.0) -> bool:
        """Return whether a segment was traced at ``t`` or shortly before."""
        tick = self.moments.before_or_at(t)
        return tick >= self.moments.first and self.moments.time(tick) > t - within_s

    def add(self, samples: TraceSamples) -> None:
        """Add segments that are later than all before."""
        moments = blocks.moments(samples)
        tick = self.moments.extend(moments)
        for name, series in self.series.items():
            (floats,) = blocks.floats([getattr(samples, name)], len(moments))
            series.extend(tick, floats)

    def change(self, event: CaStateChanged) -> None:
        """Add a change of the congestion state that is later than all before."""
        self.ca_state.put(self.ca_state.timeline.append(event.t), event.ca_state)


# --- sampled TCP connections: the streams of flows, their subflows over MPTCP, and downloads ------

FLOW_SERIES = kept(FLOW_VARIABLES)
"""Fields of ``TcpSamples`` that are kept over time for every flow."""


class Flow(Traffic, kw_only=True):
    """A sampled TCP connection: a stream of a flow, a subflow, or a download.

    An MPTCP flow has the sums of its subflows, which are listed beside it.
    """

    kind: str = "flow"
    """Kind of the connection: ``flow``, ``subflow`` or ``download``."""
    cc: str
    feed: Feed = msgspec.field(default_factory=Feed)
    """Feed that the connection's series read."""
    mss: int = 0
    acked: int = 0
    """Acknowledged payload in bytes at the newest sweep; exact, unlike series."""
    sent: int = 0
    """Payload sent in bytes by the newest sweep, retransmissions included; at the end of all
    streams."""
    ecn: bool = False
    """Whether both ends have agreed on ECN."""
    bytes: int = 0
    duration_s: float = 0.0
    retransmits: int = 0
    monitored: Monitored | None = None
    """Monitored packets of all streams; None before the end, or if not monitored."""
    cc_changes: list[tuple[float, str]] = msgspec.field(default_factory=list)
    """Moments and names of the connection's algorithms, the first included."""
    trace: AckTrace | None = None
    """Trace of the connection; None if it was never traced."""
    own: dict[str, Series] = msgspec.field(default_factory=dict)
    """Variables of the connection's algorithms, by the names of ``Sweep.own``."""
    misbehaved: list[Misbehaved] = msgspec.field(default_factory=list)
    """Moments at which an algorithm began to misbehave or stopped, oldest first."""
    mptcp: bool = False
    """Whether the flow is an MPTCP connection with ``subflows``."""
    subflows: list[Flow] = msgspec.field(default_factory=list)
    """Subflows that have opened, oldest first; the state's ``flows`` contains them too."""
    ends: tuple[str, str] = ("", "")
    """IPv4 addresses of a subflow, the sender's first; empty for other connections."""

    @property
    def parent(self) -> str:
        """Name of the flow of a stream or subflow: ``1`` for ``1/2`` and for itself."""
        return self.name.partition("/")[0]

    @property
    def running(self) -> bool:
        """Whether the flow has not ended."""
        return self.ended is None

    @property
    def via(self) -> tuple[str, ...]:
        """Nodes on the newest path, both hosts included; empty if there is only one path."""
        return nodes_of(self.paths[-1]) if self.paths else ()

    def wrong_at(self, t: float) -> str:
        """Return the misbehaviour of the algorithm at ``t``; empty if there was none."""
        then = [each.wrong for each in self.misbehaved if each.t <= t]
        over = self.ended is not None and self.ended <= t
        return then[-1] if then and not over else ""

    def learn(self, t: float, cc: str, mss: int, acked: int, sent: int) -> None:
        """Apply the values of a sweep at ``t``."""
        self.mss, self.sent = mss, sent
        # tcp_info counts the SYN too.
        self.acked = max(acked - 1, 0)
        if self.cc != cc:
            self.cc = cc
            self.cc_changes.append((t, cc))


class Connections(TrafficState):
    """All connections of a session, and their samples."""

    def __init__(self) -> None:
        super().__init__()
        self.sweeps = Timeline()
        self.flows: dict[str, Flow] = {}
        """All sampled connections: streams ``1``, ``1/2`` … of flows, subflows, and downloads."""
        self.streams: dict[str, dict[str, Flow]] = {}
        """Connections by the name of their flow or download, then by their own, without
        subflows."""
        self.places: dict[str, int] = {}
        """Index of each connection, from 0, in the order of the requests."""
        self.traced: set[str] = set()
        """Flows and downloads that are being traced."""
        self.missed_segments = 0
        """Segments missing from running traces, and from traces that overlap with them."""
        self.flow_intake = Intake[Flow](FLOW_SERIES)
        self.sizes: dict[str, int] = {}
        """Bytes of each flow of a fixed size, in the order of their starts."""

    def open(self, name: str, kind: str, event: TrafficStarted, cc: str) -> Flow:
        """Add a connection that has opened."""
        src, dst = event.src, event.dst
        flow = Flow(name=name, src=src, dst=dst, cc=cc, kind=kind, started=event.t)
        self._add(flow)
        self.streams.setdefault(flow.parent, {})[name] = flow
        return flow

    def open_subflow(self, flow: Flow, name: str, ends: tuple[str, str], t: float) -> None:
        """Add a subflow that has opened between two addresses, the sender's first."""
        src, dst, cc = flow.src, flow.dst, flow.cc
        subflow = Flow(name=name, src=src, dst=dst, cc=cc, kind="subflow", started=t, ends=ends)
        self._add(subflow)
        flow.subflows.append(subflow)

    def _add(self, flow: Flow) -> None:
        """Add a connection, whose samples follow."""
        for at, name in enumerate(FLOW_SERIES):
            flow.series[name] = Series(self.sweeps, flow.feed, at)
        if flow.cc:
            flow.cc_changes.append((flow.started, flow.cc))
        self.flows[flow.name] = flow
        self.flow_intake.renew()
        self.places.setdefault(flow.name, len(self.places))

    def cc_at(self, flow: Flow, t: float) -> str:
        """Return the congestion control of ``flow`` at ``t``."""
        if not flow.cc_changes:
            return flow.cc
        at = bisect_right(flow.cc_changes, t, key=lambda change: change[0])
        return flow.cc_changes[max(at - 1, 0)][1]


def _flow_path(state: Connections, event: FlowPath) -> None:
    subject = state.flows.get(event.flow) or state.traffic.get(event.flow)
    if subject is None:
        return
    what = f"{subject.word} {event.flow}"
    way = " → ".join(nodes_of(event))
    was = bool(subject.paths) and subject.paths[-1].pinned
    if event.pinned or was:
        way += " (pinned)" if event.pinned else " (by hash)"
    if acks := way_back(nodes_of(event), back_of(event)):
        way += f"; ACKs {acks}"
    if not event.links:
        text = f"{what} has no path: every way from {subject.src} to {subject.dst} is down"
        if subject.kind == "subflow":
            text = f"{what} has no path: a cable of its addresses is down; the kernel keeps trying"
        state.write(event.t, "warning", text)
    elif not subject.paths:
        state.write(event.t, "traffic", f"{what} takes {way}")
    elif subject.MANY_PATHS:
        state.write(event.t, "traffic", f"{what} also takes {way}")
    else:
        state.write(event.t, "traffic", f"{what} now takes {way}")
    subject.paths.append(event)


def _misbehaved(state: Connections, event: Misbehaved) -> None:
    if (flow := state.flows.get(event.flow)) is not None:
        flow.misbehaved.append(event)
    if event.wrong:
        text = f"flow {event.flow}: {event.cc} {event.wrong}"
        state.write(event.t, "warning", f"{text}: check its program, if it is your own")


def _trace_ended(state: Connections, event: TraceEnded) -> None:
    state.traced.discard(event.flow)
    text = f"flow {event.flow} was traced: {event.segments:,} segments"
    if state.missed_segments and not state.traced:
        text += f"; {state.missed_segments:,} were missed, all traces together"
        state.missed_segments = 0
    state.write(event.t, "info", text)


def _trace_lost(state: Connections, event: TraceLost) -> None:
    if not state.missed_segments:
        state.write(event.t, "warning", "the kernel does not report every segment it traces")
    state.missed_segments += event.segments


def _traced(state: Connections, event: TraceSamples | CaStateChanged) -> None:
    if (flow := state.flows.get(event.flow)) is not None:
        flow.trace = flow.trace or AckTrace()
        if isinstance(event, TraceSamples):
            flow.trace.add(event)
        else:
            flow.trace.change(event)


HANDLERS: Handlers = {
    FlowPath: _flow_path,
    Misbehaved: _misbehaved,
    TraceStarted: lambda state, event: state.traced.add(event.flow),
    TraceEnded: _trace_ended,
    TraceLost: _trace_lost,
    TraceSamples: _traced,
    CaStateChanged: _traced,
}

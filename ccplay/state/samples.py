"""Samples over time: the values of connections and queues in each sweep, kept in series.

Sojourn times of packets in queues are kept as numbers of packets by time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from ccplay.model import blocks
from ccplay.model.base import Row
from ccplay.model.events import SojournTimes
from ccplay.model.samples import Sweep, Sweeps, TcpRows, TcpSamples
from ccplay.model.series import Feed, Series
from ccplay.model.values import MOST_VARIABLES
from ccplay.model.variables import QUEUE_VARIABLES, kept
from ccplay.state.race import Racing
from ccplay.traffic.base import Handlers
from ccplay.traffic.connections import FLOW_SERIES, Flow, Intake

QUEUE_SERIES = kept(QUEUE_VARIABLES)
"""Fields of ``QdiscSamples`` that are kept over time for every queue."""


class Queue(msgspec.Struct):
    """The queue of one direction of a link, over time."""

    link: str
    kind: str
    series: dict[str, Series]
    feed: Feed
    """Feed that the queue's series read."""
    own: dict[str, Series] = msgspec.field(default_factory=dict)
    """Statistics reported by its disciplines, by the names of ``Sweep.queue_own``."""


class Sampled(Racing):
    """Everything that is sampled: connections and queues."""

    def __init__(self) -> None:
        super().__init__()
        self.queues: dict[str, Queue] = {}
        self.queue_intake = Intake[Queue](QUEUE_SERIES)

    def queue(self, link: str, kind: str) -> Queue:
        """Return the queue of a direction, with this as its present kind."""
        queue = self.queues.get(link)
        if queue is None:
            feed = Feed()
            series = {name: Series(self.sweeps, feed, at) for at, name in enumerate(QUEUE_SERIES)}
            queue = self.queues[link] = Queue(link, kind, series, feed)
        queue.kind = kind
        return queue


def _sweep(state: Sampled, event: Sweep) -> None:
    tick = state.sweeps.append(event.t)
    if event.tcp is not None:
        _take_tcp(state, tick, event.tcp)
        _learn(state.flow_intake.owners, event.t, event.tcp)
    _take_others(state, tick, event)


def _take_tcp(state: Sampled, tick: int, samples: TcpSamples) -> None:
    if not state.flow_intake.fits(tick, samples.flow):
        flows = [state.flows.get(name) for name in samples.flow]
        state.flow_intake.begin(tick, samples.flow, flows)
    state.flow_intake.add(samples)


def _take_others(state: Sampled, tick: int, event: Sweep) -> None:
    """Apply the samples of queues, and the variables of algorithms and disciplines."""
    if event.tcp is not None and event.own:
        _own(state, tick, state.flow_intake.owners, event.own)
    if event.qdisc is None:
        return
    members = [*zip(event.qdisc.link, event.qdisc.kind, strict=True)]
    if not state.queue_intake.fits(tick, members):
        state.queue_intake.begin(tick, members, [state.queue(*each) for each in members])
    state.queue_intake.add(event.qdisc)
    if event.queue_own:
        _own(state, tick, state.queue_intake.owners, event.queue_own)


def _learn(flows: Sequence[Flow | None], t: float, samples: TcpSamples) -> None:
    counts = (samples.mss, samples.bytes_acked, samples.bytes_sent)
    for flow, cc, *lasts in zip(flows, samples.cc, *counts, strict=True):
        if flow is not None:
            flow.learn(t, cc, *lasts)


def _own(
    state: Sampled,
    tick: int,
    subjects: Sequence[Flow | Queue | None],
    own: Mapping[str, Sequence[int | None]],
) -> None:
    for variable, values in own.items():
        for subject, value in zip(subjects, values, strict=True):
            if value is not None and (series := _variable(state, subject, variable)) is not None:
                series.put(tick, value)


def _variable(state: Sampled, subject: Flow | Queue | None, variable: str) -> Series | None:
    """Return the series of a variable; None if the subject has too many, or is unknown."""
    if subject is None:
        return None
    if variable not in subject.own and len(subject.own) < MOST_VARIABLES:
        subject.own[variable] = Series(state.sweeps)
    return subject.own.get(variable)


def fold(state: Sampled, events: Sequence[Sweep]) -> None:
    """Apply successive sweeps with the same result as one by one, but faster."""
    tick = state.sweeps.extend([each.t for each in events])
    known: TcpSamples | None = None
    """Samples of which the flows know only when their algorithms began."""
    for at, event in enumerate(events, tick):
        samples = event.tcp
        same = known and samples and (known.flow, known.cc) == (samples.flow, samples.cc)
        if known is not None and not same:
            # Flows may end with these values.
            _learn(state.flow_intake.owners, state.sweeps.time(at - 1), known)
            known = None
        if samples is not None:
            _take_tcp(state, at, samples)
            if known is None:
                _learn(state.flow_intake.owners, event.t, samples)
            known = samples
        _take_others(state, at, event)
    if known is not None:
        _learn(state.flow_intake.owners, events[-1].t, known)
    state.now = max(state.now, events[-1].t)


def _sweeps(state: Sampled, event: Sweeps) -> None:
    moments = blocks.moments(event)
    tick = state.sweeps.extend(moments)
    if event.tcp is not None:
        _tcp_rows(state, tick, event.t, event.tcp, len(moments))
        flows = [state.flows.get(name) for name in event.tcp.flow]
        _own_rows(state, tick, flows, event.own, len(moments))
    if event.qdisc is not None:
        rows = event.qdisc
        series = [state.queue(*each).series for each in zip(rows.link, rows.kind, strict=True)]
        _extend(series, QUEUE_SERIES, tick, rows.fields, len(moments))
        queues = [state.queues.get(link) for link in rows.link]
        _own_rows(state, tick, queues, event.queue_own, len(moments))
    state.now = max(state.now, moments[-1])


def _tcp_rows(state: Sampled, tick: int, t: float, rows: TcpRows, sweeps: int) -> None:
    flows = [state.flows.get(name) for name in rows.flow]
    series = [None if flow is None else flow.series for flow in flows]
    _extend(series, FLOW_SERIES, tick, rows.fields, sweeps)
    nothing = [0] * len(flows)
    names = ("mss", "bytes_acked", "bytes_sent")
    counts = (rows.fields.get(name, nothing) for name in names)
    for flow, cc, *lasts in zip(flows, rows.cc, *counts, strict=True):
        if flow is not None:
            flow.learn(t, cc, *(blocks.last(row) or 0 for row in lasts))


def _own_rows(
    state: Sampled,
    tick: int,
    subjects: Sequence[Flow | Queue | None],
    own: Mapping[str, Sequence[Row]],
    sweeps: int,
) -> None:
    for variable, rows in own.items():
        for subject, row in zip(subjects, rows, strict=True):
            if row is not None and (series := _variable(state, subject, variable)) is not None:
                series.extend(tick, *blocks.floats([row], sweeps))


def _extend(
    owners: Sequence[dict[str, Series] | None],
    names: Sequence[str],
    tick: int,
    fields: dict[str, list[Row]],
    sweeps: int,
) -> None:
    """Append the rows of a block to the series of each flow or queue."""
    for name in names:
        if name in fields:
            for series, floats in zip(owners, blocks.floats(fields[name], sweeps), strict=True):
                if series is not None:
                    series[name].extend(tick, floats)


HANDLERS: Handlers = {Sweep: _sweep, Sweeps: _sweeps}


# --- sojourn times of packets in queues -----------------------------------------------------------

_MOST_KINDS, _MOST_TIMES = 100, 1000
"""Largest numbers of disciplines of a link, and of distinct times of each, that are kept; a lab has
far fewer."""


class SojournCounts:
    """All sojourn times of a session, by link and discipline."""

    def __init__(self) -> None:
        self._counts: dict[str, dict[str, Counter[int]]] = {}

    def add(self, event: SojournTimes) -> None:
        """Add what an event reports."""
        kinds = self._counts.setdefault(event.link, {})
        if event.kind not in kinds and len(kinds) >= _MOST_KINDS:
            return
        counts = kinds.setdefault(event.kind, Counter())
        # A stranger's recording may have lists of any length, and any times.
        for upto_us, packets in zip(event.upto_us, event.packets, strict=False):
            if upto_us in counts or len(counts) < _MOST_TIMES:
                counts[upto_us] += packets

    def of(self, link: str, kind: str = "") -> Mapping[int, int]:
        """Return the packets of a link by the time in µs that they did not exceed.

        Without ``kind`` the packets of all its disciplines are counted together.
        """
        kinds = self._counts.get(link, {})
        chosen = [kinds[kind]] if kind in kinds else [] if kind else list(kinds.values())
        return sum(chosen, Counter())

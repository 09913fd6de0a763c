"""Samples over time: the values of connections and queues in each sweep, kept in series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from ccplay.model.base import Row
from ccplay.model.samples import QdiscRows, QdiscSamples, Sweep, Sweeps, TcpRows, TcpSamples
from ccplay.model.values import MOST_VARIABLES
from ccplay.model.variables import QUEUE_VARIABLES, kept
from ccplay.state.connections import FLOW_SERIES, Flow
from ccplay.state.race import Racing
from ccplay.state.series import Series, put_all
from ccplay.state.traffic import Handlers
from ccplay.stream import sweep_codec

QUEUE_SERIES = kept(QUEUE_VARIABLES)
"""Fields of ``QdiscSamples`` that are kept over time for every queue."""


@dataclass(slots=True)
class Queue:
    """The queue of one direction of a link, over time."""

    link: str
    kind: str
    series: dict[str, Series]
    own: dict[str, Series] = field(default_factory=dict)
    """Statistics reported by its disciplines, by the names of ``Sweep.queue_own``."""


class Sampled(Racing):
    """Everything that is sampled: connections and queues."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        """``t`` of the newest event."""
        self.queues: dict[str, Queue] = {}

    def queue(self, link: str, kind: str) -> Queue:
        """Return the queue of a direction, which now has this kind."""
        queue = self.queues.get(link)
        if queue is None:
            series = {name: Series(self.sweeps) for name in QUEUE_SERIES}
            queue = self.queues[link] = Queue(link, kind, series)
        queue.kind = kind
        return queue


def _sweep(state: Sampled, event: Sweep) -> None:
    tick = state.sweeps.append(event.t)
    if event.tcp is not None:
        _tcp(state, tick, event.t, event.tcp)
        _own(state, tick, [state.flows.get(name) for name in event.tcp.flow], event.own)
    if event.qdisc is not None:
        _qdisc(state, tick, event.qdisc)
        _own(state, tick, [state.queues.get(link) for link in event.qdisc.link], event.queue_own)


def _tcp(state: Sampled, tick: int, t: float, samples: TcpSamples) -> None:
    flows = [state.flows.get(name) for name in samples.flow]
    for name in FLOW_SERIES:
        put_all(
            [None if each is None else each.series[name] for each in flows],
            tick,
            getattr(samples, name),
        )
    _learn(flows, t, samples)


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


def _qdisc(state: Sampled, tick: int, samples: QdiscSamples) -> None:
    for row, link in enumerate(samples.link):
        series = state.queue(link, samples.kind[row]).series
        for name in QUEUE_SERIES:
            series[name].put(tick, getattr(samples, name)[row])


def fold(state: Sampled, events: Sequence[Sweep]) -> None:
    """Apply sweeps that follow each other: the same as one by one, at a fraction of the cost."""
    for _, alike in groupby(events, _members):
        sweeps = [*alike]
        if len(sweeps) == 1:
            _sweep(state, sweeps[0])
            continue
        tick = state.sweeps.extend([each.t for each in sweeps])
        if sweeps[0].tcp is not None:
            _fold_tcp(state, tick, sweeps)
        if sweeps[0].qdisc is not None:
            _fold_qdisc(state, tick, [each.qdisc for each in sweeps if each.qdisc is not None])
        for at, each in enumerate(sweeps, tick):
            if each.tcp is not None and each.own:
                _own(state, at, [state.flows.get(name) for name in each.tcp.flow], each.own)
            if each.qdisc is not None and each.queue_own:
                links = [state.queues.get(link) for link in each.qdisc.link]
                _own(state, at, links, each.queue_own)
    state.now = max(state.now, events[-1].t)


def _members(sweep: Sweep) -> object:
    """Return what sweeps must have in common to be folded as columns."""
    tcp, qdisc = sweep.tcp, sweep.qdisc
    return tcp and tcp.flow, qdisc and (qdisc.link, qdisc.kind)


def _fold_tcp(state: Sampled, tick: int, sweeps: Sequence[Sweep]) -> None:
    samples = [each.tcp for each in sweeps if each.tcp is not None]
    flows = [state.flows.get(name) for name in samples[0].flow]
    owners = [None if flow is None else flow.series for flow in flows]
    _columns(owners, FLOW_SERIES, tick, samples)
    known = [flow and flow.cc for flow in flows]
    for sweep, each in zip(sweeps, samples, strict=True):
        # Algorithms change at a sweep; of all else the newest is enough.
        if each is samples[-1] or each.cc != known:
            _learn(flows, sweep.t, each)
            known = [flow and flow.cc for flow in flows]


def _fold_qdisc(state: Sampled, tick: int, samples: Sequence[QdiscSamples]) -> None:
    queues = [state.queue(*each) for each in zip(samples[0].link, samples[0].kind, strict=True)]
    _columns([queue.series for queue in queues], QUEUE_SERIES, tick, samples)


def _columns(
    owners: Sequence[dict[str, Series] | None],
    names: Sequence[str],
    tick: int,
    samples: Sequence[TcpSamples] | Sequence[QdiscSamples],
) -> None:
    """Append what several sweeps have of each flow or queue to its series."""
    for name in names:
        columns = zip(*(getattr(each, name) for each in samples), strict=True)
        for series, counts in zip(owners, columns, strict=True):
            if series is not None:
                series[name].extend_counts(tick, counts)


def _sweeps(state: Sampled, event: Sweeps) -> None:
    moments = sweep_codec.moments(event)
    tick = state.sweeps.extend(moments)
    if event.tcp is not None:
        _tcp_rows(state, tick, event.t, event.tcp, len(moments))
        flows = [state.flows.get(name) for name in event.tcp.flow]
        _own_rows(state, tick, flows, event.own, len(moments))
    if event.qdisc is not None:
        _qdisc_rows(state, tick, event.qdisc, len(moments))
        queues = [state.queues.get(link) for link in event.qdisc.link]
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
            flow.learn(t, cc, *(sweep_codec.last(row) or 0 for row in lasts))


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
                series.extend(tick, *sweep_codec.floats([row], sweeps))


def _qdisc_rows(state: Sampled, tick: int, rows: QdiscRows, sweeps: int) -> None:
    queues = [state.queue(*each) for each in zip(rows.link, rows.kind, strict=True)]
    _extend([queue.series for queue in queues], QUEUE_SERIES, tick, rows.fields, sweeps)


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
            for series, floats in zip(
                owners, sweep_codec.floats(fields[name], sweeps), strict=True
            ):
                if series is not None:
                    series[name].extend(tick, floats)


HANDLERS: Handlers = {Sweep: _sweep, Sweeps: _sweeps}

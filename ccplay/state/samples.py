"""Samples over time: the values of connections and queues in each sweep, kept in series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

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

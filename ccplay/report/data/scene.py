"""The content of one run's figures: flows, queues and marks on one time axis, and traces."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import inf
from operator import itemgetter
from typing import TypeAlias

import msgspec

from ccplay.analysis.results import Checkpoint, checkpoint, fixed_sizes
from ccplay.analysis.trust import credible
from ccplay.model.series import Series
from ccplay.model.variables import Variable
from ccplay.model.wording import limit_unit
from ccplay.plots import levels
from ccplay.plots.levels import Scope
from ccplay.plots.subjects import owners, series_of
from ccplay.report.data.curves import COLUMNS, Curve, curve, flow_groups, state_spans
from ccplay.report.data.naming import in_order
from ccplay.state.lab_state import LabState
from ccplay.state.samples import Queue
from ccplay.traffic import KINDS, is_brief
from ccplay.traffic.base import Traffic
from ccplay.traffic.connections import AckTrace, Flow
from ccplay.traffic.monitored import CountedTraffic

_SOME = 4
"""Number of packets that a queue must have held at some time to be drawn."""
_CLOSING_S = 1.0
_LEAST_S = 0.1


class CheckpointMark(msgspec.Struct, frozen=True):
    """The moment at which the first flow of a fixed size was done, and each flow's bytes then."""

    t: float
    """Moment on the figures' axis in seconds."""
    bytes: Mapping[str, int]
    ratio: float | None


class Scene(msgspec.Struct, frozen=True):
    """One run, ready to draw; ``start`` is the moment of the stream at 0 on the time axis."""

    state: LabState
    start: float
    span_s: float
    flows: list[list[Flow]]
    """Flows and downloads, each as its parallel streams."""
    queues: list[Queue]
    """Queues that held packets, and in any case the first observed one."""
    marks: list[tuple[float, str]]
    """Commands and marks with their moments in seconds on the time axis."""
    sizes: Mapping[str, int]
    finish: CheckpointMark | None

    @property
    def counted(self) -> list[CountedTraffic]:
        """Traffic whose packets are counted, in the order of its start."""
        return [*self.state.of(CountedTraffic).values()]

    def others(self, variable: Variable) -> list[Traffic]:
        """Return the traffic of a variable's kind that has at least one value of it."""
        every = owners(self.state, variable)
        return [
            each
            for each in every
            if isinstance(each, Traffic)
            and (series := series_of(each, variable)) is not None
            and series.end > 0
        ]

    def in_bytes(self, link: str) -> bool:
        """Return whether the limit of a link's queue always counted bytes rather than packets."""
        every = levels.qdiscs(self.state, link)
        kinds = {qdisc.kind for _, _, qdisc in every if qdisc is not None}
        return bool(kinds) and all(limit_unit(kind) == "bytes" for kind in kinds)

    def scopes(self, link: str = "") -> list[Scope]:
        """Return the subjects of settings: the queue of ``link``, or pairs of hosts with traffic.

        A class of a link is named ``LINK CLASS``.
        """
        if link:
            in_bytes = self.in_bytes(link)
            return [Scope(self.state, link=link, in_bytes=in_bytes, converts=True)]
        ends = [(streams[0].src, streams[0].dst) for streams in self.flows]
        traffic = self.state.traffic.values()
        ends += [(each.src, each.dst) for each in traffic if not KINDS[each.kind].fills]
        return [Scope(self.state, ends=pair) for pair in dict.fromkeys(ends)]


def scene(state: LabState, known: Checkpoint | None = None) -> Scene:
    """Return a session's scene; ``known`` is the checkpoint in its result, if it has one."""
    start = state.ready_at or 0.0
    sizes, race = fixed_sizes(state), known or checkpoint(state)
    span = max((each.ended or state.now for each in state.flows.values()), default=state.now)
    last = max([span, *(each.ended or state.now for each in state.traffic.values())])
    return Scene(
        state=state,
        start=start,
        span_s=max(min(last, state.now) - start, _LEAST_S),
        flows=_in_order(flow_groups(state)),
        queues=_queues(state),
        marks=_marks(state, start),
        sizes=sizes,
        finish=None if race is None else CheckpointMark(race.t - start, race.bytes, race.ratio),
    )


def _in_order(groups: list[list[Flow]]) -> list[list[Flow]]:
    """Return flows sorted by name, subflows after their flow, downloads last, as in all figures."""
    names = in_order({streams[0].name for streams in groups})

    def place(streams: list[Flow]) -> tuple[bool, int, int, int]:
        first = streams[0]
        return (
            is_brief(first),
            names.index(first.parent if first.kind == "subflow" else first.name),
            first.kind == "subflow",
            names.index(first.name),
        )

    return sorted(groups, key=place)


def _marks(state: LabState, start: float) -> list[tuple[float, str]]:
    """Return commands and marks; of those at one moment the mark, which is the reason, comes first.

    Stops in the last second are omitted, because every run has them.
    """
    end = state.now - _CLOSING_S
    marks = [e for e in state.log if e.is_mark and not (e.t > end and e.text.endswith(" stops"))]
    marks.sort(key=lambda e: (round(e.t, 1), e.kind != "mark"))
    return [(max(e.t - start, 0.0), e.text) for e in marks]


def _queues(state: LabState) -> list[Queue]:
    """Return the queues to draw; a link with classes has one per class in place of their sum."""
    names = list(state.hello.network.observed) if state.hello else []
    busy = []
    for name, queue in state.queues.items():
        direction, _, own = name.partition(" ")
        if not own and any(each.startswith(f"{name} ") for each in state.queues):
            continue
        found = queue.series["qlen"].extremes(0, queue.series["qlen"].end)
        if [direction] == names[:1] or (found and found[1] >= _SOME):
            busy.append(queue)
    return busy or list(state.queues.values())[:1]


# --- traces in a run's figures: lines with a point per ACK, exact states, the first reduction -----

Stretch: TypeAlias = tuple[float, float]
"""Start and end of a period in seconds."""

_HOLD_S = 0.1
"""Seconds without an ACK after which samples replace the trace: a timer may change cwnd too."""
_HOLD_STATE_S = 1.0
"""Seconds without an ACK after which samples replace the traced state; as every change of state is
traced, more than for cwnd."""
_RTTS, _MOST_RTTS = 2, 10
"""Number of RTTs shown before and after a reduction, and the most shown from its start."""


def line(
    flow: Flow, name: str, *, factor: float = 1.0, start: float = 0.0, columns: int = COLUMNS
) -> Curve:
    """Return a series of a flow as ``curve`` does, with a point per ACK while it was traced."""
    most = credible(name)
    sampled = curve(flow.series[name], factor=factor, start=start, columns=columns, most=most)
    if flow.trace is None or name not in flow.trace.series:
        return sampled
    exact = curve(flow.trace.series[name], factor=factor, start=start, columns=columns, most=most)
    traced = _inside(_stretches(flow.trace, _HOLD_S, start))
    # Gaps between ACKs are filled with samples.
    points = [(t, y) for t, y in zip(exact.t, exact.y, strict=True) if y == y and traced(t)]
    points += [(t, y) for t, y in zip(sampled.t, sampled.y, strict=True) if not traced(t)]
    points.sort(key=itemgetter(0))
    return Curve([t for t, _ in points], [y for _, y in points])


def states(flow: Flow, *, start: float = 0.0) -> list[tuple[float, float, int]]:
    """Return a flow's states as ``state_spans`` does, exact while it was traced."""
    sampled = state_spans(flow.series["ca_state"], start=start)
    if flow.trace is None:
        return sampled
    stretches = _stretches(flow.trace, _HOLD_STATE_S, start)
    traced = _inside(stretches)
    found = [each for each in sampled if not traced(each[0])]
    for left, right, state in _changes(flow.trace):
        for begin, end in stretches:
            if state and max(left - start, begin) < min(right - start, end):
                found.append((max(left - start, begin), min(right - start, end), state))
    return sorted(found)


def first_reduction(flow: Flow) -> Stretch | None:
    """Return the period around the first traced reduction of cwnd; None if there is none."""
    if flow.trace is None:
        return None
    changes = _changes(flow.trace)
    # Only CWR, Recovery and Loss reduce cwnd; Disorder does not.
    reduced = next((n for n, (*_, state) in enumerate(changes) if n and state > 1), None)
    if reduced is None:
        return None
    begun = changes[reduced][0]
    over = next((left for left, _, state in changes[reduced:] if state < 2), changes[-1][1])
    rtt_s = (flow.trace.series["srtt_us"].latest(flow.trace.moments.before_or_at(begun)) or 0) / 1e6
    return begun - _RTTS * rtt_s, min(over + _RTTS * rtt_s, begun + _MOST_RTTS * rtt_s)


def within(series: Series, stretch: Stretch, *, start: float = 0.0, most: float = inf) -> Curve:
    """Return every value of a series within a period, with gaps for values above ``most``."""
    timeline, found = series.timeline, Curve()
    first = max(timeline.at_or_after(stretch[0]), series.first)
    for tick in range(first, min(timeline.at_or_after(stretch[1]), series.end)):
        value = series.at(tick)
        found.add(timeline.time(tick) - start, None if value is None or value > most else value)
    return found


def _stretches(trace: AckTrace, hold_s: float, start: float) -> list[Stretch]:
    """Return the periods without long gaps between ACKs."""
    moments = trace.moments.moments(trace.moments.first, trace.moments.end)
    breaks = [n + 1 for n, (a, b) in enumerate(pairwise(moments)) if b - a > hold_s]
    edges = pairwise([0, *breaks, len(moments)])
    return [(moments[a] - start, moments[b - 1] - start) for a, b in edges if a < b]


def _inside(stretches: Sequence[Stretch]) -> Callable[[float], bool]:
    starts = [start for start, _ in stretches]

    def inside(t: float) -> bool:
        at = bisect_right(starts, t) - 1
        return at >= 0 and t <= stretches[at][1]

    return inside


def _changes(trace: AckTrace) -> list[tuple[float, float, int]]:
    """Return the spans (start, end, state) of a traced connection's states."""
    timeline, moments = trace.ca_state.timeline, trace.moments
    if timeline.end == timeline.first or moments.end == moments.first:
        return []
    begins = timeline.moments(timeline.first, timeline.end)
    last = max(begins[-1], moments.time(moments.end - 1))
    values = trace.ca_state.values(timeline.first, timeline.end)
    spans = zip(pairwise([*begins, last]), values, strict=True)
    return [(left, right, round(value)) for (left, right), value in spans]

"""The content of one run's figures: its flows, queues and marks on one time axis."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ccplay.analysis.checkpoint import Checkpoint, checkpoint, fixed_sizes
from ccplay.model.wording import limit_unit
from ccplay.plots import settings
from ccplay.plots.plot import Scope
from ccplay.report.data.curves import flow_groups
from ccplay.report.data.naming import in_order
from ccplay.state.lab_state import Flow, LabState, Ping, Queue
from ccplay.state.udp import Udp

_SOME = 4
"""Number of packets that a queue must have held at some time to be drawn."""
_CLOSING_S = 1.0
_LEAST_S = 0.1


class Finish(msgspec.Struct, frozen=True):
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
    finish: Finish | None

    @property
    def pings(self) -> list[Ping]:
        """Pings that were answered at least once."""
        return [each for each in self.state.of(Ping).values() if each.rtt_us.end > 0]

    @property
    def udp(self) -> list[Udp]:
        """Cross traffic, in the order of its start."""
        return list(self.state.of(Udp).values())

    def in_bytes(self, link: str) -> bool:
        """Return whether the limit of a link's queue always counted bytes rather than packets."""
        every = settings.qdiscs(self.state, link)
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
        ends += [(ping.src, ping.dst) for ping in self.pings]
        return [Scope(self.state, ends=pair) for pair in dict.fromkeys(ends)]


def scene(state: LabState, known: Checkpoint | None = None) -> Scene:
    """Return a session's scene; ``known`` is the checkpoint in its result, if it has one."""
    start = state.ready_at or 0.0
    sizes = fixed_sizes(state)
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
        finish=_finish(known or checkpoint(state), start),
    )


def _in_order(groups: list[list[Flow]]) -> list[list[Flow]]:
    """Return flows sorted by name, subflows after their flow, downloads last, as in all figures."""
    names = in_order({streams[0].name for streams in groups})

    def place(streams: list[Flow]) -> tuple[bool, int, int, int]:
        first = streams[0]
        return (
            first.kind == "download",
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


def _finish(found: Checkpoint | None, start: float) -> Finish | None:
    """Return the checkpoint with its moment on the figures' axis; None if there is none."""
    return None if found is None else Finish(found.t - start, found.bytes, found.ratio)

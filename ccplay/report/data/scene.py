"""What the figures of one run show: its flows, queues and moments, on one time axis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ccplay.analysis.checkpoint import Checkpoint, checkpoint, fixed_sizes
from ccplay.model.values import LinkSetting, Qdisc
from ccplay.model.wording import limit_unit
from ccplay.report.data.curves import flow_groups
from ccplay.report.data.naming import in_order
from ccplay.state.base_rtt import base_rtt
from ccplay.state.lab_state import Flow, LabState, Ping, Queue
from ccplay.state.udp import Udp

_SOME = 4
"""Packets; a queue that never had as many is not drawn."""
_CLOSING_S = 1.0
_LEAST_S = 0.1
_HEADER_BYTES = 14
FRAME_BYTES = 1514
"""A full Ethernet frame: what turns a limit in bytes into packets."""


@dataclass(frozen=True, slots=True)
class Finish:
    """When the first flow of a fixed size was done, and what each flow had then."""

    t: float
    """On the figures' axis."""
    bytes: Mapping[str, int]
    ratio: float | None


@dataclass(frozen=True, slots=True)
class Scene:
    """One run, ready to draw; ``start`` is the stream's moment at which the axis is 0."""

    state: LabState
    start: float
    span_s: float
    flows: list[list[Flow]]
    """Flows and downloads, each as its parallel streams."""
    queues: list[Queue]
    """Those that something waited in; the bottleneck at least."""
    marks: list[tuple[float, str]]
    """What was done or remarked when."""
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
        """Whether a queue's limit counts bytes, whatever its discipline was; else packets."""
        kinds = {qdisc.kind for _, _, qdisc in self._qdiscs(link) if qdisc is not None}
        return bool(kinds) and all(limit_unit(kind) == "bytes" for kind in kinds)

    def limits(self, link: str) -> tuple[tuple[float, float | None], ...]:
        """Return a queue's limit at each change: in kB where ``in_bytes``, else in packets.

        A class of a link is called ``LINK CLASS``.
        """
        frame = FRAME_BYTES * 1e-3 if self.in_bytes(link) else 1.0
        return tuple(
            (t, None if (limit := _limit(qdisc)) is None else limit * frame)
            for t, _, qdisc in self._qdiscs(link)
        )

    def thresholds(self, link: str) -> tuple[tuple[float, float | None], ...]:
        """Return at each change from what backlog on a link marks, in the units of ``limits``."""
        in_bytes = self.in_bytes(link)
        return tuple(
            (t, (setting.mark or 0) * (_frame(setting) * 1e-3 if in_bytes else 1.0))
            for t, setting, _ in self._qdiscs(link)
        )

    def _qdiscs(self, link: str) -> list[tuple[float, LinkSetting, Qdisc | None]]:
        direction, _, name = link.partition(" ")
        changes = self.state.links.get(direction, ())
        return [(each.t, each.setting, _qdisc(each.setting, name)) for each in changes]

    def base_rtts(self) -> list[tuple[tuple[float, float | None], ...]]:
        """Return the different base RTTs of what runs, in ms at each change of a link."""
        hello = self.state.hello
        if hello is None:
            return []
        ends = [(streams[0].src, streams[0].dst) for streams in self.flows]
        ends += [(ping.src, ping.dst) for ping in self.pings]
        every = [base_rtt(self.state, hello.network, *pair) for pair in dict.fromkeys(ends)]
        return list(dict.fromkeys(every))


def scene(state: LabState, known: Checkpoint | None = None) -> Scene:
    """Return what to draw of a session; ``known`` is its checkpoint, where a result has it."""
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
    """Sort flows by name and put downloads last: in all figures of a report alike."""
    names = in_order({streams[0].name for streams in groups})
    return sorted(groups, key=lambda s: (s[0].kind != "flow", names.index(s[0].name)))


def _marks(state: LabState, start: float) -> list[tuple[float, str]]:
    """Return what was done and remarked; at one moment the remark first, it says why.

    What a script stops at the very end is left out: every run ends so.
    """
    end = state.now - _CLOSING_S
    marks = [e for e in state.log if e.is_mark and not (e.t > end and e.text.endswith(" stops"))]
    marks.sort(key=lambda e: (round(e.t, 1), e.kind != "mark"))
    return [(max(e.t - start, 0.0), e.text) for e in marks]


def _queues(state: LabState) -> list[Queue]:
    """Return the queues to draw; of a link with classes those of the classes, not their sum."""
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


def _qdisc(setting: LinkSetting, name: str) -> Qdisc | None:
    """Return the queue of a class, or of the link itself where no class is named."""
    own = next((each.qdisc for each in setting.classes or () if each.name == name), None)
    return own or setting.qdisc


def _frame(setting: LinkSetting) -> int:
    """Return the bytes of a link's full packet, its Ethernet header included."""
    return FRAME_BYTES if setting.mtu is None else setting.mtu + _HEADER_BYTES


def _limit(qdisc: Qdisc | None) -> float | None:
    if qdisc is None:
        return None
    limit = qdisc.options.get("limit")
    if not isinstance(limit, int | float):
        return None
    return limit / FRAME_BYTES if limit_unit(qdisc.kind) == "bytes" else float(limit)


def _finish(found: Checkpoint | None, start: float) -> Finish | None:
    """Return the checkpoint on the figures' axis."""
    return None if found is None else Finish(found.t - start, found.bytes, found.ratio)

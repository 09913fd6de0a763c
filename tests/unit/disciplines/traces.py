"""Packet traces through a discipline: packets that arrive, and those it sends, drops or marks."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from ccplay.lab.disciplines import make_kind
from ccplay.lab.disciplines.base import CE, NOT_ECT, Discipline, Packet
from ccplay.model.base import Option


def discipline(kind: str, **options: Option) -> Discipline:
    """Return a discipline by its name, with defaults for options that are not given."""
    return make_kind(kind, options, 1)


def packet(
    length: int = 1514, flow: int = 0, ecn: int = NOT_ECT, number: int = 0, **more: int
) -> Packet:
    return Packet(length, flow, ecn, number=number, **more)


@dataclass
class Seen:
    """Packets of a trace that were sent, dropped or marked, each with its time in ms."""

    sent: list[tuple[float, Packet]] = field(default_factory=list)
    dropped: list[tuple[float, Packet]] = field(default_factory=list)
    marked: list[tuple[float, Packet]] = field(default_factory=list)

    def dropped_at(self) -> list[float]:
        return [at for at, _ in self.dropped]


def arrive(queue: Discipline, packets: Iterable[Packet], now: float = 0.0) -> list[Packet]:
    """Let packets arrive at ``now`` (in s); return those that were dropped."""
    for each in packets:
        each.arrived = now
        queue.arrive(each, now)
    gone, queue.dropped = queue.dropped, []
    return gone


def leave(queue: Discipline, now: float = 0.0) -> Packet:
    """Let a packet leave, which must be there; return it."""
    out = queue.depart(now)
    assert out is not None
    return out


def drain(queue: Discipline, every_ms: float, until_ms: float, start_ms: float = 0.0) -> Seen:
    """Let one packet leave every ``every_ms``, as on a link, until the queue is empty."""
    seen, step = Seen(), 0
    while (at := start_ms + step * every_ms) <= until_ms:
        step += 1
        marks = queue.marks
        out = queue.depart(at / 1e3)
        seen.dropped += [(at, each) for each in queue.dropped]
        queue.dropped.clear()
        if out is None:
            break
        seen.sent.append((at, out))
        if queue.marks > marks:
            assert out.ecn == CE
            seen.marked.append((at, out))
    return seen


def order(queue: Discipline, now: float = 0.0) -> list[int]:
    """Let all packets leave at one moment; return their flows in order."""
    flows = []
    while (out := queue.depart(now)) is not None:
        flows.append(out.flow)
    assert (queue.qlen, queue.backlog) == (0, 0)
    return flows

"""Classes of a discipline: which packets are whose, and another discipline in each of them.

What PRIO and DRR have in common. A class holds any discipline that decides by itself, such as
CoDel; the packet that it would send next is taken out and kept at its head, so that its length can
be looked at before it is its turn (``qdisc_peek_dequeued`` of include/net/sch_generic.h).
"""

from __future__ import annotations

from collections.abc import Callable

from ccplay.lab.disciplines.base import Discipline, Options, Packet, spread
from ccplay.lab.disciplines.fifo import FirstInFirstOut
from ccplay.lab.disciplines.table import CLASSES, made
from ccplay.model.base import Option

SHOWN = 4
"""Classes that report statistics: the first ones."""

_PRIOMAP = (1, 1, 2, 2, 0, 0, 1, 1)
"""Band by the last three bits of the code point, which were delay, throughput, reliability."""


class Class:
    """One class."""

    __slots__ = ("active", "deficit", "drops", "head", "inner", "place", "sojourn")

    def __init__(self, place: int, kind: str, limit: int, seed: int) -> None:
        """``kind`` is the discipline in it, ``limit`` the most packets that wait in it."""
        self.place = place
        self.inner = _inner(kind, limit, seed)
        self.head: Packet | None = None
        """The packet that is sent next, if it has been looked at."""
        self.sojourn = 0.0
        """Seconds that the last packet had waited."""
        self.drops = 0
        self.deficit = 0
        """Bytes that it may send in this turn."""
        self.active = False
        """Whether it takes turns."""

    def __len__(self) -> int:
        return self.inner.qlen + (self.head is not None)

    @property
    def backlog(self) -> int:
        """Bytes that wait."""
        return self.inner.backlog + (0 if self.head is None else self.head.length)

    def arrive(self, packet: Packet, now: float, outer: Discipline) -> None:
        """Give it a packet; ``outer`` is told what it drops."""
        marks = self.inner.marks
        self.inner.arrive(packet, now)
        self._settle(outer, marks)

    def peek(self, now: float, outer: Discipline) -> Packet | None:
        """Return the packet that it sends next; None if it has none."""
        if self.head is None:
            marks = self.inner.marks
            self.head = self.inner.depart(now)
            self._settle(outer, marks)
        return self.head

    def take(self, now: float, outer: Discipline) -> Packet | None:
        """Remove that packet and return it."""
        packet, self.head = self.peek(now, outer), None
        if packet is not None:
            self.sojourn = now - packet.arrived
        return packet

    def steal(self, outer: Discipline) -> None:
        """Drop the last packet of a FIFO."""
        if isinstance(self.inner, FirstInFirstOut) and self.inner.queue:
            packet = self.inner.queue.pop_last()
            self.inner.qlen -= 1
            self.inner.backlog -= packet.length
        elif self.head is not None:
            packet, self.head = self.head, None
        else:
            return
        self.drops += 1
        outer.drop(packet, "limit")

    def _settle(self, outer: Discipline, marks: int) -> None:
        """Pass on what the discipline in it has dropped and marked."""
        outer.marks += self.inner.marks - marks
        for packet in self.inner.dropped:
            self.drops += 1
            outer.drop(packet, f"class {self.place}")
        self.inner.dropped.clear()

    def statistics(self, name: str) -> dict[str, int]:
        """Return packets that wait, delay of the last one and drops, named after the class."""
        return {
            f"{name}_packets": len(self),
            f"{name}_delay_us": round(self.sojourn * 1e6),
            f"{name}_drops": self.drops,
        }


def _inner(kind: str, limit: int, seed: int) -> Discipline:
    if kind not in CLASSES:
        return FirstInFirstOut(Options({"limit": limit}))
    options: dict[str, Option] = {"limit": limit}
    return made(kind, options, seed)


def classifier(by: str, number: int, perturbation: int) -> Callable[[Packet], int]:
    """Return what gives the class of a packet, from 0 to below ``number``.

    By ``flow`` they are hashed; by ``source`` or ``destination`` hosts have the classes in the
    order of their first packets, and begin anew where there are more hosts; by ``dscp`` it is the
    class selector, the highest first (RFC 2474, section 4.2.2); by ``tos`` what the bits of RFC
    1349 ask for, as ``ip_tos2prio`` and tc-prio(8) have it.
    """
    hosts: dict[int, int] = {}
    return {
        "flow": lambda packet: spread(packet.flow, perturbation, number),
        "source": lambda packet: hosts.setdefault(packet.source, len(hosts) % number),
        "destination": lambda packet: hosts.setdefault(packet.destination, len(hosts) % number),
        "dscp": lambda packet: (7 - (packet.dscp >> 3)) * number // 8,
        "tos": lambda packet: min(_PRIOMAP[packet.dscp & 7], number - 1),
    }[by]

"""Deficit round robin between queues, new ones first: RFC 8290, section 4.2; sch_fq.c.

What FQ-CoDel, FQ, FQ-PIE and CAKE have in common. Two lists of queues send in turn:

    new queues    those in which a packet arrived while they were empty; served first
    old queues    those that have used up a quantum, and those that became empty as new ones

A queue whose turn comes without credits receives a quantum of bytes and goes to the end of the old
ones. An empty queue leaves its list: an old one for good, a new one to the end of the old ones if
there are any. Otherwise a flow could for ever send one packet at a time as a new one, and starve
the old ones.

Classes of a discipline: which packets belong to each, and another discipline in each of them.

What PRIO and DRR have in common. A class holds any discipline that decides by itself, such as
CoDel; the packet that the class would send next is taken out and kept at its head, so that its
length is known before the turn of the class (``qdisc_peek_dequeued`` of include/net/sch_generic.h).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from ccplay.lab.disciplines import CLASSES, make_kind
from ccplay.lab.disciplines.base import Discipline, Fifo, FirstInFirstOut, Options, Packet, spread
from ccplay.model.base import Option


class Turn:
    """A queue that sends in turn with others."""

    __slots__ = ("active", "credits", "queue", "sparse")

    def __init__(self) -> None:
        self.queue = Fifo()
        self.credits = 0.0
        """Bytes that the queue may send in this turn."""
        self.active = False
        """Whether the queue is in one of the two lists."""
        self.sparse = False
        """Whether the queue is a new one."""


C = TypeVar("C")


class ControlledTurn(Turn, Generic[C]):
    """The queue of one flow, or of several with the same hash, and what controls its length."""

    __slots__ = ("control",)

    def __init__(self, control: Callable[[], C]) -> None:
        super().__init__()
        self.control = control()


T = TypeVar("T", bound=Turn)


class Rounds(Generic[T]):
    """The two lists of queues that send in turn."""

    def __init__(self) -> None:
        self.new: deque[T] = deque()
        self.old: deque[T] = deque()

    def begin(self, turn: T, quantum: float) -> None:
        """Add a queue in which a packet arrived to the new ones, unless it is in a list already."""
        if not turn.active:
            turn.active = turn.sparse = True
            turn.credits = quantum
            self.new.append(turn)

    def longest(self) -> T:
        """Return the queue with the most bytes. Raises ``ValueError`` if there are no queues."""
        return max((*self.new, *self.old), key=lambda turn: turn.queue.bytes)

    def next(
        self,
        quantum: float,
        pull: Callable[[T], Packet | None],
        share: Callable[[T], float] = lambda _: 1.0,
        retire: Callable[[T], object] = lambda _: None,
    ) -> Packet | None:
        """Return the packet to send; None if all queues are empty.

        ``pull`` removes and returns a queue's next packet, ``share`` returns the part of a quantum
        that a queue receives, and ``retire`` is called for queues that leave both lists.
        """
        while self.new or self.old:
            turns = self.new or self.old
            turn = turns[0]
            if turn.credits <= 0:
                turn.credits += quantum * share(turn)
                turn.sparse = False
                self.old.append(turns.popleft())
                continue
            packet = pull(turn)
            if packet is not None:
                turn.credits -= packet.length
                return packet
            turns.popleft()
            if turn.sparse and self.old:
                turn.sparse = False
                self.old.append(turn)
            else:
                turn.active = False
                retire(turn)
        return None


class HashedRounds(Rounds[T]):
    """Rounds of queues into which flows are hashed; each is created for its first packet."""

    def __init__(self, make: Callable[[], T], perturbation: int) -> None:
        """``make`` returns a new queue; ``perturbation`` changes the hash."""
        super().__init__()
        self.queues: dict[int, T] = {}
        """Queues by the hash of their flows."""
        self._make = make
        self._perturbation = perturbation

    def of(self, packet: Packet, queues: int) -> T:
        """Return the queue of a packet's flow, one of at most ``queues``."""
        place = spread(packet.flow, self._perturbation, queues)
        if (found := self.queues.get(place)) is None:
            found = self.queues[place] = self._make()
        return found


SHOWN = 4
"""Largest number of classes that report statistics."""

_PRIOMAP = (1, 1, 2, 2, 0, 0, 1, 1)
"""Band by the last three bits of the code point, formerly delay, throughput, reliability."""


class Class:
    """One class, with the discipline in it."""

    __slots__ = ("active", "deficit", "drops", "head", "inner", "place", "sojourn")

    def __init__(self, place: int, kind: str, limit: int, seed: int) -> None:
        """Create a discipline of ``kind`` in which at most ``limit`` packets wait."""
        self.place = place
        self.inner = _inner(kind, limit, seed)
        self.head: Packet | None = None
        """The packet that the class sends next, if it has been taken out already."""
        self.sojourn = 0.0
        """Sojourn time in seconds of the last packet that left the class."""
        self.drops = 0
        self.deficit = 0
        """Bytes that the class may send in this turn."""
        self.active = False
        """Whether the class is among those that send in turn."""

    def __len__(self) -> int:
        return self.inner.qlen + (self.head is not None)

    @property
    def backlog(self) -> int:
        """Number of bytes that wait in the class."""
        return self.inner.backlog + (0 if self.head is None else self.head.length)

    def arrive(self, packet: Packet, now: float, outer: Discipline) -> None:
        """Give the class a packet; its drops and marks count in ``outer``."""
        marks = self.inner.marks
        self.inner.arrive(packet, now)
        self._settle(outer, marks)

    def peek(self, now: float, outer: Discipline) -> Packet | None:
        """Return the packet that the class sends next, without removing it; None if it has none."""
        if self.head is None:
            marks = self.inner.marks
            self.head = self.inner.depart(now)
            self._settle(outer, marks)
        return self.head

    def dequeue(self, now: float, outer: Discipline) -> Packet | None:
        """Remove and return the packet that the class sends next; None if it has none."""
        packet, self.head = self.peek(now, outer), None
        if packet is not None:
            self.sojourn = now - packet.arrived
        return packet

    def steal(self, outer: Discipline) -> None:
        """Drop the last packet of a FIFO, or else the packet at the head."""
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
        """Pass the drops and marks of the class's discipline on to ``outer``."""
        outer.marks += self.inner.marks - marks
        for packet in self.inner.dropped:
            self.drops += 1
            outer.drop(packet, f"class {self.place}")
        self.inner.dropped.clear()

    def statistics(self, name: str) -> dict[str, int]:
        """Return waiting packets, sojourn time of the last sent one and drops, under ``name``."""
        return {
            f"{name}_packets": len(self),
            f"{name}_delay_us": round(self.sojourn * 1e6),
            f"{name}_drops": self.drops,
        }


def _inner(kind: str, limit: int, seed: int) -> Discipline:
    if kind not in CLASSES:
        return FirstInFirstOut(Options({"limit": limit}))
    options: dict[str, Option] = {"limit": limit}
    return make_kind(kind, options, seed)


def classifier(by: str, number: int, perturbation: int) -> Callable[[Packet], int]:
    """Return a function that returns the class of a packet, from 0 to below ``number``.

    By ``flow`` the flow's hash decides. By ``source`` or ``destination`` hosts receive classes in
    the order of their first packets, from 0 again if there are more hosts than classes. By ``dscp``
    the class selector decides, the highest first (RFC 2474, section 4.2.2). By ``tos`` the bits of
    RFC 1349 decide, as in ``ip_tos2prio`` and tc-prio(8).
    """
    hosts: dict[int, int] = {}
    return {
        "flow": lambda packet: spread(packet.flow, perturbation, number),
        "source": lambda packet: hosts.setdefault(packet.source, len(hosts) % number),
        "destination": lambda packet: hosts.setdefault(packet.destination, len(hosts) % number),
        "dscp": lambda packet: (7 - (packet.dscp >> 3)) * number // 8,
        "tos": lambda packet: min(_PRIOMAP[packet.dscp & 7], number - 1),
    }[by]

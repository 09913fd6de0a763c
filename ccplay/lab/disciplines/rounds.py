"""Deficit round robin between queues, new ones first: RFC 8290, section 4.2; sch_fq.c.

What FQ-CoDel, FQ, FQ-PIE and CAKE have in common. Two lists of queues send in turn:

    new queues    those in which a packet arrived while they were empty; served first
    old queues    those that have used up a quantum, and those that became empty as new ones

A queue whose turn comes without credits receives a quantum of bytes and goes to the end of the old
ones. An empty queue leaves its list: an old one for good, a new one to the end of the old ones if
there are any. Otherwise a flow could for ever send one packet at a time as a new one, and starve
the old ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from ccplay.lab.disciplines.base import Fifo, Packet, spread


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

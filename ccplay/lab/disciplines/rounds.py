"""Deficit round robin between queues, new ones first: RFC 8290, section 4.2; sch_fq.c.

What FQ-CoDel, FQ, FQ-PIE and CAKE have in common. Two lists of queues send in turn:

    new queues    those in which a packet arrived while they were empty; served first
    old queues    those that have used up a quantum, and those that became empty as new ones

A queue whose turn comes without credits receives a quantum of bytes and goes to the end of the old
ones. One that is empty leaves: from the old ones for good, from the new ones to the end of the old,
or a flow could send one packet at a time as a new one for ever, and starve the old.
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
        """Bytes that it may send in this turn."""
        self.active = False
        """Whether it is in one of the two lists."""
        self.sparse = False
        """Whether it is among the new ones."""


T = TypeVar("T", bound=Turn)


class Rounds(Generic[T]):
    """The two lists."""

    def __init__(self) -> None:
        self.new: deque[T] = deque()
        self.old: deque[T] = deque()

    def begin(self, turn: T, quantum: float) -> None:
        """Let a queue in which a packet arrived take part; it is new if it did not already."""
        if not turn.active:
            turn.active = turn.sparse = True
            turn.credits = quantum
            self.new.append(turn)

    def longest(self) -> T:
        """Return the queue with the most bytes. Raises ``ValueError`` without any."""
        return max((*self.new, *self.old), key=lambda turn: turn.queue.bytes)

    def next(
        self,
        quantum: float,
        pull: Callable[[T], Packet | None],
        share: Callable[[T], float] = lambda _: 1.0,
        retire: Callable[[T], object] = lambda _: None,
    ) -> Packet | None:
        """Return the packet to send; ``pull`` takes one out of a queue.

        ``share`` is the part of a quantum that a queue receives; ``retire`` receives those that
        leave. None if all are empty.
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
    """Rounds of queues that flows are hashed into: a queue is made for its first packet."""

    def __init__(self, make: Callable[[], T], perturbation: int) -> None:
        """``make`` returns a new queue; another ``perturbation`` hashes flows otherwise."""
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

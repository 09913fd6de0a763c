"""DRR, deficit round robin: Shreedhar, Varghese, SIGCOMM 1995 (IEEE/ACM ToN 4(3), 1996).

Queues send in turn. At its turn a queue's deficit counter grows by ``quantum`` bytes, and the queue
sends as long as its first packet is no longer than the counter:

    deficit = deficit + quantum
    while length(first packet) <= deficit:
        send it;  deficit = deficit - length

The rest of the counter is kept for the next turn, unless the queue is empty: then the counter is
set to 0. So each queue gets the same share in bytes, whatever the length of its packets. A packet
that finds no room takes the place of the last one in the longest queue (the paper's "buffer
stealing").

The kernel's discipline of this name leaves the choice of the queue to filters; here flows are
hashed into queues, as in the paper, or assigned by host or code point (``by``). Each queue is a
class that holds a discipline; a discipline other than a FIFO has the whole limit for itself and
drops by itself.
"""

from __future__ import annotations

from collections import deque

from ccplay.lab.disciplines.base import Discipline, FirstInFirstOut, Options, Packet
from ccplay.lab.disciplines.rounds import SHOWN, Class, classifier


class DRR(Discipline):
    """Queues with equal shares."""

    def __init__(self, options: Options, seed: int = 0) -> None:
        self.queues: dict[int, Class] = {}
        self.active: deque[Class] = deque()
        self.served = False
        """Whether the first of the active queues has received its quantum of this turn."""
        self.seed = seed
        super().__init__(options, seed)

    def configure(self, options: Options) -> None:
        """Set the parameters."""
        self.limit = options.count("limit")
        self.number = options.count("flows")
        self.quantum = options.count("quantum")
        self.inner = options.word("inner")
        self.class_of = classifier(options.word("by"), self.number, self.seed)

    def enqueue(self, packet: Packet, now: float) -> None:
        """Give the packet to its queue; drop from the longest queue if there is no room."""
        place = self.class_of(packet)
        queue = self.queues.get(place)
        if queue is None:
            queue = self.queues[place] = Class(place, self.inner, self.limit, self.seed)
        if not queue:
            queue.deficit = 0
            if not queue.active:
                queue.active = True
                self.active.append(queue)
        if self.qlen < self.limit or not isinstance(queue.inner, FirstInFirstOut):
            queue.arrive(packet, now, self)
            return
        longest = max(self.active, key=lambda each: each.backlog)
        if longest is queue:
            self.drop(packet, "limit")
            queue.drops += 1
            return
        longest.steal(self)
        queue.arrive(packet, now, self)

    def dequeue(self, now: float) -> Packet | None:
        """Return the next packet of the queue whose turn it is."""
        while self.active:
            queue = self.active[0]
            first = queue.peek(now, self)
            if first is None:
                self.active.popleft()
                queue.active = self.served = False
                continue
            if not self.served:
                queue.deficit += self.quantum
                self.served = True
            if first.length > queue.deficit:
                self.active.rotate(-1)
                self.served = False
                continue
            queue.deficit -= first.length
            return queue.dequeue(now, self)
        return None

    def statistics(self) -> dict[str, int]:
        """Return how many queues have packets, and each queue's values if ``SHOWN`` or fewer."""
        found = {"drr_flows": sum(1 for each in self.active if each)}
        if self.number <= SHOWN:
            for place in range(self.number):
                found |= self.queues.get(place, _NOTHING).statistics(f"drr_class_{place}")
        return found


_NOTHING = Class(0, "pfifo", 1, 0)
"""A class in which no packet has arrived."""

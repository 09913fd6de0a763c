"""DRR, deficit round robin: Shreedhar, Varghese, SIGCOMM 1995 (IEEE/ACM ToN 4(3), 1996).

Queues send in turn. At its turn a queue's deficit counter grows by ``quantum`` bytes, and it sends
as long as its first packet is no longer than the counter:

    deficit = deficit + quantum
    while length(first packet) <= deficit:
        send it;  deficit = deficit - length

What is left counts for the next turn, unless the queue is empty: then the counter is 0. So each
queue gets the same share in bytes, whatever the length of its packets. A packet that finds no room
takes the place of the last one in the longest queue (the paper's "packet stealing").

The kernel's discipline of this name leaves it to classes and filters which queue is whose; here
flows are hashed into queues, as in the paper.
"""

from __future__ import annotations

from collections import deque

from ccplay.lab.disciplines.base import Discipline, Fifo, Options, Packet, spread


class Queue:
    """One queue with its deficit counter."""

    __slots__ = ("deficit", "packets")

    def __init__(self) -> None:
        self.packets = Fifo()
        self.deficit = 0


class DRR(Discipline):
    """Queues of hashed flows with equal shares."""

    def __init__(self, options: Options, seed: int = 0) -> None:
        self.queues: dict[int, Queue] = {}
        self.active: deque[Queue] = deque()
        self.served = False
        """Whether the first of the active queues has its quantum of this turn."""
        self.perturbation = seed
        super().__init__(options, seed)

    def configure(self, options: Options) -> None:
        """Take the parameters."""
        self.limit = options.count("limit")
        self.number = options.count("flows")
        self.quantum = options.count("quantum")

    def enqueue(self, packet: Packet, now: float) -> None:
        """Append the packet to its flow's queue, and drop from the longest if there is no room."""
        place = spread(packet.flow, self.perturbation, self.number)
        queue = self.queues.get(place)
        if queue is None:
            queue = self.queues[place] = Queue()
        if not queue.packets:
            queue.deficit = 0
            if queue not in self.active:
                self.active.append(queue)
        queue.packets.push(packet)
        if self.qlen + 1 > self.limit:
            longest = max(self.active, key=lambda each: each.packets.bytes)
            self.drop(longest.packets.pop_last(), "limit")

    def dequeue(self, now: float) -> Packet | None:
        """Send from the queue whose turn it is."""
        while self.active:
            queue = self.active[0]
            if not queue.packets:
                self.active.popleft()
                self.served = False
                continue
            if not self.served:
                queue.deficit += self.quantum
                self.served = True
            first = queue.packets.packets[0]
            if first.length > queue.deficit:
                self.active.rotate(-1)
                self.served = False
                continue
            queue.deficit -= first.length
            return queue.packets.pop()
        return None

    def statistics(self) -> dict[str, int]:
        """Return the number of queues with packets."""
        return {"drr_flows": sum(1 for each in self.active if each.packets)}

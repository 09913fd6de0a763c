"""FQ-CoDel, a fair queue for each flow with CoDel on each: RFC 8290; sch_fq_codel.c.

Packets are hashed by flow into queues, which send in turn by deficit round robin in bytes: each
time a queue's turn comes with no credit left it receives ``quantum`` bytes and goes to the end.
There are two lists of queues:

    new queues    those in which a packet arrived while they were empty; served first
    old queues    those that have used up a quantum, and those that became empty as new ones

So a flow that sends less than its share, such as a ping, has always a new queue and next to no
delay. A queue that becomes empty as a new one goes to the end of the old ones before it is
forgotten, so that it can't come back as new at once (section 4.2). CoDel (``codel.py``) works on
each queue by itself. When more than ``limit`` packets wait, half of the longest queue in bytes, at
most 64 packets, is dropped from its head (section 4.1).
"""

from __future__ import annotations

from collections import deque

from ccplay.lab.disciplines.base import Fifo, Options, Packet, spread
from ccplay.lab.disciplines.codel import Control, ControlledDelay

_DROP_BATCH = 64
"""Most packets that one packet too many removes; ``fq_codel_init``."""


class Flow:
    """The queue of one flow, or of several with one hash."""

    __slots__ = ("active", "control", "credits", "queue")

    def __init__(self) -> None:
        self.queue = Fifo()
        self.control = Control()
        self.credits = 0
        """Bytes that it may send in this turn."""
        self.active = False
        """Whether it is in one of the two lists."""


class FQCoDel(ControlledDelay):
    """A CoDel queue for each flow, those of new flows first."""

    def __init__(self, options: Options, seed: int = 0) -> None:
        self.flows: dict[int, Flow] = {}
        self.new: deque[Flow] = deque()
        self.old: deque[Flow] = deque()
        self.perturbation = seed
        super().__init__(options, seed)

    def configure(self, options: Options) -> None:
        """Take the parameters, those of tc-fq_codel(8)."""
        super().configure(options)
        self.queues = options.count("flows")
        self.quantum = options.count("quantum")
        self.memory_limit = options.count("memory_limit")

    def enqueue(self, packet: Packet, now: float) -> None:
        """Append the packet to its flow's queue: RFC 8290, section 4.1."""
        place = spread(packet.flow, self.perturbation, self.queues)
        flow = self.flows.get(place)
        if flow is None:
            flow = self.flows[place] = Flow()
        flow.queue.push(packet)
        if not flow.active:
            flow.active = True
            flow.credits = self.quantum
            self.new.append(flow)
        if self.qlen + 1 > self.limit or self.backlog + packet.length > self.memory_limit:
            self._make_room()

    def _make_room(self) -> None:
        """Drop half of the longest queue from its head."""
        fat = max((*self.new, *self.old), key=lambda flow: flow.queue.bytes)
        threshold, dropped = fat.queue.bytes / 2, 0
        for _ in range(_DROP_BATCH):
            packet = fat.queue.pop()
            if packet is None:
                break
            self.drop(packet, "limit")
            dropped += packet.length
            if dropped >= threshold:
                break

    def dequeue(self, now: float) -> Packet | None:
        """Send from the queue whose turn it is: RFC 8290, section 4.2."""
        while self.new or self.old:
            turn = self.new or self.old
            flow = turn[0]
            if flow.credits <= 0:
                flow.credits += self.quantum
                self.old.append(turn.popleft())
                continue
            packet = flow.control.dequeue(flow.queue, now, self)
            if packet is not None:
                flow.credits -= packet.length
                return packet
            was_new = turn is self.new
            turn.popleft()
            if was_new and self.old:
                self.old.append(flow)
            else:
                flow.active = False
        return None

    def statistics(self) -> dict[str, int]:
        """Return the numbers of queues in both lists, and what the largest count of CoDel is."""
        return {
            "fq_codel_new_flows": len(self.new),
            "fq_codel_old_flows": len(self.old),
            "fq_codel_memory_bytes": self.backlog,
        }

"""FQ-CoDel, a fair queue for each flow with CoDel on each: RFC 8290; sch_fq_codel.c.

Packets are hashed by flow into queues, which send in turn by deficit round robin in bytes: a queue
whose turn comes without credits receives ``quantum`` bytes and goes to the end. There are two lists
of queues:

    new queues    those in which a packet arrived while they were empty; served first
    old queues    those that have used up a quantum, and those that became empty as new ones

So a flow that sends less than its share, such as a ping, always has a new queue and hardly any
delay. A queue that becomes empty as a new one goes to the end of the old ones before it is
forgotten, so that it can't become new again at once (section 4.2; ``rounds.py``). CoDel
(``codel.py``) works on each queue separately. When more than ``limit`` packets or ``memory_limit``
bytes wait, half of the longest queue in bytes, at most 64 packets, is dropped from its head
(section 4.1).
"""

from __future__ import annotations

from functools import partial

from ccplay.lab.disciplines.base import Options, Packet
from ccplay.lab.disciplines.codel import Control, ControlledDelay
from ccplay.lab.disciplines.rounds import ControlledTurn, HashedRounds

_DROP_BATCH = 64
"""Largest number of packets dropped at once when there is no room; ``fq_codel_init``."""


class FQCoDel(ControlledDelay):
    """A CoDel queue for each flow, those of new flows first."""

    def __init__(self, options: Options, seed: int = 0) -> None:
        self.rounds = HashedRounds(partial(ControlledTurn, Control), seed)
        super().__init__(options, seed)

    def configure(self, options: Options) -> None:
        """Set the parameters, those of tc-fq_codel(8)."""
        super().configure(options)
        self.queues = options.count("flows")
        self.quantum = options.count("quantum")
        self.memory_limit = options.count("memory_limit")

    def enqueue(self, packet: Packet, now: float) -> None:
        """Append the packet to its flow's queue; RFC 8290, section 4.1."""
        flow = self.rounds.of(packet, self.queues)
        flow.queue.push(packet)
        self.rounds.begin(flow, self.quantum)
        if self.qlen + 1 > self.limit or self.backlog + packet.length > self.memory_limit:
            self._make_room()

    def _make_room(self) -> None:
        """Drop half of the longest queue, at most 64 packets, from its head."""
        fat = self.rounds.longest()
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
        """Return the next packet of the queue whose turn it is; RFC 8290, section 4.2."""
        return self.rounds.next(
            self.quantum, lambda flow: flow.control.dequeue(flow.queue, now, self)
        )

    def statistics(self) -> dict[str, int]:
        """Return the numbers of new and of old queues, and the bytes that wait."""
        return {
            "fq_codel_new_flows": len(self.rounds.new),
            "fq_codel_old_flows": len(self.rounds.old),
            "fq_codel_memory_bytes": self.backlog,
        }

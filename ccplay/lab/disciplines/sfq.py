"""SFQ, stochastic fairness queueing: McKenney, INFOCOM 1990; tc-sfq(8), sch_sfq.c.

Flows are hashed into queues, which send ``quantum`` bytes in turn. Two flows with the same hash
share a queue, so the hash changes every ``perturb`` seconds, and waiting packets move to their new
queues. If there is no room, the last packet of the longest queue is dropped: the flow that sends
the most loses first.
"""

from __future__ import annotations

from collections import deque

from ccplay.lab.disciplines.base import Discipline, Fifo, Options, Packet, spread


class HashSlot:
    """One queue, with the bytes that it may send in this turn."""

    __slots__ = ("allot", "queue")

    def __init__(self, allot: int) -> None:
        self.queue = Fifo()
        self.allot = allot
        """Bytes that the queue may still send in this turn."""


class SFQ(Discipline):
    """Queues into which flows are hashed, served in turn."""

    def __init__(self, options: Options, seed: int = 0) -> None:
        self.slots: dict[int, HashSlot] = {}
        """Queues that hold packets, by hash."""
        self.turns: deque[HashSlot] = deque()
        self.perturbation = seed
        super().__init__(options, seed)

    def configure(self, options: Options) -> None:
        """Set the parameters, those of tc-sfq(8)."""
        self.limit = options.count("limit")
        self.queues = options.count("flows")
        self.quantum = options.count("quantum")
        self.update_s = float(options.count("perturb"))

    def enqueue(self, packet: Packet, now: float) -> None:
        """Append the packet to its flow's queue; drop from the longest if there is no room."""
        self._push(packet)
        if self.qlen + 1 > self.limit:
            longest = max(self.turns, key=lambda slot: len(slot.queue))
            self.drop(longest.queue.pop_last(), "limit")
            if not longest.queue:
                self._forget(longest)

    def _push(self, packet: Packet) -> None:
        place = spread(packet.flow, self.perturbation, self.queues)
        slot = self.slots.get(place)
        if slot is None:
            slot = self.slots[place] = HashSlot(self.quantum)
            self.turns.append(slot)
        slot.queue.push(packet)

    def _forget(self, slot: HashSlot) -> None:
        self.turns.remove(slot)
        self.slots = {place: each for place, each in self.slots.items() if each is not slot}

    def dequeue(self, now: float) -> Packet | None:
        """Return the next packet of the queue whose turn it is; ``sfq_dequeue``."""
        if not self.turns:
            return None
        while (slot := self.turns[0]).allot <= 0:
            slot.allot += self.quantum
            self.turns.rotate(-1)
        packet = slot.queue.pop()
        if packet is not None:
            slot.allot -= packet.length
        if not slot.queue:
            self._forget(slot)
        return packet

    def update(self, now: float) -> None:
        """Change the hash and move waiting packets, in order of arrival; ``sfq_rehash``."""
        waiting = [packet for slot in self.turns for packet in slot.queue.packets]
        self.slots.clear()
        self.turns.clear()
        self.perturbation = int(self.random() * 2**32)
        for packet in sorted(waiting, key=lambda each: each.arrived):
            self._push(packet)

    def statistics(self) -> dict[str, int]:
        """Return the number of queues with packets, and the packets in the longest."""
        return {
            "sfq_flows": len(self.turns),
            "sfq_longest_packets": max((len(slot.queue) for slot in self.turns), default=0),
        }

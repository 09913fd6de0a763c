"""bfifo, tc-bfifo(8): first in, first out, with a limit in bytes.

Source: ``bfifo_enqueue`` of net/sched/sch_fifo.c: a packet is appended if the queue then has no
more than ``limit`` bytes, else dropped.
"""

from __future__ import annotations

from ccplay.lab.disciplines.base import FirstInFirstOut, Packet


class BFIFO(FirstInFirstOut):
    """First in, first out; drops at the tail beyond a limit in bytes."""

    def enqueue(self, packet: Packet, now: float) -> None:
        """Append the packet if there is room, else drop it."""
        del now
        if self.backlog + packet.length <= self.limit:
            self.queue.push(packet)
        else:
            self.drop(packet, "limit")

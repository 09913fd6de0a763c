"""First in, first out, with room for a number of packets; what else arrives is dropped.

It is what takes over where another discipline fails, so it has nothing that can.
"""

from __future__ import annotations

from ccplay.lab.disciplines.base import Discipline, Fifo, Options, Packet


class FirstInFirstOut(Discipline):
    """A queue that drops at its tail."""

    def __init__(self, options: Options, seed: int = 0) -> None:
        self.queue = Fifo()
        super().__init__(options, seed)

    def configure(self, options: Options) -> None:
        """Take the limit."""
        self.limit = options.count("limit")

    def enqueue(self, packet: Packet, now: float) -> None:
        """Append the packet while there is room."""
        if self.qlen < self.limit:
            self.queue.push(packet)
        else:
            self.drop(packet, "limit")

    def dequeue(self, now: float) -> Packet | None:
        """Send the oldest."""
        return self.queue.pop()

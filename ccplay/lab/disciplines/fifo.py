"""First in, first out, with room for a number of packets; packets beyond that are dropped.

It replaces a discipline that failed, so it is kept too simple to fail.
"""

from __future__ import annotations

from ccplay.lab.disciplines.base import Discipline, Fifo, Options, Packet


class FirstInFirstOut(Discipline):
    """A queue that drops at its tail."""

    def __init__(self, options: Options, seed: int = 0) -> None:
        self.queue = Fifo()
        super().__init__(options, seed)

    def configure(self, options: Options) -> None:
        """Set the limit."""
        self.limit = options.count("limit")

    def enqueue(self, packet: Packet, now: float) -> None:
        """Append the packet if there is room, else drop it."""
        if self.qlen < self.limit:
            self.queue.push(packet)
        else:
            self.drop(packet, "limit")

    def dequeue(self, now: float) -> Packet | None:
        """Return the oldest packet."""
        return self.queue.pop()

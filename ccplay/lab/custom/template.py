"""Template: describe in one sentence what is different about it.

A discipline decides which packet of a link's queue leaves next, and which is dropped or marked.
Unchanged, it is first in, first out, and marks or drops packets that waited longer than MOST_MS.
Change one thing, save, and watch the effect while traffic runs.
"""

from ccplay.lab.disciplines.base import Discipline, Fifo, Options, Packet

# Parameters with their defaults, which scenarios and the menu (q) can change. A default is
# "5 ms", "10 Mbit/s", "1000 packets", "150 kB", a number, True, or ("one", "of", "these").
PARAMETERS = {"limit": "1000 packets"}

MOST_MS = 50


class Template(Discipline):
    """One queue."""

    def configure(self, options: Options) -> None:
        """Set the parameters; called before the first packet."""
        self.limit = options.count("limit")
        self.queue = Fifo()
        self.waited_s = 0.0

    def enqueue(self, packet: Packet, now: float) -> None:
        """Enqueue or drop a packet, which has length, flow, source, destination, dscp."""
        if len(self.queue) < self.limit:
            self.queue.push(packet)
        else:
            self.drop(packet, "limit")

    def dequeue(self, now: float) -> Packet | None:
        """Return the packet that leaves now; None if none waits. ``now`` is in seconds."""
        while packet := self.queue.pop():
            self.waited_s = now - packet.arrived
            # A packet that is not ECN-capable can't be marked, and is dropped instead.
            if self.waited_s * 1e3 > MOST_MS and self.queue and not self.mark(packet):
                self.drop(packet, "late")
                continue
            return packet
        return None

    def statistics(self) -> dict[str, int]:
        """Return numbers to plot (key v); names end in their unit: _us, _packets, _bytes, _bps."""
        return {"template_waited_us": round(self.waited_s * 1e6)}

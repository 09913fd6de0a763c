"""PRIO, strict priority between bands: tc-prio(8), sch_prio.c.

A packet of band 0 leaves before any of band 1, and that before any of band 2. What is in a lower
band waits as long as anything is in a higher one, for ever if need be.

The band of a packet is read off its type of service, as the kernel does (``ip_tos2prio``, and the
default of tc-prio(8), "priomap"). With the bits of RFC 1349,

    minimise delay                              band 0
    neither, or both                            band 1
    maximise throughput                         band 2
"""

from __future__ import annotations

from ccplay.lab.disciplines.base import Discipline, Fifo, Options, Packet

_PRIOMAP = (1, 1, 2, 2, 0, 0, 1, 1)
"""Band by the last three bits of the code point, which were delay, throughput, reliability."""


class Prio(Discipline):
    """Bands of which the first that has a packet sends."""

    def __init__(self, options: Options, seed: int = 0) -> None:
        self.bands = (Fifo(), Fifo(), Fifo())
        super().__init__(options, seed)

    def configure(self, options: Options) -> None:
        """Take the most packets that wait in a band."""
        self.limit = options.count("limit")

    def enqueue(self, packet: Packet, now: float) -> None:
        """Append the packet to its band while there is room."""
        band = self.bands[_PRIOMAP[packet.dscp & 7]]
        if len(band) < self.limit:
            band.push(packet)
        else:
            self.drop(packet, "limit")

    def dequeue(self, now: float) -> Packet | None:
        """Send from the highest band with a packet."""
        return next((packet for band in self.bands if (packet := band.pop())), None)

    def statistics(self) -> dict[str, int]:
        """Return the packets that wait in each band."""
        return {f"prio_band_{each}_packets": len(band) for each, band in enumerate(self.bands)}

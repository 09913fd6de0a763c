"""PRIO, strict priority between bands: tc-prio(8), sch_prio.c.

A packet of band 0 leaves before any of band 1, and that before any of band 2. What is in a lower
band waits as long as anything is in a higher one, for ever if need be.

The band of a packet is read off its type of service, as the kernel does (``ip_tos2prio``, and the
default of tc-prio(8), "priomap"). With the bits of RFC 1349,

    minimise delay                              band 0
    neither, or both                            band 1
    maximise throughput                         band 2

or chosen by code point, flow or host (``by``). Each band is a class that holds a discipline.
"""

from __future__ import annotations

from ccplay.lab.disciplines.base import Discipline, Options, Packet
from ccplay.lab.disciplines.classes import SHOWN, Class, classifier


class Prio(Discipline):
    """Bands of which the first that has a packet sends."""

    def __init__(self, options: Options, seed: int = 0) -> None:
        self.seed = seed
        super().__init__(options, seed)

    def configure(self, options: Options) -> None:
        """Make the bands, with what is in them."""
        limit, number = options.count("limit"), options.count("bands")
        inner = options.word("inner")
        self.bands = [Class(band, inner, limit, self.seed) for band in range(number)]
        self.band_of = classifier(options.word("by"), number, self.seed)

    def enqueue(self, packet: Packet, now: float) -> None:
        """Give the packet to its band."""
        self.bands[self.band_of(packet)].arrive(packet, now, self)

    def dequeue(self, now: float) -> Packet | None:
        """Send from the highest band with a packet."""
        return next((each for band in self.bands if (each := band.take(now, self))), None)

    def statistics(self) -> dict[str, int]:
        """Return what waits, how long the last packet did, and the drops, of the first bands."""
        shown = (band.statistics(f"prio_band_{band.place}") for band in self.bands[:SHOWN])
        return {name: value for band in shown for name, value in band.items()}

"""PRIO, strict priority between bands: tc-prio(8), sch_prio.c.

Packets of band 0 leave before any of band 1, and those before any of band 2. Packets of a later
band wait as long as there are any in an earlier one, possibly for ever.

The type of service of a packet selects its band, as in the kernel (``ip_tos2prio``, and the default
of tc-prio(8), "priomap"). With the bits of RFC 1349,

    minimise delay                              band 0
    neither, or both                            band 1
    maximise throughput                         band 2

Alternatively the code point, the flow or a host selects it (``by``). Each band is a class that
holds a discipline.
"""

from __future__ import annotations

from ccplay.lab.disciplines.base import Discipline, Options, Packet
from ccplay.lab.disciplines.rounds import SHOWN, Class, classifier


class Prio(Discipline):
    """Bands, of which the first one with a packet sends."""

    def __init__(self, options: Options, seed: int = 0) -> None:
        self.seed = seed
        super().__init__(options, seed)

    def configure(self, options: Options) -> None:
        """Create the bands and the discipline in each."""
        limit, number = options.count("limit"), options.count("bands")
        inner = options.word("inner")
        self.bands = [Class(band, inner, limit, self.seed) for band in range(number)]
        self.band_of = classifier(options.word("by"), number, self.seed)

    def enqueue(self, packet: Packet, now: float) -> None:
        """Give the packet to its band."""
        self.bands[self.band_of(packet)].arrive(packet, now, self)

    def dequeue(self, now: float) -> Packet | None:
        """Return the next packet of the first band that has one."""
        return next((each for band in self.bands if (each := band.dequeue(now, self))), None)

    def statistics(self) -> dict[str, int]:
        """Return waiting packets, last sojourn time and drops of each of the first bands."""
        shown = (band.statistics(f"prio_band_{band.place}") for band in self.bands[:SHOWN])
        return {name: value for band in shown for name, value in band.items()}

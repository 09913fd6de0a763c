"""The counters of a discipline in software, in the form of the kernel's."""

from __future__ import annotations

from typing import NamedTuple

PASSAGE = 0x1_0002
"""Handle of the class below HTB's root for packets that have waited in software."""


class Counts(NamedTuple):
    """Counters of a queue in software since its start; ``qlen`` and ``backlog`` are current."""

    qlen: int = 0
    backlog: int = 0
    drops: int = 0
    marks: int = 0
    packets: int = 0
    """Number of packets sent."""
    bytes: int = 0
    """Number of bytes sent."""
    sojourn_us: int = 0
    """Sum of the sojourn times of the packets sent, in microseconds."""
    busy: int = 0
    """Whether a discipline decides, rather than packets only passing."""


class Reading(NamedTuple):
    """A reading of a queue in software."""

    kind: str
    generation: int
    """Number that changes when the counters restart."""
    counts: Counts
    statistics: dict[str, int]

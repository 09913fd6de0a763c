"""What a discipline in software tells of its queue, as the counters of the kernel's do."""

from __future__ import annotations

from typing import NamedTuple

PASSAGE = 0x1_0002
"""Handle of the class below HTB's root for packets that have waited in software."""


class Counts(NamedTuple):
    """Counters of a queue in software since it began; ``qlen`` and ``backlog`` are of now."""

    qlen: int = 0
    backlog: int = 0
    drops: int = 0
    marks: int = 0
    packets: int = 0
    """Packets sent."""
    bytes: int = 0
    """Bytes sent."""
    sojourn_us: int = 0
    """Sum of the sojourn times of the packets sent, microseconds."""
    busy: int = 0
    """Whether a discipline is at work, and not only passing packets on."""


class Reading(NamedTuple):
    """What a queue in software has come to."""

    kind: str
    generation: int
    """Another number means that the counters have begun anew."""
    counts: Counts
    statistics: dict[str, int]

"""Variables in words, with scale and unit: what ``Sweep.own`` and ``Sweep.queue_own`` name.

A name is the algorithm's or the discipline's, then what it is, then its unit: ``_us``, ``_bps``,
``_segments``, ``_packets``, ``_bytes``, or a number that counts as 1, such as ``htcp_beta_1000``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from ccplay.units import format_rate

_KERNELS = {"bbr_pacing_gain": 256, "bbr_cwnd_gain": 256, "dctcp_alpha": 1024}
"""What counts as 1 in fractions of the kernel's own, whose names don't say."""

_UNITS = ("us", "bps", "segments", "packets", "bytes")
_ONE = re.compile(r"[1-9]\d{2,}")


@dataclass(frozen=True, slots=True)
class Variable:
    """What a name says of the numbers under it."""

    name: str
    """As ``Sweep.own`` has it, but for the number that counts as 1."""
    algorithm: str
    """Its first word; empty where it is the only one."""
    words: str
    """What it is."""
    unit: str
    """``us``, ``bps``, ``segments``, ``packets``, ``bytes`` or none."""
    one: int | None
    """What counts as 1 of a fraction; None where it is none."""

    @property
    def title(self) -> str:
        """What it is, with the algorithm: ``bbr min rtt``."""
        return f"{self.algorithm} {self.words}".lstrip()

    def real(self, value: float) -> float:
        """Return a number in the unit, fractions as such: a gain of 320 is 1.25."""
        return float(value) / (self.one or 1)

    def axis(self, peak: float) -> tuple[str, float]:
        """Return the unit in which a plot with values up to ``peak`` has it, and its factor."""
        match self.unit:
            case "us":
                return "ms", 1e-3
            case "bps":
                return ("Mbit/s", 1e-6) if peak >= 1e6 else ("kbit/s", 1e-3)
        return self.unit, 1 / (self.one or 1)

    def write(self, value: float) -> str:
        """Return a number that has been taken times the factor of ``axis``, without its unit."""
        if self.one is not None:
            return f"{value:.2f}"
        return f"{value:.1f}" if self.unit in ("us", "bps") and value < 100 else f"{value:.0f}"

    def say(self, value: float) -> str:
        """Return a number with its unit: ``20.1 ms``."""
        if self.unit == "bps":
            return format_rate(value)
        unit, factor = self.axis(value)
        return self.write(value * factor) + (" ms" if unit == "ms" else "")


@lru_cache
def variable(name: str) -> Variable:
    """Return what a name says."""
    words, one = name.split("_"), _KERNELS.get(name)
    if len(words) > 2 and _ONE.fullmatch(words[-1]):
        one = int(words.pop())
        name = "_".join(words)
    algorithm = words.pop(0) if len(words) > 1 else ""
    unit = words.pop() if len(words) > 1 and words[-1] in _UNITS else ""
    return Variable(name, algorithm, " ".join(words), unit, one)


def say(name: str, value: float) -> str:
    """Return a variable in words: ``min rtt 20.1 ms`` for ``bbr_min_rtt_us`` and 20100."""
    # The algorithm's own name stands beside it.
    known = variable(name)
    return f"{known.words} {known.say(value)}"

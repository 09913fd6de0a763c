"""Metrics as text: the name determines the unit, and the uncertainty the number of digits."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

import msgspec

from ccplay.analysis.statistics import Statistic

_RATES = ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s"))
_SIZES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))
_COUNTED = frozenset(("retransmit", "packet", "drop", "mark", "sent", "received", "lost"))
_SAMPLED = ("cwnd", "qlen", "slow_start_cwnd")
_DIGITS = 4
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]\d+)?")


class Unit(msgspec.Struct, frozen=True):
    """The unit in which values of a metric are written."""

    scale: float
    """Size of the unit in the base unit of results, such as bit/s."""
    name: str
    """Name of the unit; empty for counts and ratios."""
    counts: bool = False
    """Whether values are whole numbers, except means and medians."""

    def write(self, value: float) -> str:
        """Return a value with three significant digits, without its unit; whole counts in full."""
        if self.counts and value == round(value):
            return f"{value:.0f}"
        return _fixed(value / self.scale, _decimals(value / self.scale, 2))

    def write_statistic(self, found: Statistic) -> str:
        """Return a mean and half of its confidence interval without the unit: ``0.716 ± 0.021``.

        The half has two significant digits; without an interval only the mean is returned.
        """
        half = found.half_width
        if half is None:
            return self.write(found.mean)
        mean, half = found.mean / self.scale, half / self.scale
        # If repeats hardly differ, more digits than the mean has would be noise.
        decimals = min(_decimals(half, 1), _decimals(mean, _DIGITS - 1)) if half else 2
        return f"{_fixed(mean, decimals)} ± {_fixed(half, decimals)}"


def unit(metric: str, values: Iterable[float] = ()) -> Unit:
    """Return the unit of a metric according to its name, scaled to the largest of its values."""
    largest = max((abs(value) for value in values), default=0.0)
    name = metric.rpartition(".")[2]
    if name.endswith("_bps"):
        return _fit(_RATES, largest)
    if name == "bytes" or ".bytes." in f".{metric}" or name.startswith("backlog"):
        return _fit(_SIZES, largest)
    if name.endswith("_ms"):
        return Unit(1.0, "ms")
    if name.endswith("_s") or name == "seconds":
        return Unit(1.0, "s")
    return Unit(1.0, "", counts=name.removesuffix("s") in _COUNTED or name.startswith(_SAMPLED))


def write(metric: str, value: float) -> str:
    """Return one value with its unit: ``4.25 Mbit/s``."""
    found = unit(metric, (value,))
    return f"{found.write(value)} {found.name}".rstrip()


def write_bounds(metric: str, text: str) -> str:
    """Return the text of an expectation with the unit of its metric.

    ``at least 946,800,000`` becomes ``at least 946.8 Mbit/s`` for a goodput.
    """
    bounds, sign, tolerance = text.partition(" ± ")
    if not tolerance.endswith("%"):
        # This tolerance has the unit of the value.
        bounds, sign, tolerance = text, "", ""
    found = unit(metric, [_read(number) for number in _NUMBER.findall(bounds)])
    scaled = _NUMBER.sub(lambda number: f"{_read(number[0]) / found.scale:,.10g}", bounds)
    return f"{f'{scaled} {found.name}'.rstrip()}{sign}{tolerance}"


def _read(number: str) -> float:
    return float(number.replace(",", ""))


def _fit(units: tuple[tuple[float, str], ...], largest: float) -> Unit:
    return next((Unit(*each) for each in units if largest >= each[0]), Unit(*units[-1]))


def _decimals(value: float, after_first: int) -> int:
    """Return the number of decimals, at most 6, for ``after_first`` digits after the first."""
    if value == 0 or not math.isfinite(value):
        return 0
    return min(max(after_first - math.floor(math.log10(abs(value))), 0), 6)


def _fixed(value: float, decimals: int) -> str:
    return f"{value:.{decimals}f}"

"""Tables of results: the columns of each kind of result, rounded."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

import msgspec

from ccplay.units import format_rate, format_ratio, format_size

# --- means, percentiles and rates, rounded for results --------------------------------------------


def rate_bps(size: int, seconds: float) -> float | None:
    """Return bytes over seconds in bit/s; None if no time has passed."""
    return round(size * 8 / seconds, 1) if seconds > 0 and math.isfinite(seconds) else None


def milliseconds(microseconds: float | None) -> float | None:
    """Return microseconds as milliseconds with three decimals."""
    return None if microseconds is None else round(microseconds / 1000, 3)


def mean(values: Sequence[float]) -> float | None:
    """Return the mean of values; None if there are none."""
    return round(fmean(values), 3) if values else None


def percentile(values: Sequence[float], percent: float) -> float | None:
    """Return the percentile of ``values``; None if there are none; 0 is the lowest value.

    It is linear between two values, as in most tools: Hyndman and Fan, "Sample Quantiles in
    Statistical Packages", 1996, definition 7.
    """
    if not values:
        return None
    ordered = sorted(values)
    position = (len(ordered) - 1) * percent / 100
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return round(ordered[below] + (ordered[above] - ordered[below]) * (position - below), 6)


def percentiles_ms(microseconds: Sequence[float], *percents: float) -> list[float | None]:
    """Return percentiles of times in milliseconds; None if there are none."""
    return [milliseconds(percentile(microseconds, each)) for each in percents]


# --- tables of results: the columns of each kind of result, in a terminal and on a page -----------

UNKNOWN = "–"
"""Text for an unknown value."""


class Format(msgspec.Struct, frozen=True):
    """The format of a column's values."""

    write: Callable[[Any], str]
    """Function that returns a value with its unit as text, for a terminal."""
    number: Callable[[Any], str]
    """Function that returns a value as text without the unit, which is in the column's head."""
    unit: str = ""
    """Unit in the column's head; empty if the number has its own."""


def _milliseconds(value: float) -> str:
    if value >= 10_000:
        return f"{value / 1000:.1f} s"
    return f"{_number(value)} ms"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _count(value: float) -> str:
    return f"{value:,.0f}"


WORDS = Format(str, str)
"""Format of words, which are left-aligned; all numbers are right-aligned."""
TEXT = Format(str, str)
"""Format of numbers that are text already."""
RATE = Format(format_rate, format_rate)
"""Format of bits per second."""
SIZE = Format(format_size, format_size)
"""Format of bytes."""
MILLISECONDS = Format(_milliseconds, _number, "ms")
SECONDS = Format(lambda value: f"{value:.1f} s", lambda value: f"{value:.2f}", "s")
SHARE = Format(format_ratio, lambda share: f"{share * 100:.2f}", "%")
"""Format of shares of one."""
COUNT = Format(_count, _count)
PACKETS = Format(_count, _count, "packets")
SEGMENTS = Format(_count, _count, "segments")
BYTES = Format(_count, _count, "bytes")


class Column(msgspec.Struct, frozen=True):
    """A column: one value of a row, or several values of the same format side by side."""

    title: str
    values: tuple[str, ...]
    """Attributes of a row that the column shows."""
    measure: Format = WORDS
    parts: tuple[str, ...] = ()
    """Name of each of several values: ``p50``, ``p99``."""
    note: str = ""
    """Addition to the unit on a page: ``by the queue``."""
    short: str = ""
    """Title in a terminal; if empty, that of the page."""
    brief: tuple[int, ...] | None = None
    """Indices of the values shown in a terminal; None for all, empty for no column."""
    none: str = UNKNOWN
    """Text for an unknown value."""

    @property
    def is_words(self) -> bool:
        """Whether the column contains words rather than numbers."""
        return self.measure is WORDS

    @property
    def in_brief(self) -> bool:
        """Whether a terminal shows the column."""
        return self.brief != ()

    @property
    def brief_title(self) -> str:
        """Title in a terminal: ``srtt p50/p99``."""
        parts = "/".join(self.parts[at] for at in self._brief()) if self.parts else ""
        return f"{self.short or self.title} {parts}".rstrip()

    @property
    def unit(self) -> str:
        """Line below the title on a page: ``p50 / p99, ms``."""
        several = " / ".join(self.parts)
        return ", ".join(each for each in (several, self.measure.unit, self.note) if each)

    def brief_cell(self, row: object) -> str:
        """Return the cell in a terminal, where several values share one unit."""
        chosen = [self.values[at] for at in self._brief()]
        cells = [self._write(getattr(row, each), self.measure.write) for each in chosen]
        units = {cell.partition(" ")[2] for cell in cells}
        if len(cells) > 1 and len(units) == 1:
            numbers = [cell.partition(" ")[0] for cell in cells]
            return f"{' / '.join(numbers)} {units.pop()}".rstrip()
        return " / ".join(cells)

    def cell(self, row: object) -> str:
        """Return the cell on a page."""
        write = self.measure.number
        return " / ".join(self._write(getattr(row, each), write) for each in self.values)

    def _brief(self) -> Sequence[int]:
        return range(len(self.values)) if self.brief is None else self.brief

    def _write(self, value: object, write: Callable[[Any], str]) -> str:
        return self.none if value is None else write(value)


class ResultTable(msgspec.Struct, frozen=True, eq=False):
    """A table of results, which several kinds may share."""

    title: str
    """Title of the table on a page."""
    columns: tuple[Column, ...]
    rows: Callable[[Any], Sequence[object]] = lambda result: (result,)
    """Function that returns the rows of a result: usually the result itself; none if it is
    empty."""
    in_brief: bool = True
    """Whether a terminal shows the table."""

"""Tables of results: what each kind of result shows of itself, in a terminal and on a page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ccplay.units import format_rate, format_ratio, format_size

UNKNOWN = "–"
"""What stands for a value that is not known."""


class Measure(msgspec.Struct, frozen=True):
    """How values of a column are written."""

    write: Callable[[Any], str]
    """Function that writes a value with the unit, for a terminal."""
    number: Callable[[Any], str]
    """Function that writes a value without the unit, where the column's head has it."""
    unit: str = ""
    """What the head has then; empty where the number has its own."""


def _milliseconds(value: float) -> str:
    if value >= 10_000:
        return f"{value / 1000:.1f} s"
    return f"{_number(value)} ms"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _count(value: float) -> str:
    return f"{value:,.0f}"


WORDS = Measure(str, str)
"""Words; all others are numbers, which stand right."""
TEXT = Measure(str, str)
"""Numbers that are words already."""
RATE = Measure(format_rate, format_rate)
"""Bits per second."""
SIZE = Measure(format_size, format_size)
"""Bytes."""
MILLISECONDS = Measure(_milliseconds, _number, "ms")
SECONDS = Measure(lambda value: f"{value:.1f} s", lambda value: f"{value:.2f}", "s")
SHARE = Measure(format_ratio, lambda share: f"{share * 100:.2f}", "%")
"""Shares of one."""
COUNT = Measure(_count, _count)
PACKETS = Measure(_count, _count, "packets")
SEGMENTS = Measure(_count, _count, "segments")
BYTES = Measure(_count, _count, "bytes")


class Column(msgspec.Struct, frozen=True):
    """A column: one value of a row, or several of one measure side by side."""

    title: str
    values: tuple[str, ...]
    """The row's attributes that it shows."""
    measure: Measure = WORDS
    parts: tuple[str, ...] = ()
    """What each of several values is: ``p50``, ``p99``."""
    note: str = ""
    """What the unit is of, on a page: ``by the queue``."""
    short: str = ""
    """Title in a terminal; empty for the same."""
    brief: tuple[int, ...] | None = None
    """Indices of the values that a terminal has room for; None for all, empty for no column at
    all."""
    none: str = UNKNOWN
    """What stands for a value that is not known."""

    @property
    def is_words(self) -> bool:
        """Whether it holds words rather than numbers."""
        return self.measure is WORDS

    @property
    def in_brief(self) -> bool:
        """Whether a terminal has room for it."""
        return self.brief != ()

    @property
    def brief_title(self) -> str:
        """What stands above it in a terminal: ``srtt p50/p99``."""
        parts = "/".join(self.parts[at] for at in self._brief()) if self.parts else ""
        return f"{self.short or self.title} {parts}".rstrip()

    @property
    def unit(self) -> str:
        """What stands below its title on a page: ``p50 / p99, ms``."""
        several = " / ".join(self.parts)
        return ", ".join(each for each in (several, self.measure.unit, self.note) if each)

    def brief_cell(self, row: object) -> str:
        """Return what a terminal shows: a unit that several values share stands once."""
        chosen = [self.values[at] for at in self._brief()]
        cells = [self._write(getattr(row, each), self.measure.write) for each in chosen]
        units = {cell.partition(" ")[2] for cell in cells}
        if len(cells) > 1 and len(units) == 1:
            numbers = [cell.partition(" ")[0] for cell in cells]
            return f"{' / '.join(numbers)} {units.pop()}".rstrip()
        return " / ".join(cells)

    def cell(self, row: object) -> str:
        """Return what a page shows."""
        write = self.measure.number
        return " / ".join(self._write(getattr(row, each), write) for each in self.values)

    def _brief(self) -> Sequence[int]:
        return range(len(self.values)) if self.brief is None else self.brief

    def _write(self, value: object, write: Callable[[Any], str]) -> str:
        return self.none if value is None else write(value)


def _itself(result: object) -> tuple[object, ...]:
    return (result,)


class Table(msgspec.Struct, frozen=True, eq=False):
    """A table of results; several kinds may have rows in one."""

    title: str
    """Title above it on a page."""
    columns: tuple[Column, ...]
    rows: Callable[[Any], Sequence[object]] = _itself
    """The rows of a result: mostly the result itself, none where it has nothing to show."""
    in_brief: bool = True
    """Whether a terminal shows it."""


def _followed(result: Any) -> tuple[object, ...]:
    return () if result.delay_mean_ms is None else (result,)


MONITORED = Table(
    "Packets, from host to host",
    (
        Column("traffic", ("id",), short="packets of"),
        Column("path", ("path",)),
        Column("rate", ("tx_bps", "rx_bps"), RATE, ("sent", "received"), short="rate"),
        Column("sent", ("packets",), PACKETS, brief=()),
        Column("lost", ("packet_loss",), SHARE),
        Column(
            "one-way delay",
            ("delay_mean_ms", "delay_min_ms", "delay_max_ms"),
            MILLISECONDS,
            ("mean", "min", "max"),
            short="delay",
        ),
    ),
    _followed,
)
"""What became of packets that a monitor followed, whatever sent them."""

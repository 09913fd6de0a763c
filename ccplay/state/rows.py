"""Rows of samples that wait until each series reads its column."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from typing import cast

_MISSING = math.nan


class Rows:
    """Sweeps of the same members, one row of each field a sweep."""

    __slots__ = ("_fields", "_width", "complete", "end", "tick")

    def __init__(self, tick: int, fields: int, width: int) -> None:
        """Expect the first sweep at ``tick``: a row of ``width`` values for each field."""
        self.tick = self.end = tick
        self.complete = False
        """Whether no sweep will follow."""
        self._width = width
        self._fields = [array("f") for _ in range(fields)]

    def append(self, rows: Iterable[Sequence[float | None]]) -> None:
        """Add a sweep."""
        for values, row in zip(self._fields, rows, strict=True):
            try:
                values.fromlist(cast("list[float]", row))
            except TypeError:
                # Some are unknown; nothing was added.
                values.extend([_MISSING if each is None else each for each in row])
        self.end += 1

    def column(self, field: int, at: int, tick: int) -> array[float]:
        """Return the values of a column of a field from ``tick`` on."""
        return self._fields[field][max(tick - self.tick, 0) * self._width + at :: self._width]


class Feed:
    """Where the series of one connection or queue find what was sampled of it."""

    __slots__ = ("columns",)

    def __init__(self) -> None:
        self.columns: list[tuple[Rows, int]] = []
        """Rows that some of its series may not have read, oldest first, and its column there."""

    @property
    def end(self) -> int:
        """One past the tick of the newest sample; 0 if there is nothing to read."""
        return self.columns[-1][0].end if self.columns else 0

    def since(self, tick: int) -> Sequence[tuple[Rows, int]]:
        """Return the columns that have samples of ``tick`` or later."""
        columns = self.columns
        at = len(columns)
        while at and columns[at - 1][0].end > tick:
            at -= 1
        return columns[at:]

    def drop(self) -> None:
        """Drop what all its series have read."""
        newest, _ = self.columns[-1]
        del self.columns[: None if newest.complete else -1]

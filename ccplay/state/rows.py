"""Rows of samples, kept until each series has read its column."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from typing import cast

_MISSING = math.nan


class Rows:
    """Sweeps of the same members: for each field one row per sweep."""

    __slots__ = ("_fields", "_width", "complete", "end", "tick")

    def __init__(self, tick: int, fields: int, width: int) -> None:
        """Expect the first sweep at ``tick``, with a row of ``width`` values for each field."""
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
        """Return a field's values in a column from ``tick`` on."""
        return self._fields[field][max(tick - self.tick, 0) * self._width + at :: self._width]


class Feed:
    """The samples of one connection or queue, for its series to read."""

    __slots__ = ("columns",)

    def __init__(self) -> None:
        self.columns: list[tuple[Rows, int]] = []
        """Rows that some series may not have read, oldest first, with the column to read."""

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
        """Discard the rows that all series have read."""
        newest, _ = self.columns[-1]
        del self.columns[: None if newest.complete else -1]

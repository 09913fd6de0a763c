"""Tables of benchmarks, and the spread of values measured several times."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table


@dataclass(frozen=True)
class Spread:
    """The least, median and greatest of several values."""

    least: float
    median: float
    greatest: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(min(values), statistics.median(values), max(values))

    def scaled(self, factor: float, digits: int = 0) -> str:
        """Return ``median (least-greatest)``, each multiplied by ``factor``."""
        median, least, greatest = (
            f"{each * factor:.{digits}f}" for each in (self.median, self.least, self.greatest)
        )
        return f"{median} ({least}-{greatest})"


def table(title: str, aim: str, heads: Sequence[str]) -> Table:
    """Return an empty table with names in the first column and numbers in the others."""
    caption = f"{title}\naim: {aim}" if aim else title
    made = Table(title=caption, title_justify="left")
    for number, head in enumerate(heads):
        made.add_column(head, justify="right" if number else "left", no_wrap=True)
    return made

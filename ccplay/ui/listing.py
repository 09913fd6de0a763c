"""How a person wants the flows: sorted, filtered, one alone, in groups, stacked."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

COLUMNS = ("", "flow", "cc", "cwnd", "rtt", "goodput", "retr", "path")
"""Columns to sort by; the first, without a name, is the order in which flows started."""

_WORDS = ("", "flow", "cc", "path")
"""Columns that are sorted from their least value on; numbers are from their greatest."""

_LONGEST = 40
"""Characters of a filter at most."""


class Listing(msgspec.Struct, frozen=True):
    """Which flows table and plots show, and in which order."""

    column: str = ""
    """What the table is sorted by, one of ``COLUMNS``."""
    reverse: bool = False
    """Whether its order is the other way round."""
    text: str = ""
    """What the name, the algorithm or a host of a flow contains; empty: all are shown."""
    typing: bool = False
    """Whether keys are letters of the filter."""
    alone: bool = False
    """Whether plots draw the selected flow alone."""
    grouped: bool = False
    """Whether flows of one algorithm are one line."""
    stacked: bool = False
    """Whether rates and queues are stacked where they add up."""

    @property
    def descending(self) -> bool:
        """Whether the greatest value comes first."""
        return (self.column not in _WORDS) != self.reverse

    def next_column(self) -> Listing:
        """Return the same sorted by the next column, in its own order."""
        at = COLUMNS.index(self.column) + 1
        return replace(self, column=COLUMNS[at % len(COLUMNS)], reverse=False)

    def typed(self, key: str, character: str | None) -> Listing:
        """Return the same after a key of the filter line."""
        if key == "escape":
            return replace(self, text="", typing=False)
        if key == "enter":
            return replace(self, typing=False)
        if key == "backspace":
            return replace(self, text=self.text[:-1])
        if character and character.isprintable() and len(self.text) < _LONGEST:
            return replace(self, text=self.text + character)
        return self

"""How the user lists the flows: sorted, filtered, grouped, stacked, or one alone."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

COLUMNS = ("", "flow", "cc", "cwnd", "rtt", "goodput", "retr", "path")
"""Columns to sort by; the empty name stands for the order in which flows started."""

_WORDS = ("", "flow", "cc", "path")
"""Columns in ascending order by default; columns of numbers are in descending order."""

_LONGEST = 40
"""Longest filter in characters."""


class Listing(msgspec.Struct, frozen=True):
    """Which flows table and plots show, and in which order."""

    column: str = ""
    """Column that the table is sorted by, one of ``COLUMNS``."""
    reverse: bool = False
    """Whether the order of the table is reversed."""
    text: str = ""
    """Text that the name, algorithm or a host of a listed flow contains; empty lists all flows."""
    typing: bool = False
    """Whether typed keys extend the filter."""
    alone: bool = False
    """Whether plots draw the selected flow alone."""
    grouped: bool = False
    """Whether all flows of an algorithm share one line."""
    stacked: bool = False
    """Whether plots of rates and queues stack values that add up."""

    @property
    def descending(self) -> bool:
        """Whether the greatest value is listed first."""
        return (self.column not in _WORDS) != self.reverse

    def next_column(self) -> Listing:
        """Return this listing sorted by the next column, in that column's default order."""
        at = COLUMNS.index(self.column) + 1
        return replace(self, column=COLUMNS[at % len(COLUMNS)], reverse=False)

    def typed(self, key: str, character: str | None) -> Listing:
        """Return this listing after a key typed into the filter."""
        if key == "escape":
            return replace(self, text="", typing=False)
        if key == "enter":
            return replace(self, typing=False)
        if key == "backspace":
            return replace(self, text=self.text[:-1])
        if character and character.isprintable() and len(self.text) < _LONGEST:
            return replace(self, text=self.text + character)
        return self

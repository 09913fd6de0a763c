"""How wide each column of the table of what flows is: whole names come first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

MARKS = 3
"""Cells before the name: what is selected, the mark, the sign of what is wrong or traced."""

WRONG = "!"
"""After the mark of a flow that its algorithm does no good."""

_WIDE = 56
"""From this width on units are spelt out."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The widths of all columns, blanks between them included."""

    width: int
    """Of the whole table."""
    name: int
    cc: int
    cwnd: int
    rtt: int
    rate: int
    retr: int
    """0 where names of algorithms need its room."""
    path: int = 0
    """0 where there is no room for source and destination."""
    tight: bool = False
    """Whether they need that of blanks and units, too: RTTs are in milliseconds without saying."""

    @property
    def wide(self) -> bool:
        """Whether units are spelt out."""
        return self.width >= _WIDE

    @property
    def indent(self) -> int:
        """Cells before the second column."""
        return MARKS + self.name

    @property
    def rest(self) -> int:
        """Cells from there to the end."""
        return self.width - self.indent

    def numbers(self, cwnd: str, rtt: str, rate: str, retr: str) -> str:
        """Return what stands in the last columns, to the right of each."""
        text = f"{cwnd:>{self.cwnd}}{rtt:>{self.rtt}}{rate:>{self.rate}}"
        return text + (f"{retr:>{self.retr}}" if self.retr else "")


def columns(
    width: int, names: Iterable[str], algorithms: Iterable[str], paths: Iterable[str] = ()
) -> Columns:
    """Return columns in which the names of traffic and algorithms are whole, where that can be.

    Paths have one only where all of them are whole beside everything else.
    """
    wide = width >= _WIDE
    cwnd, rtt, rate, retr = (6, 8, 13, 6) if wide else (5, 6, 6, 5)
    # Traffic may be called anything up to 16 characters.
    shortest, longest = (4, 10) if wide else (3, 6)
    name = min(max([shortest, *(len(each) + 1 for each in names)]), longest)
    cc = max([10 if wide else 8, *(len(each) + 1 for each in algorithms)])
    room = width - MARKS - name - cwnd - rtt - rate
    if cc > room - retr:
        retr = 0
    if tight := cc > room:
        # cwnd stands right of a blank, and three digits of an RTT right of another.
        room += cwnd + rtt - 8
        cwnd = rtt = 4
    cc = min(cc, room - retr)
    path = max((len(each) + 1 for each in paths), default=0)
    if path > room - retr - cc:
        path = 0
    return Columns(width, name, cc, cwnd, rtt, rate, retr, path, tight)

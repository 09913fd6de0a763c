"""Widths of the columns in the table of traffic: whole names take precedence."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ccplay.ui.cells.sheet import abbreviated, fit

GLYPHS = 3
"""Number of cells before a name: pointer, glyph, and the sign of a warning or a trace."""

WRONG = "!"
"""Sign after the glyph of a flow whose algorithm misbehaves."""

_WIDE = 56
"""Smallest width in cells of a table that spells out units."""


class Columns(msgspec.Struct, frozen=True):
    """The widths in cells of all columns, including the blanks between them."""

    width: int
    """Width of the whole table in cells."""
    name: int
    cc: int
    cwnd: int
    rtt: int
    rate: int
    retr: int
    """Width of the column of retransmits in cells; 0 if names of algorithms need its room."""
    names: frozenset[str]
    """Names of all traffic in the table."""
    path: int = 0
    """Width of the column of source and destination in cells; 0 if there is no room for it."""
    tight: bool = False
    """Whether names also need the room of blanks and units; RTTs below 1 s are then plain ms."""

    @property
    def wide(self) -> bool:
        """Whether units are spelled out."""
        return self.width >= _WIDE

    def named(self, name: str, ellipsis: str) -> str:
        """Return a name cut or padded to its column, unlike any other, and a blank."""
        short = abbreviated(self.names, self.name - 1, ellipsis).get(name, name)
        return f"{fit(short, self.name - 1, ellipsis)} "

    @property
    def indent(self) -> int:
        """Number of cells before the second column."""
        return GLYPHS + self.name

    @property
    def rest(self) -> int:
        """Number of cells from the second column to the end of the line."""
        return self.width - self.indent

    def numbers(self, cwnd: str, rtt: str, rate: str, retr: str) -> str:
        """Return cwnd, RTT, rate and retransmits, right-aligned in their columns."""
        text = f"{cwnd:>{self.cwnd}}{rtt:>{self.rtt}}{rate:>{self.rate}}"
        return text + (f"{retr:>{self.retr}}" if self.retr else "")


def columns(
    width: int, names: Iterable[str], algorithms: Iterable[str], paths: Iterable[str] = ()
) -> Columns:
    """Return the widths that show names of traffic and algorithms uncut, if possible.

    Paths have a column only if all of them fit uncut next to everything else.
    """
    wide = width >= _WIDE
    cwnd, rtt, rate, retr = (6, 8, 13, 6) if wide else (5, 6, 6, 5)
    # Names of traffic have up to 16 characters.
    shortest, longest = (4, 10) if wide else (3, 6)
    names = frozenset(names)
    whole = max(map(len, names), default=0) + 1
    name = min(max(shortest, whole), longest)
    cc = max([10 if wide else 8, *(len(each) + 1 for each in algorithms)])
    room = width - GLYPHS - name - cwnd - rtt - rate
    if cc > room - retr:
        retr = 0
    if tight := cc > room:
        # Four digits of cwnd follow a blank already; an RTT has three digits after a blank.
        room += cwnd + rtt - 8
        cwnd = rtt = 4
    cc = min(cc, room - retr)
    spare = max(0, min(whole - name, room - retr - cc))
    name, room = name + spare, room - spare
    path = max((len(each) + 1 for each in paths), default=0)
    if path > room - retr - cc:
        path = 0
    return Columns(width, name, cc, cwnd, rtt, rate, retr, names, path, tight)


def with_sign(head: str, word: str, sign: str) -> tuple[str, str, str]:
    """Split the table's head at a word into the part before it, the word with a sign, and the rest.

    The sign replaces the blank before the word. If the head lacks the word, no part has a sign.
    """
    at = head.find(word) if word else -1
    if at < 1:
        return head, "", ""
    before, behind = head[: at - 1], head[at + len(word) :]
    if before and not before.endswith(" "):
        # The preceding word moves one cell to the left, so that a blank follows it.
        last = before.split()[-1]
        before = f"{before.removesuffix(last)[:-1]}{last} "
    return before, sign + word, behind

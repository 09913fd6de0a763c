"""One column of a plot's cells, into which traces draw their dots."""

from __future__ import annotations

from ccplay.ui.cells.sheet import Run
from ccplay.ui.plots.traces import Pen

_BRAILLE = 0x2800

_QUARTERS = " ▘▝▀▖▌▞▛▗▚▐▜▄▙▟█"
"""Characters of cells by their filled quarters: upper left 1, upper right 2, lower left 4, lower
right 8."""

_PAIRS = (0x03, 0x18, 0x44, 0xA0)
"""Bits of the two braille dots in each quarter, in the order of the bits of ``_QUARTERS``."""


class Column:
    """One column of cells, counted from the top, into which traces draw."""

    __slots__ = ("_bits", "_bold", "_inks", "_signs", "_thick", "lines")

    def __init__(self, lines: int, *, bold: bool = False) -> None:
        """Begin an empty column; if ``bold``, thick dots fill quarters of cells."""
        self._bold = bold
        self._bits = [0] * lines
        self._thick = [0] * lines
        self._inks = [""] * lines
        self._signs = [""] * lines
        self.lines: set[int] = set()
        """Indices of the lines that are not empty."""

    def has_room(self, line: int, pen: Pen, x: int) -> bool:
        """Return whether a dashed pen may draw here; over others it draws every second dash."""
        if line not in self.lines or self._inks[line] == pen.ink:
            return True
        return not self._signs[line] and (x - pen.lane) % 4 == 0

    def dot(self, line: int, bit: int, ink: str, *, thick: bool = False) -> None:
        """Add a dot to a braille cell, which takes the colour of the last visible dot."""
        self._bits[line] |= bit
        if thick:
            self._thick[line] |= bit
        if self._bold and self._thick[line] and not thick and not self._signs[line]:
            # A solid quarter hides the dot.
            return
        self._signs[line] = ""
        self._inks[line] = ink
        self.lines.add(line)

    def sign(self, line: int, sign: str, ink: str) -> None:
        """Replace a cell by a character."""
        self._bits[line] = self._thick[line] = 0
        self._signs[line] = sign
        self._inks[line] = ink
        self.lines.add(line)

    def cover(self, cells: list[Run]) -> None:
        """Draw the column over ``cells``, except for its empty lines."""
        for line in self.lines:
            cells[line] = (self._signs[line] or self._dots(line), self._inks[line])

    def _dots(self, line: int) -> str:
        if self._bold and (thick := self._thick[line]):
            return _QUARTERS[sum(1 << at for at, bits in enumerate(_PAIRS) if thick & bits)]
        return chr(_BRAILLE + self._bits[line])

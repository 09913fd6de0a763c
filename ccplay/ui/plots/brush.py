"""Draws traces into the cells of a column, as braille dots or as one character per cell."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ccplay.ui.cells.glyphs import Glyphs
from ccplay.ui.cells.sheet import Run
from ccplay.ui.plots.scale import Scale
from ccplay.ui.plots.traces import LineKind, Pen, Span

# --- one column of a plot's cells, into which traces draw their dots ------------------------------

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


# --- draws traces into the cells of a column, as braille dots or as one character per cell --------

_THICK = ("line", "area", "layer", "dots")
"""Styles of lines that are thicker with a bold stroke; other styles stay in the background."""

_BITS = ((0x40, 0x04, 0x02, 0x01), (0x80, 0x20, 0x10, 0x08))
"""Bits of a braille cell's dots: two columns, each from bottom to top."""


class Brush:
    """A brush for an area of ``lines`` lines, of which the lowest ``high`` show values."""

    def __init__(self, glyphs: Glyphs, scale: Scale, lines: int, high: int) -> None:
        self._scale = scale
        self._lines = lines
        self._across, self._up = self.dots_of(glyphs)
        self._dots = high * self._up
        self._spot = glyphs.dotted

    @staticmethod
    def dots_of(glyphs: Glyphs) -> tuple[int, int]:
        """Return the number of dots across and up in a cell."""
        return (2, 4) if glyphs.plot_cells == "braille" else (1, 1)

    def line_of(self, value: float) -> int:
        """Return the line of the area, from the top, that contains a value."""
        return self._lines - 1 - self._dot(value) // self._up

    def _dot(self, value: float) -> int:
        """Return the number of dots between the bottom and a value."""
        scale = self._scale
        if scale.logarithmic or not 0.0 < value < scale.top:
            return int(scale.height(value) * (self._dots - 1) + 0.5)
        return int(value / scale.top * (self._dots - 1) + 0.5)

    def shade(self, ink: str, band: Sequence[Span | None], x: int, column: Column) -> None:
        """Draw a band: every fourth dot between the lowest and the highest value."""
        across = self._across
        for dx, span in enumerate(band):
            if span is None or span[0] > self._scale.top:
                continue
            at = x * across + dx
            low, high = self._dot(span[0]), self._dot(span[1])
            # Every fourth braille dot, or every other character, in a slanting pattern.
            gap, place = (4, 2 * at) if across == 2 else (2, at)
            for dot in range(low + -(low + place) % gap, high + 1, gap):
                line = self._lines - 1 - dot // self._up
                if across == 2:
                    column.dot(line, _BITS[dx][dot % 4], ink)
                else:
                    column.sign(line, self._spot, ink)

    def draw(
        self,
        pen: Pen,
        pair: Sequence[Span | None],
        x: int,
        column: Column,
        band: Sequence[Span | None],
    ) -> None:
        """Draw a line; if the pen's style shades, also shade below the line, or below its band."""
        across, up, lines = self._across, self._up, self._lines
        for dx, span in enumerate(pair):
            if span is None or span[0] > self._scale.top or pen.style == "signs":
                continue
            low, high = self._dot(span[0]), self._dot(span[1])
            at = x * across + dx
            sparse = pen.style in ("dotted", "sparse")
            if sparse and at % (2 if across == 2 else 3 if pen.style == "dotted" else 1):
                continue
            dashed = pen.style == "dashed"
            if dashed and (x - pen.lane) % 2:
                continue
            dots: Sequence[int] = range(low, high + 1)
            shade: Sequence[int] = ()
            if pen.style in ("area", "layer"):
                gap = 4 if across == 2 else 1
                least = band[dx]
                ground = range(self._dot(least[0]) if least else low)
                if pen.style == "layer":
                    ground, dots = range(low, high), range(high, high + 1)
                shade = ground[-(2 * at + ground.start) % gap :: gap]
            elif pen.style in ("dotted", "dots") and high - low > up:
                dots = range(low, high + 1, max(high - low, 1))
            thick = pen.style in _THICK and not pen.dim
            dots = of_kind(pen.kind, dots, at, across * up)
            for place, dot in enumerate((*shade, *dots)):
                line = lines - 1 - dot // up
                if dashed and not column.has_room(line, pen, x):
                    continue
                if across == 2:
                    of_line = thick and place >= len(shade)
                    column.dot(line, _BITS[dx][dot % 4], pen.ink, thick=of_line)
                else:
                    column.sign(line, pen.ascii, pen.ink)


def of_kind(kind: LineKind, dots: Sequence[int], at: int, finely: int) -> Sequence[int]:
    """Return the dots that a line of this dash pattern draws in the column of dots ``at``.

    ``finely`` is the number of dots in a cell. Steep parts of the line are dashed vertically, all
    others horizontally.
    """
    if kind == "solid":
        return dots
    period, drawn = _KINDS[kind] if finely > 1 else _COARSE_KINDS[kind]
    if len(dots) > period:
        return [dot for dot in dots if dot % period in drawn]
    return dots if at % period in drawn else ()


_KINDS: dict[LineKind, tuple[int, Collection[int]]] = {
    "dashed": (12, range(8)),
    "dotted": (4, range(2)),
    "dash-dot": (12, (*range(6), 8, 9)),
}
"""Length of each dash pattern in dots, and the dots that are drawn."""

_COARSE_KINDS: dict[LineKind, tuple[int, Collection[int]]] = {
    "dashed": (4, range(2)),
    "dotted": (2, (0,)),
    "dash-dot": (5, (0, 1, 3)),
}
"""Length of each dash pattern in cells without braille dots, and the cells that are drawn."""

"""The canvas of a plot over time, which fills to the right and repaints only changed cells.

::

    cwnd segments        ● 87  ■ 41     title, values at the playhead
    100┤
       │      ╱╲   ╱╲  ●                braille: two by four dots a cell
     50┤   ╱╲╱  ╲ ╱  ╲╱
       │  ╱      ┊                      ┊ a command took effect
      0└──┴00:10────┴00:20──
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from ccplay.ui import plot_traces
from ccplay.ui.cells import UNICODE, Glyphs, Row, Run, Sheet, spread
from ccplay.ui.plot_traces import LineKind, Pen, Picture, Scale, Span, Stroke, short, time_ticks
from ccplay.ui.plot_traces import moment as clock
from ccplay.ui.themes import mixed

# --- one column of a plot's cells, into which traces draw their dots ------------------------------

_BRAILLE = 0x2800

_QUARTERS = " ▘▝▀▖▌▞▛▗▚▐▜▄▙▟█"
"""Characters of cells by their filled quarters: upper left 1, upper right 2, lower left 4, lower
right 8."""

_PAIRS = (0x03, 0x18, 0x44, 0xA0)
"""Bits of the two braille dots in each quarter, in the order of the bits of ``_QUARTERS``."""


class CellColumn:
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

    def shade(self, ink: str, band: Sequence[Span | None], x: int, column: CellColumn) -> None:
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
        column: CellColumn,
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


# --- the two axes of a plot, as rows of cells: values at the left, moments at the bottom ----------

GUTTER = 5
"""Number of columns to the left of a plot's area: labels of four characters, and the axis."""


def value_axis(
    picture: Picture, scale: Scale, line_of: Callable[[float], int], lines: int
) -> list[list[Run]]:
    """Return the value axis from top to bottom; ``line_of`` returns the line of a value."""
    glyphs, inks = picture.glyphs, picture.inks
    labels = {line_of(value): short(value) for value in scale.ticks()}
    ticked = {*labels, *map(line_of, scale.minor_ticks())}
    return [
        [
            (f"{labels.get(line, ''):>{GUTTER - 1}}", inks.muted),
            (glyphs.tee_left if line in ticked else glyphs.vertical, inks.axis),
        ]
        for line in range(lines)
    ]


def time_axis(picture: Picture, columns: int) -> list[Run]:
    """Return the time axis below ``columns`` columns, with the unit of the values in its corner."""
    glyphs, inks = picture.glyphs, picture.inks
    ticks = time_ticks(picture.left, picture.width, columns // 9)
    unit = picture.unit if len(picture.unit) < GUTTER else ""
    row: list[Run] = [(f"{unit:>{GUTTER - 1}}", inks.muted), (glyphs.bottom_left, inks.axis)]
    at = 0
    for moment in ticks:
        x, label = picture.column(moment + 1e-6, columns), clock(moment)
        if x < at or x + 1 + len(label) > columns:
            continue
        sign = glyphs.tee_up if x else glyphs.horizontal
        row += [(glyphs.horizontal * (x - at) + sign, inks.axis), (label, inks.muted)]
        at = x + 1 + len(label)
    return [*row, (glyphs.horizontal * (columns - at), inks.axis)]


# --- the growth of counters in each column, as bars on lines above the plot's values --------------


class Bars:
    """The bars of a plot, cached by column, so that a live frame computes one column."""

    def __init__(self) -> None:
        self._grown: list[dict[int, float]] = []
        self.lines: list[int] = []
        """Indices of the picture's counters that have a line, from the top: those that grew."""

    def clear(self) -> None:
        """Discard all columns."""
        self._grown.clear()
        self.lines.clear()

    def count(self, picture: Picture, columns: Sequence[int], slot: float) -> bool:
        """Count the growth in ``columns`` of ``slot`` seconds; return whether a line was added."""
        before = len(self.lines)
        while len(self._grown) < len(picture.counts):
            self._grown.append({})
        for trace, grown in zip(picture.counts, self._grown, strict=True):
            for x in columns:
                start = picture.left + slot * x
                if start <= picture.until:
                    grown[x] = trace.growth(start, min(start + slot, picture.until))
        self.lines = [at for at, grown in enumerate(self._grown) if any(grown.values())]
        return len(self.lines) != before

    def greatest(self, line: int) -> float:
        """Return the largest growth within a column of the counter on a line."""
        return max(self._grown[self.lines[line]].values())

    def label(self, picture: Picture, line: int, width: int) -> Run:
        """Return the growth that a full bar stands for, with the counter's sign."""
        pen = picture.counts[self.lines[line]].pen
        # Without the sign, the number would look like a label of the axis below.
        return f"{pen.glyph}{_brief(self.greatest(line))}".rjust(width), pen.ink

    def cell(self, picture: Picture, line: int, x: int) -> Run | None:
        """Return the bar of a column; None if the counter did not grow."""
        at = self.lines[line]
        if not (grown := self._grown[at].get(x)):
            return None
        bars = picture.glyphs.bars
        height = math.ceil(grown / self.greatest(line) * len(bars) - 1e-9)
        return bars[max(height, 1) - 1], f"bold {picture.counts[at].pen.ink}"


def _brief(count: float) -> str:
    """Return a count in at most three characters: ``87``, ``4k``, ``.3M``."""
    if count < 1e3:
        return f"{count:.0f}"
    if count < 99.5e3:
        return f"{count / 1e3:.0f}k"
    return f"{count / 1e6:.1f}M".removeprefix("0") if count < 950e3 else f"{count / 1e6:.0f}M"


# --- the canvas of a plot over time, which fills to the right and repaints only changed cells -----

_SHORT = 8
"""Height of the area divided by the height of a ghost's marks."""

_STEADY_S = 10.0
"""Seconds before the newest moment whose values fit on the axis even in a shorter window."""

_FAINT = 0.55
"""Share of the background in the inks of bands."""

_DIM = 0.4
"""Share of the background in the inks of background traces, which must remain recognizable."""


class _Inked(NamedTuple):
    """A stroke with its inks."""

    stroke: Stroke
    pen: Pen
    shade: str
    """Ink of the stroke's band."""

    @classmethod
    def of(cls, stroke: Stroke, ground: str) -> _Inked:
        pen = stroke.trace.pen
        if pen.dim:
            pen = replace(pen, ink=_faint(pen.ink, ground, _DIM))
        return cls(stroke, pen, _faint(pen.ink, ground))


class Canvas(Sheet):
    """The widget that draws one plot."""

    DEFAULT_CSS = "Canvas { height: 1fr; }"

    def __init__(self, *, id: str) -> None:  # noqa: A002
        super().__init__(id=id)
        self.scale = Scale()
        self.picture: Picture | None = None
        self._ticks: frozenset[int] = frozenset()
        self._marked: set[int] = set()
        self._marks_of: object = None
        """Marks, window and number of columns for which ``_marked`` was computed."""
        self._bars = Bars()
        self._brush = Brush(UNICODE, self.scale, 1, 1)
        self._long = False
        self._across = 2

    @property
    def columns(self) -> int:
        """Width in cells of the area in which traces are drawn."""
        return max(self.width - GUTTER - 1, 1)

    @property
    def lines(self) -> int:
        """Height in cells of the area in which traces are drawn, without title and time axis."""
        return max(self.height - 2, 1)

    def blank(self, width: int, height: int) -> None:
        """Discard everything drawn, except a fixed value axis."""
        super().blank(width, height)
        self.picture = None
        self._bars.clear()
        self.scale.forget()

    def set_axis(self, *, logarithmic: bool, held: bool) -> None:
        """Set whether the value axis is logarithmic, and whether it is fixed."""
        self.scale.held = held
        if logarithmic != self.scale.logarithmic:
            self.scale.logarithmic = logarithmic
            self.scale.forget()
            self.picture = None

    @property
    def axis_words(self) -> str:
        """Words in the title about the value axis: `` log`` if logarithmic, `` =100`` if fixed."""
        scale = self.scale
        held = f" ={short(scale.top)}" if scale.held and scale.top else ""
        return " log" * scale.logarithmic + held

    def title(self, left: Row, right: Row) -> None:
        """Show the title line."""
        ellipsis = self.picture.glyphs.ellipsis if self.picture else "…"
        self.show_row(0, spread(left, right, self.width - 2, ellipsis))

    def draw(self, picture: Picture) -> None:
        """Draw what changed since the last picture."""
        if self.height < 4 or self.width < GUTTER + 4:
            return
        before, self.picture = self.picture, picture
        if picture.least != self.scale.least:
            # The plot now shows another quantity.
            self.scale.least, self.scale.top = picture.least, 0.0
        self._across = Brush.dots_of(picture.glyphs)[0]
        self._long = plot_traces.is_long(picture.width / self.columns)
        fresh = before is None or not picture.same_page(before)
        if fresh:
            self._bars.clear()
        columns: Sequence[int] = range(self.columns)
        if before is not None and not fresh:
            columns = self._stale(before, picture)
        if self._long and self._bars.count(picture, columns, picture.width / self.columns):
            # An added line of bars leaves one line less for values.
            fresh, columns = True, range(self.columns)
        drawn = self._read(picture, columns)
        if not fresh and before is not None and self._outgrows(picture, drawn, before.until):
            fresh, columns = True, range(self.columns)
            drawn = self._read(picture, columns)
        if fresh:
            self._fit(picture, drawn)
        self._brush = Brush(picture.glyphs, self.scale, self.lines, self._high)
        if fresh:
            self._draw_axes(picture)
        self._paint(picture, columns, drawn)
        self._draw_bars(picture)

    def _outgrows(self, picture: Picture, drawn: Sequence[Stroke], start: float) -> bool:
        """Return whether values drawn since ``start`` exceed the axis."""
        return not self.scale.held and _peak(picture, drawn, start) > self.scale.top

    def _fit(self, picture: Picture, drawn: Sequence[Stroke]) -> None:
        start = picture.left
        if picture.cursor is None and not self._long:
            # In a short window the axis would follow each sawtooth up and down.
            start = min(start, picture.until - _STEADY_S)
        peak = _peak(picture, drawn, start)
        if picture.region is not None:
            peak = max(peak, picture.region[1])
        self.scale.fit(peak, self._high // 4 + 1)

    @property
    def _high(self) -> int:
        """Number of lines for values: all lines of the area except those of bars."""
        return max(self.lines - len(self._bars.lines), 1)

    def _read(self, picture: Picture, columns: Sequence[int]) -> list[Stroke]:
        if not columns:
            return []
        return plot_traces.read(picture, self.columns, self._across, columns[0], columns[-1] + 1)

    def _stale(self, before: Picture, picture: Picture) -> Sequence[int]:
        """Return the columns that differ between two pictures of one page."""
        stale = set(range(self._column(before.until - 1e-9), self._column(picture.until) + 1))
        if before.marks != picture.marks:
            stale.update(map(self._column, {*before.marks} ^ {*picture.marks}))
        for moved in ((before.cursor, picture.cursor), (before.pointer, picture.pointer)):
            if moved[0] != moved[1]:
                stale.update(self._column(t) for t in moved if t is not None)
        return sorted(x for x in stale if 0 <= x < self.columns)

    def _column(self, t: float) -> int:
        picture = self.picture
        if picture is None:
            return 0
        return picture.column(t, self.columns)

    # --- axes -------------------------------------------------------------------------------

    def _draw_axes(self, picture: Picture) -> None:
        rows = value_axis(picture, self.scale, self._brush.line_of, self.lines)
        for line, row in enumerate(rows):
            for x, cell in enumerate((c, ink) for text, ink in row for c in text):
                self.put(x, line + 1, cell)
        self.show_row(self.height - 1, time_axis(picture, self.columns))
        self._ticks = frozenset(map(self._brush.line_of, self.scale.ticks()))
        self.rewrite()

    # --- the area ---------------------------------------------------------------------------

    def _paint(self, picture: Picture, columns: Sequence[int], drawn: Sequence[Stroke]) -> None:
        if not columns:
            return
        across = self._across
        changed: dict[int, list[int]] = {}
        if self._marks_of != (seen := (picture.marks, picture.left, picture.width, self.columns)):
            self._marks_of = seen
            self._marked = {self._column(t) for t in picture.marks}
        above = len(self._bars.lines)
        inked = [_Inked.of(each, picture.inks.ground) for each in drawn]
        for x in columns:
            cells = self._cells_of(picture, x, (x - columns[0]) * across, inked)
            for line, cell in enumerate(cells[above:], above):
                if self.put(GUTTER + x, line + 1, cell):
                    changed.setdefault(line + 1, []).append(GUTTER + x)
        self.repaint(changed)

    def _draw_bars(self, picture: Picture) -> None:
        """Draw the growth of counters, and at the axis the value of the largest bar."""
        cursor = None if picture.cursor is None else self._column(picture.cursor)
        changed: dict[int, list[int]] = {}
        for line in range(len(self._bars.lines)):
            text, ink = self._bars.label(picture, line, GUTTER - 1)
            row: list[Run] = [(char, ink) for char in text]
            row.append((picture.glyphs.vertical, picture.inks.axis))
            for x in range(self.columns):
                cell = self._bars.cell(picture, line, x)
                row.append(cell or self._empty(picture, x, cursor) or (" ", ""))
            if xs := [x for x, cell in enumerate(row) if self.put(x, line + 1, cell)]:
                changed[line + 1] = xs
        self.repaint(changed)

    def _cells_of(self, picture: Picture, x: int, at: int, drawn: Sequence[_Inked]) -> list[Run]:
        """Return the cells of one column: dots in the colour of the uppermost trace.

        ``at`` is the index of the column's first slice among those drawn.
        """
        over = CellColumn(self.lines, bold=picture.stroke == "bold")
        under, behind = CellColumn(self.lines), CellColumn(self.lines)
        brush = self._brush
        head, here = self._column(picture.until - 1e-9), slice(at, at + self._across)
        for each in drawn:
            stroke, pen = each.stroke, each.pen
            pair = stroke.lines[here]
            if not any(pair):
                continue
            column = under if pen.under else over
            band = stroke.bands[here]
            if any(band):
                brush.shade(each.shade, band, x, behind)
            brush.draw(pen, pair, x, column, band)
            at_head = x == head and not pen.quiet
            if pen.glyph and (at_head or x % plot_traces.LANES == pen.lane or pen.style == "signs"):
                level = next(value for value in reversed(stroke.levels[here]) if value is not None)
                if level <= self.scale.top:
                    column.sign(
                        self._brush.line_of(level),
                        pen.glyph,
                        pen.ink if pen.quiet else f"bold {pen.ink}",
                    )
        cells = self._background(picture, x)
        behind.cover(cells)
        under.cover(cells)
        over.cover(cells)
        self._count(picture, x, cells)
        return cells

    def _background(self, picture: Picture, x: int) -> list[Run]:
        glyphs, inks = picture.glyphs, picture.inks
        lines = self.lines
        cursor = None if picture.cursor is None else self._column(picture.cursor)
        if (through := self._empty(picture, x, cursor)) is not None:
            if picture.pointer is not None and x == self._column(picture.pointer):
                return [(glyphs.mark, f"bold {inks.mark}"), *[through] * (lines - 1)]
            return [through] * lines
        cells: list[Run] = [
            (glyphs.dotted, inks.grid) if line in self._ticks else (" ", "")
            for line in range(lines)
        ]
        if picture.region is not None:
            low, high = map(self._brush.line_of, picture.region)
            for line in range(max(high, 0), min(low + 1, lines)):
                edge = line in (low, high) and low != high
                cells[line] = (glyphs.horizontal if edge else glyphs.shade, inks.mark)
        if any(self._column(t) == x for t in picture.ghost_marks):
            short = max(lines // _SHORT, 1)
            cells[-short:] = [(glyphs.dashed_vertical, inks.ghost)] * short
        top = (lines - len(picture.hint)) // 2
        for at, text in enumerate(picture.hint):
            start = (self.columns - len(text)) // 2
            if 0 <= x - start < len(text) and top + at < lines:
                cells[top + at] = (text[x - start], inks.text)
        return cells

    def _empty(self, picture: Picture, x: int, cursor: int | None) -> Run | None:
        """Return the cell of the cursor, pointer or mark that fills a column; None without one."""
        if x == cursor:
            return picture.glyphs.cursor, picture.inks.cursor
        if picture.pointer is not None and x == self._column(picture.pointer):
            return picture.glyphs.cursor, f"bold {picture.inks.mark}"
        if x in self._marked:
            return picture.glyphs.dashed_vertical, picture.inks.mark
        return None

    def _count(self, picture: Picture, x: int, cells: list[Run]) -> None:
        if self._long:
            return
        slot = picture.width / self.columns
        start = picture.left + slot * x
        if start > picture.until:
            return
        for line, count in enumerate(picture.counts):
            if line < len(cells) and count.growth(start, min(start + slot, picture.until)):
                cells[line] = (count.pen.glyph, f"bold {count.pen.ink}")


def _peak(picture: Picture, drawn: Sequence[Stroke], start: float) -> float:
    """Return the highest value since ``start`` that must fit on the axis."""
    right = picture.left + picture.width
    return max(
        (each.peak(start, right if each.trace.lasting else picture.until) for each in drawn),
        default=0.0,
    )


def _faint(ink: str, ground: str, share: float = _FAINT) -> str:
    """Return a faint version of an ink; without colours, the ink itself."""
    return mixed(ink, ground, share) if ink and ground else ink

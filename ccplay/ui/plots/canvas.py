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
from collections.abc import Sequence

from ccplay.ui.cells.sheet import Row, Run, Sheet, spread
from ccplay.ui.plots.dots import Column
from ccplay.ui.plots.picture import Picture
from ccplay.ui.plots.scale import Scale, short, time_ticks
from ccplay.ui.plots.scale import moment as clock
from ccplay.ui.plots.traces import Pen, Span

GUTTER = 5
"""Cells left of the plot's area: labels of four and the axis."""

_LANES = 12
"""Columns between two glyphs of a trace."""

_SHORT = 8
"""Factor by which marks of an earlier run are shorter."""

_BITS = ((0x40, 0x04, 0x02, 0x01), (0x80, 0x20, 0x10, 0x08))
"""Of a braille cell, by column, from the bottom up."""


class Canvas(Sheet):
    """The widget that one of the plots is drawn on."""

    DEFAULT_CSS = "Canvas { height: 1fr; }"

    def __init__(self, *, id: str) -> None:  # noqa: A002
        super().__init__(id=id)
        self.scale = Scale()
        self.picture: Picture | None = None
        self._ticks: frozenset[int] = frozenset()
        self._marked: set[int] = set()
        # How many dots a cell has across and up.
        self._across, self._up = 2, 4

    @property
    def columns(self) -> int:
        """How many cells wide the area is."""
        return max(self.width - GUTTER - 1, 1)

    @property
    def lines(self) -> int:
        """How many cells high the area is: all but the title and the time axis."""
        return max(self.height - 2, 1)

    def blank(self, width: int, height: int) -> None:
        """Discard everything drawn."""
        super().blank(width, height)
        self.picture = None
        self.scale = Scale()

    def title(self, left: Row, right: Row) -> None:
        """Show the title line."""
        self.show_row(0, spread(left, right, self.width - 2))

    def draw(self, picture: Picture) -> None:
        """Draw what changed since the last picture."""
        if self.height < 4 or self.width < GUTTER + 4:
            return
        before, self.picture = self.picture, picture
        if picture.least != self.scale.least:
            self.scale = Scale(picture.least)
        self._across, self._up = (2, 4) if picture.glyphs.plot_cells == "braille" else (1, 1)
        fresh = not picture.same_page(before)
        start = picture.left if fresh or before is None else before.until
        peak = _peak(picture, start)
        if fresh or peak > self.scale.top:
            fresh = self._fit(picture) or fresh
        if fresh or before is None:
            self._draw_axes(picture)
            columns: Sequence[int] = range(self.columns)
        else:
            columns = self._stale(before, picture)
        self._paint(picture, columns)

    def _fit(self, picture: Picture) -> bool:
        return self.scale.fit(_peak(picture, picture.left), self.lines // 4 + 1)

    def _stale(self, before: Picture, picture: Picture) -> Sequence[int]:
        """Return the columns that differ between two pictures of one page."""
        stale = set(range(self._column(before.until - 1e-9), self._column(picture.until) + 1))
        if before.marks != picture.marks:
            stale.update(map(self._column, {*before.marks} ^ {*picture.marks}))
        if before.cursor != picture.cursor:
            stale.update(self._column(t) for t in (before.cursor, picture.cursor) if t is not None)
        return sorted(x for x in stale if 0 <= x < self.columns)

    def _column(self, t: float) -> int:
        picture = self.picture
        if picture is None:
            return 0
        return math.floor((t - picture.left) / picture.width * self.columns)

    # --- axes -------------------------------------------------------------------------------

    def _draw_axes(self, picture: Picture) -> None:
        glyphs, inks = picture.glyphs, picture.inks
        labels = {self._line_of(value): short(value) for value in self.scale.ticks()}
        for line in range(self.lines):
            label = labels.get(line)
            sign = glyphs.vertical if label is None else glyphs.tee_left
            row: list[Run] = [(f"{label or '':>{GUTTER - 1}}", inks.muted), (sign, inks.axis)]
            for x, cell in enumerate((c, ink) for text, ink in row for c in text):
                self.put(x, line + 1, cell)
        self.show_row(self.height - 1, self._time_axis(picture))
        self._ticks = frozenset(labels)
        self.refresh()
        self._strips.clear()

    def _time_axis(self, picture: Picture) -> list[Run]:
        glyphs, inks = picture.glyphs, picture.inks
        ticks = time_ticks(picture.left, picture.width, self.columns // 9)
        row: list[Run] = [(" " * (GUTTER - 1), ""), (glyphs.bottom_left, inks.axis)]
        at = 0
        for moment in ticks:
            x, label = self._column(moment + 1e-6), clock(moment)
            if x < at or x + 1 + len(label) > self.columns:
                continue
            sign = glyphs.tee_up if x else glyphs.horizontal
            row += [
                (glyphs.horizontal * (x - at) + sign, inks.axis),
                (label, inks.muted),
            ]
            at = x + 1 + len(label)
        return [*row, (glyphs.horizontal * (self.columns - at), inks.axis)]

    def _line_of(self, value: float) -> int:
        """Return the line of the area, from the top, in which a value lies."""
        return self.lines - 1 - self._dot(value) // self._up

    def _dot(self, value: float) -> int:
        """Return how many dots above the bottom a value lies."""
        top, dots = self.scale.top, self.lines * self._up
        if value >= top:
            return dots - 1
        return int(value / top * (dots - 1) + 0.5)

    # --- the area ---------------------------------------------------------------------------

    def _paint(self, picture: Picture, columns: Sequence[int]) -> None:
        if not columns:
            return
        first, last = columns[0], columns[-1]
        across = self._across
        slot = picture.width / self.columns / across
        edges = [picture.left + slot * i for i in range(first * across, (last + 1) * across + 1)]
        # Columns ahead are empty: a value holds only until it is known to have changed.
        known = [edge for edge in edges if edge < picture.until]
        known += [picture.until + 1e-6] * (len(known) < len(edges))
        spans = [trace.spans(edges if trace.lasting else known) for trace in picture.traces]
        for each in spans:
            each.extend([None] * (len(edges) - 1 - len(each)))
        changed: dict[int, list[int]] = {}
        self._marked = {self._column(t) for t in picture.marks}
        for x in columns:
            at = (x - first) * across
            cells = self._cells_of(picture, x, [each[at : at + across] for each in spans])
            for line, cell in enumerate(cells):
                if self.put(GUTTER + x, line + 1, cell):
                    changed.setdefault(line + 1, []).append(GUTTER + x)
        self.repaint(changed)

    def _cells_of(self, picture: Picture, x: int, spans: list[list[Span | None]]) -> list[Run]:
        """Return the cells of one column: dots in the colour of the uppermost trace."""
        over, under = Column(self.lines), Column(self.lines)
        head = self._column(picture.until - 1e-9)
        for trace, pair in zip(picture.traces, spans, strict=True):
            if not any(pair):
                continue
            pen = trace.pen
            column = under if pen.under else over
            self._dots(pen, pair, x, column)
            at_head = x == head and not pen.quiet
            if pen.mark and (at_head or x % _LANES == pen.lane or pen.manner == "signs"):
                known = next(span for span in reversed(pair) if span is not None)
                column.sign(
                    self._line_of((known[0] + known[1]) / 2),
                    pen.mark,
                    pen.ink if pen.quiet else f"bold {pen.ink}",
                )
        cells = self._background(picture, x)
        under.cover(cells)
        over.cover(cells)
        self._count(picture, x, cells)
        return cells

    def _dots(self, pen: Pen, pair: list[Span | None], x: int, column: Column) -> None:
        across, up, lines = self._across, self._up, self.lines
        for dx, span in enumerate(pair):
            if span is None or span[0] > self.scale.top or pen.manner == "signs":
                continue
            low, high = self._dot(span[0]), self._dot(span[1])
            at = x * across + dx
            sparse = pen.manner in ("dotted", "sparse")
            if sparse and at % (2 if across == 2 else 3 if pen.manner == "dotted" else 1):
                continue
            dashed = pen.manner == "dashed"
            if dashed and (x - pen.lane) % 2:
                continue
            dots = range(low, high + 1)
            shade: Sequence[int] = ()
            if pen.manner == "area":
                gap = 4 if across == 2 else 1
                shade = [d for d in range(low) if (d + 2 * at) % gap == 0]
            elif pen.manner in ("dotted", "dots") and high - low > up:
                dots = range(low, high + 1, max(high - low, 1))
            for dot in (*shade, *dots):
                line = lines - 1 - dot // up
                if dashed and not column.has_room(line, pen, x):
                    continue
                if across == 2:
                    column.dot(line, _BITS[dx][dot % 4], pen.ink)
                else:
                    column.sign(line, pen.ascii, pen.ink)

    def _background(self, picture: Picture, x: int) -> list[Run]:
        glyphs, inks = picture.glyphs, picture.inks
        lines = self.lines
        if picture.cursor is not None and self._column(picture.cursor) == x:
            return [(glyphs.cursor, inks.cursor)] * lines
        if x in self._marked:
            return [(glyphs.dashed_vertical, inks.mark)] * lines
        cells: list[Run] = [
            (glyphs.dotted, inks.grid) if line in self._ticks else (" ", "")
            for line in range(lines)
        ]
        if any(self._column(t) == x for t in picture.ghost_marks):
            short = max(lines // _SHORT, 1)
            cells[-short:] = [(glyphs.dashed_vertical, inks.ghost)] * short
        top = (lines - len(picture.hint)) // 2
        for at, text in enumerate(picture.hint):
            start = (self.columns - len(text)) // 2
            if 0 <= x - start < len(text) and top + at < lines:
                cells[top + at] = (text[x - start], inks.text)
        return cells

    def _count(self, picture: Picture, x: int, cells: list[Run]) -> None:
        slot = picture.width / self.columns
        start = picture.left + slot * x
        if start > picture.until:
            return
        for line, count in enumerate(picture.counts):
            if line < len(cells) and count.grew(start, min(start + slot, picture.until)):
                cells[line] = (count.pen.mark, f"bold {count.pen.ink}")


def _peak(picture: Picture, start: float) -> float:
    """Return the greatest value that the axis must have room for, from ``start`` on."""
    right = picture.left + picture.width
    return max(
        (each.peak(start, right if each.lasting else picture.until) for each in picture.traces),
        default=0.0,
    )

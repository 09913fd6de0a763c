"""Writes the changed cells of sheets to the terminal directly, at a third of Textual's cost.

Textual's compositor renders the whole of every changed line of a widget, and crops it to the
changed cells. A sheet keeps its cells, which are written directly where no widget covers them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from rich.color import ColorType
from rich.console import COLOR_SYSTEMS, Console
from textual._compositor import Compositor, CompositorUpdate
from textual.filter import ANSIToTruecolor, LineFilter
from textual.geometry import Region
from textual.widget import Widget

from ccplay.ui.cells.diff_writer import Pen
from ccplay.ui.cells.sheet import Run, Sheet, Span

Piece: TypeAlias = tuple[int, int, Sheet, Sequence[Run]]
"""Cells of a sheet on the screen: line and column of the first cell, the sheet, and the cells."""


class _Stretch(NamedTuple):
    """Adjacent cells in one line of the screen that have one owner."""

    start: int
    end: int
    sheet: Sheet | None
    """Sheet that the cells belong to; None for cells of other widgets."""


class CellsUpdate(CompositorUpdate):
    """Changed cells with their places on the screen."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        """Hold ``pieces``, which are sorted from top to bottom and from left to right."""
        self._pieces = pieces

    def render_segments(self, console: Console) -> str:
        """Return the bytes for the terminal."""
        pen = Pen(COLOR_SYSTEMS[console.color_system or "truecolor"])
        for y, x, sheet, cells in self._pieces:
            pen.move(x, y)
            pen.write_cells(cells, sheet.base)
        return pen.finish()


class SheetCompositor(Compositor):
    """A compositor for a screen that consists of sheets."""

    def __init__(self) -> None:
        super().__init__()
        self._owners: list[list[_Stretch]] = []
        self._owned: object = None
        """Widgets and regions that ``_owners`` was computed from."""

    def pieces(self, changed: Mapping[Sheet, Iterable[Span]]) -> list[Piece] | None:
        """Return the changed cells that no widget covers.

        Return None if Textual does not draw a sheet's cells unchanged, or has not yet given the
        sheet its size.
        """
        visible = self.visible_widgets
        if self._owned is not visible:
            self._owned = visible
            self._owners = self._find_owners()
        found: list[Piece] = []
        for sheet, spans in changed.items():
            if sheet not in visible:
                continue
            region, _ = visible[sheet]
            if region.size != (sheet.width, sheet.height) or not is_plain(sheet):
                return None
            left, top = region.offset
            for y, x1, x2 in _joined(spans):
                if not 0 <= y + top < len(self._owners):
                    continue
                for start, end, owner in self._owners[y + top]:
                    first, last = max(start, x1 + left), min(end, x2 + left)
                    if owner is sheet and first < last:
                        cells = sheet.cells(y, first - left, last - left)
                        found.append((y + top, first, sheet, cells))
        found.sort(key=itemgetter(0, 1))
        return found

    def _find_owners(self) -> list[list[_Stretch]]:
        """Return the stretches of each line of the screen, from left to right."""
        width, height = self.size
        lines: list[list[Sheet | None]] = [[None] * width for _ in range(height)]
        # Widgets are ordered from front to back, so the frontmost one is written last.
        for widget, (region, clip) in reversed(self.visible_widgets.items()):
            seen = region.intersection(clip).intersection(Region(0, 0, width, height))
            owner = widget if isinstance(widget, Sheet) else None
            for line in lines[seen.y : seen.bottom]:
                line[seen.x : seen.right] = [owner] * seen.width
        return [_stretches(line) for line in lines]


def _joined(spans: Iterable[Span]) -> list[Span]:
    """Return sorted spans, with adjacent and overlapping ones joined."""
    found: list[Span] = []
    for y, start, end in sorted(spans):
        if found and found[-1][0] == y and start <= found[-1][2]:
            found[-1] = (y, found[-1][1], max(end, found[-1][2]))
        else:
            found.append((y, start, end))
    return found


def _stretches(line: Sequence[Sheet | None]) -> list[_Stretch]:
    found, start = [], 0
    for owner, cells in groupby(line):
        end = start + len(list(cells))
        found.append(_Stretch(start, end, owner))
        start = end
    return found


def is_plain(sheet: Sheet) -> bool:
    """Return whether Textual draws a sheet's cells unchanged."""
    base = sheet.base
    colours = (base.color, base.bgcolor)
    return (
        all(each is not None and each.type is ColorType.TRUECOLOR for each in colours)
        and all(map(_does_nothing, sheet.get_line_filters()))
        and _is_opaque(sheet)
    )


def _does_nothing(each: LineFilter) -> bool:
    """Return whether a filter leaves RGB colours unchanged."""
    return isinstance(each, ANSIToTruecolor)


def _is_opaque(widget: Widget) -> bool:
    return widget.opacity == 1.0 and not widget.styles.has_rule("tint")

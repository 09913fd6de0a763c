"""A widget of coloured cells that repaints only changed ones."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

Run: TypeAlias = tuple[str, str]
"""Text and its ink: ``#rrggbb``, ``bold #rrggbb``, or empty for the theme's foreground."""

Row: TypeAlias = Sequence[Run]

_BLANK: Run = (" ", "")
_JOIN = 4
"""Cells between changes that are written as one, because moving the cursor costs as much."""


class Sheet(Widget):
    """Rows of coloured text; ``show`` costs nothing for unchanged cells."""

    class Emptied(Message):
        """A sheet has a new size and is empty."""

    DEFAULT_CSS = "Sheet { height: 1; }"

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self.width = 0
        self.height = 0
        self._rows: list[tuple[Run, ...]] = []
        self._cells: list[list[Run]] = []
        self._strips: dict[int, Strip] = {}
        self._base: Style | None = None

    def notify_style_update(self) -> None:
        """Discard everything drawn in the colours of another theme."""
        super().notify_style_update()
        self._base = None
        self._strips.clear()

    def _find_base(self) -> Style:
        self._base = self.rich_style
        return self._base

    def show(self, rows: Sequence[Row]) -> None:
        """Put ``rows`` into the cells and clear the rest."""
        for y in range(self.height):
            self.show_row(y, rows[y] if y < len(rows) else ())

    def show_row(self, y: int, row: Row, x: int = 0) -> None:
        """Put ``row`` into line ``y`` from column ``x`` on; cells to the left stay."""
        if y >= len(self._cells):
            return
        if not x:
            runs = tuple(row)
            if self._rows[y] == runs:
                return
            self._rows[y] = runs
        width = len(self._cells[y])
        fresh = [(char, ink) for text, ink in row for char in text]
        if any(cell_len(text) != len(text) for text, _ in row):
            fresh = _narrow(row)
        fresh = fresh[: width - x]
        fresh.extend([_BLANK] * (width - x - len(fresh)))
        cells = self._cells[y]
        changed = [at for at, cell in enumerate(fresh, x) if cells[at] != cell]
        if changed:
            cells[x:] = fresh
            self._repaint(y, changed)

    def put(self, x: int, y: int, cell: Run) -> bool:
        """Set one cell without repainting it; return whether it changed. See ``repaint``."""
        cells = self._cells[y]
        if cells[x] == cell:
            return False
        cells[x] = cell
        return True

    def _repaint(self, y: int, changed: Sequence[int]) -> None:
        self._strips.pop(y, None)
        regions = []
        start = last = changed[0]
        for x in changed[1:]:
            if x - last > _JOIN:
                regions.append(Region(start, y, last + 1 - start, 1))
                start = x
            last = x
        regions.append(Region(start, y, last + 1 - start, 1))
        self.refresh(*regions)

    def on_resize(self, event: events.Resize) -> None:
        """Begin with blank cells."""
        self.blank(event.size.width, event.size.height)
        self.post_message(self.Emptied())

    def blank(self, width: int, height: int) -> None:
        """Forget all that was shown."""
        # Textual works ``size`` out anew at every call.
        self.width, self.height = width, height
        self._rows = [() for _ in range(height)]
        self._cells = [[_BLANK] * width for _ in range(height)]
        self._strips.clear()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Return one line."""
        if y >= len(self._cells):
            return Strip.blank(self.size.width, self._base or self._find_base())
        if (strip := self._strips.get(y)) is None:
            strip = self._strips[y] = self._strip(self._cells[y])
        return strip

    def _strip(self, cells: list[Run]) -> Strip:
        base = self._base or self._find_base()
        segments: list[Segment] = []
        text, ink = "", None
        for char, colour in cells:
            # A space looks alike in every ink that has no background.
            if colour != ink and (char != " " or " on " in colour or " on " in (ink or "")):
                if text:
                    segments.append(Segment(text, style_of(ink or "", base)))
                text, ink = "", colour
            text += char
        segments.append(Segment(text, style_of(ink or "", base)))
        return Strip(segments, len(cells))


@lru_cache(maxsize=1024)
def style_of(ink: str, base: Style) -> Style:
    """Return the style of an ink on a widget's own style."""
    return base + Style.parse(ink) if ink else base


def _narrow(row: Row) -> list[Run]:
    """Replace characters that are not one cell wide: cells are counted, not measured."""
    return [
        (char if cell_len(char) == 1 else "?", ink)
        for text, ink in row
        for char in text
        if cell_len(char)
    ]


def fit(text: str, width: int, ellipsis: str = "…") -> str:
    """Return ``text`` at exactly ``width`` cells."""
    if len(text) > width > 0:
        text = text[: width - 1] + ellipsis
    return set_cell_size(text, max(width, 0))


def first_fitting(width: int, *texts: str) -> str:
    """Return the first of ``texts`` that fits into ``width`` cells, the last if none does."""
    return next((each for each in texts if len(each) <= width), texts[-1])


def length(row: Row) -> int:
    """Return how many cells a row takes."""
    return sum(len(text) for text, _ in row)


def spread(left: Row, right: Row, width: int) -> list[Run]:
    """Return ``left`` and ``right`` at the two ends of ``width`` cells; ``right`` is kept whole."""
    room = width - length(right) - 1
    kept: list[Run] = []
    for text, ink in left:
        if room <= 0:
            break
        kept.append((text[:room], ink))
        room -= len(kept[-1][0])
    return [*kept, (" " * (width - length(kept) - length(right)), ""), *right]

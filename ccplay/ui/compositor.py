"""Writes the changed cells of sheets to the terminal directly, at a third of Textual's cost.

Textual's compositor renders the whole of every changed line of a widget, and crops it to the
changed cells. A sheet keeps its cells, which are written directly where no widget covers them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from rich.color import ColorSystem, ColorType
from rich.console import COLOR_SYSTEMS, Console
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import ANSIToTruecolor, LineFilter
from textual.geometry import Region
from textual.strip import Strip

from ccplay.ui.cells import Run, Sheet, Span, Surface, runs_of, style_of
from ccplay.ui.textual_private import ChopsUpdate, Compositor, CompositorUpdate

# --- writes only changed cells to the terminal, and only changed colours --------------------------
# For a partial update, Textual 8 writes each line from the left edge of the widget, and each run of
# one style with both of its colours and a reset. On a screen that is mostly plots, this module
# writes a tenth of those bytes, which makes a demonstration over SSH usable.

_UNLIKE, _FAINT = 0.35, 0.35
"""Smallest difference in brightness of an unlike background; largest of faint text to its own."""

_RESET = "\x1b[0m"
_ATTRIBUTES = (
    ("bold", "1"),
    ("dim", "2"),
    ("italic", "3"),
    ("underline", "4"),
    ("blink", "5"),
    ("reverse", "7"),
    ("strike", "9"),
)


class ThriftyUpdate(CompositorUpdate):
    """A partial update of the screen that writes only the cells within its spans."""

    def __init__(self, update: ChopsUpdate) -> None:
        self._update = update

    def render_segments(self, console: Console) -> str:
        """Return the bytes for the terminal."""
        pen = TerminalPen(COLOR_SYSTEMS[console.color_system or "truecolor"])
        for y, x1, x2 in self._update.spans:
            line, ends = self._update.chops[y], self._update.chop_ends[y]
            for end, (x, strip) in zip(ends, line.items(), strict=False):
                if strip is None or x >= x2 or end <= x1:
                    continue
                start = max(x, x1)
                pen.move(start, y)
                pen.write(strip.crop(start - x, min(end, x2) - x))
        return pen.finish()


class Colourless(LineFilter):
    """Replaces colours by attributes that every terminal has.

    Text on a background unlike the theme's is reversed, such as cursors; faint text is dim.
    """

    def __init__(self, dark: Callable[[], bool]) -> None:
        """Ask ``dark`` whether the background of the theme in use is dark."""
        super().__init__()
        self._dark = dark

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:  # noqa: ARG002
        """Return the segments without colours."""
        dark = self._dark()
        return [
            Segment(text, None if style is None else _plain(style, dark), control)
            for text, style, control in segments
        ]


@lru_cache(maxsize=1024)
def _plain(style: Style, dark: bool) -> Style:
    """Return the attributes that stand for a style's colours on a dark or a bright screen."""
    paper = 0.0 if dark else 1.0
    ink, behind = (
        default if colour is None or colour.is_default else Color.from_rich_color(colour).brightness
        for colour, default in ((style.color, 1.0 - paper), (style.bgcolor, paper))
    )
    reverse = bool(style.reverse) != (abs(behind - paper) > _UNLIKE)
    dim = bool(style.dim) or abs(ink - behind) < _FAINT
    return style.without_color + Style(reverse=reverse, dim=dim)


class TerminalPen:
    """Collects output, and tracks the terminal's cursor and colours."""

    def __init__(self, system: ColorSystem) -> None:
        self._system = system
        self._out: list[str] = []
        self._at: tuple[int, int] | None = None
        self._codes: tuple[str, str, str] = ("", "", "")

    def move(self, x: int, y: int) -> None:
        """Move the cursor."""
        if self._at == (x, y):
            return
        if self._at is not None and self._at[1] == y and x > self._at[0]:
            self._out.append(f"\x1b[{x - self._at[0]}C")
        else:
            self._out.append(f"\x1b[{y + 1};{x + 1}H")
        self._at = (x, y)

    def write(self, strip: Strip) -> None:
        """Write a strip; the cursor ends after it."""
        for text, style, control in strip:
            if control or not text:
                continue
            self._switch(("", "", "") if style is None else _codes(style, self._system))
            self._out.append(text)
        if self._at is not None:
            self._at = (self._at[0] + strip.cell_length, self._at[1])

    def write_cells(self, cells: Sequence[Run], base: Style) -> None:
        """Write cells with their inks on the style ``base``; the cursor ends after them."""
        for text, ink in runs_of(cells):
            self._switch(_codes_of(ink, base, self._system))
            self._out.append(text)
        if self._at is not None:
            self._at = (self._at[0] + len(cells), self._at[1])

    def _switch(self, codes: tuple[str, str, str]) -> None:
        before, self._codes = self._codes, codes
        if codes == before:
            return
        lost = any(old and not new for old, new in zip(before, codes, strict=True))
        if lost or (before[0] and codes[0] != before[0]):
            self._out.append(_RESET)
            before = ("", "", "")
        changed = [new for old, new in zip(before, codes, strict=True) if new and new != old]
        if changed:
            self._out.append(f"\x1b[{';'.join(changed)}m")

    def finish(self) -> str:
        """Return the collected output."""
        if any(self._codes):
            self._out.append(_RESET)
        return "".join(self._out)


@lru_cache(maxsize=1024)
def _codes(style: Style, system: ColorSystem) -> tuple[str, str, str]:
    """Return the SGR codes of a style: attributes, colour and background."""
    attributes = ";".join(code for name, code in _ATTRIBUTES if getattr(style, name))
    colour, background = style.color, style.bgcolor
    return (
        attributes,
        ";".join(colour.downgrade(system).get_ansi_codes(foreground=True)) if colour else "",
        ";".join(background.downgrade(system).get_ansi_codes(foreground=False))
        if background
        else "",
    )


@lru_cache(maxsize=1024)
def _codes_of(ink: str, base: Style, system: ColorSystem) -> tuple[str, str, str]:
    """Return the SGR codes of an ink drawn on a style."""
    return _codes(style_of(ink, base), system)


# --- writes the changed cells of sheets to the terminal directly, at a third of Textual's cost ----

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
        pen = TerminalPen(COLOR_SYSTEMS[console.color_system or "truecolor"])
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
        and all(isinstance(each, ANSIToTruecolor) for each in sheet.get_line_filters())
        and sheet.opacity == 1.0
        and not sheet.styles.has_rule("tint")
    )


# --- A screen that writes changed cells without waiting for Textual's messages --------------------


class Painter(Surface):
    """A screen of sheets that writes changed cells as soon as the sheets are filled.

    Through Textual's messages each sheet would be written later, and at several times the cost.
    """

    def __init__(self) -> None:
        super().__init__()
        self._sheet_compositor = SheetCompositor()
        self.use_compositor(self._sheet_compositor)
        self._changed: dict[Sheet, list[Span]] = {}

    def changed(self, sheet: Sheet, spans: Iterable[Span]) -> None:
        """Record cells of a sheet that must be written."""
        self._changed.setdefault(sheet, []).extend(spans)

    def paint(self) -> None:
        """Write the changed cells; if Textual has anything to draw itself, let it draw them too."""
        changed, self._changed = self._changed, {}
        if not changed:
            return
        pieces = None if self.textual_draws() else self._sheet_compositor.pieces(changed)
        if pieces is not None:
            self.write_update(CellsUpdate(pieces))
            return
        for sheet, spans in changed.items():
            self.add_regions(sheet, (Region(x, y, end - x, 1) for y, x, end in spans))
        self.draw_regions()

    @property
    def is_drawn(self) -> bool:
        """Whether the screen is worth a frame; empty sheets will soon be filled."""
        return not (self.emptied and self.is_current)

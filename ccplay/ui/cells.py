"""A widget of coloured cells that repaints only the changed ones, and the characters it draws."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Literal, TypeAlias

import msgspec
from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from ccplay.ui.textual_private import DirectScreen, forget_lines

# --- a widget of coloured cells that repaints only the changed ones -------------------------------

Run: TypeAlias = tuple[str, str]
"""Text and its ink: ``#rrggbb``, ``bold #rrggbb``, or empty for the theme's foreground."""

Row: TypeAlias = Sequence[Run]

Span: TypeAlias = tuple[int, int, int]
"""Cells of one line: the line, the first column, and the column after the last."""

_BLANK: Run = (" ", "")
_JOIN = 4
"""Largest distance in columns between changed cells of one span: a cursor move costs as much."""


class Surface(DirectScreen):
    """A screen that writes the cells of its sheets itself."""

    emptied = True
    """Whether a sheet is empty, at the start and after a resize; reset when sheets are filled."""

    def changed(self, sheet: Sheet, spans: Iterable[Span]) -> None:
        """Record cells of a sheet that must be written."""
        raise NotImplementedError


class Sheet(Widget):
    """Rows of coloured text, of which ``show`` writes only changed cells."""

    class Emptied(Message):
        """Posted when a sheet has a new size and is therefore empty."""

    DEFAULT_CSS = "Sheet { height: 1; }"

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self.width = 0
        self.height = 0
        self._rows: list[tuple[Run, ...]] = []
        self._cells: list[list[Run]] = []
        self._strips: dict[int, Strip] = {}
        self._base: Style | None = None
        self._surface: Screen[object] | None = None
        self._must_clear_cache = False

    def notify_style_update(self) -> None:
        """Discard everything drawn in the colours of another theme."""
        super().notify_style_update()
        self._base = None
        self._strips.clear()

    @property
    def base(self) -> Style:
        """The theme's colours, on which all inks are drawn."""
        if self._base is None:
            self._base = self.rich_style
        return self._base

    def cells(self, y: int, start: int, end: int) -> Sequence[Run]:
        """Return a line's cells from ``start`` to before ``end``; fewer if the line is shorter."""
        return self._cells[y][start:end] if y < len(self._cells) else ()

    def show(self, rows: Sequence[Row]) -> None:
        """Put ``rows`` into the cells and clear the rest."""
        lines = {y: self._changes(y, rows[y] if y < len(rows) else ()) for y in range(self.height)}
        self.repaint({y: changed for y, changed in lines.items() if changed})

    def show_row(self, y: int, row: Row) -> None:
        """Put ``row`` into line ``y`` and clear the rest of the line."""
        if changed := self._changes(y, row):
            self.repaint({y: changed})

    def _changes(self, y: int, row: Row) -> list[int]:
        """Put ``row`` into line ``y`` and return the columns that changed."""
        runs = tuple(row)
        if y >= len(self._cells) or self._rows[y] == runs:
            return []
        self._rows[y] = runs
        cells = self._cells[y]
        fresh = [(char, ink) for text, ink in runs for char in text]
        if any(not text.isascii() and cell_len(text) != len(text) for text, _ in runs):
            fresh = _narrow(runs)
        width = len(cells)
        if len(fresh) != width:
            fresh = [*fresh[:width], *[_BLANK] * (width - len(fresh))]
        changed = [x for x, cell in enumerate(fresh) if cells[x] != cell]
        if changed:
            self._cells[y] = fresh
        return changed

    def put(self, x: int, y: int, cell: Run) -> bool:
        """Set one cell, to be repainted later by ``repaint``; return whether it changed."""
        cells = self._cells[y]
        if cells[x] == cell:
            return False
        cells[x] = cell
        return True

    def repaint(self, changed: Mapping[int, Sequence[int]]) -> None:
        """Write the changed columns, in ascending order, of each line."""
        spans: list[Span] = []
        for y, columns in changed.items():
            self._strips.pop(y, None)
            start = last = columns[0]
            for x in columns[1:]:
                if x - last > _JOIN:
                    spans.append((y, start, last + 1))
                    start = x
                last = x
            spans.append((y, start, last + 1))
        if spans:
            self._write(spans)

    def rewrite(self) -> None:
        """Write all cells again."""
        self._strips.clear()
        self._write([(y, 0, self.width) for y in range(self.height)])

    def _write(self, spans: Sequence[Span]) -> None:
        if self._surface is None:
            self._surface = self.screen
        if isinstance(self._surface, Surface):
            self._must_clear_cache = True
            self._surface.changed(self, spans)
        else:
            self.refresh(*(Region(x, y, end - x, 1) for y, x, end in spans))

    def on_resize(self, event: events.Resize) -> None:
        """Adopt the new size, clear all cells, and request that they be filled."""
        self.blank(event.size.width, event.size.height)
        if isinstance(self.screen, Surface):
            self.screen.emptied = True
        self.post_message(self.Emptied())

    def blank(self, width: int, height: int) -> None:
        """Clear all cells and set the size in cells."""
        # Stored, because Textual computes ``size`` at every access.
        self.width, self.height = width, height
        self._rows = [() for _ in range(height)]
        self._cells = [[_BLANK] * width for _ in range(height)]
        self.rewrite()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return lines as strips, for a screen that Textual draws."""
        if self._must_clear_cache:
            # Textual's cache lacks what was written without Textual.
            self._must_clear_cache = False
            forget_lines(self)
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """Return one line as a strip."""
        if y >= len(self._cells):
            return Strip.blank(self.size.width, self.base)
        if (strip := self._strips.get(y)) is None:
            strip = self._strips[y] = self.strip(self._cells[y])
        return strip

    def strip(self, cells: Sequence[Run]) -> Strip:
        """Return cells of one line as a strip."""
        base = self.base
        segments = [Segment(text, style_of(ink, base)) for text, ink in runs_of(cells)]
        return Strip(segments, len(cells))


def runs_of(cells: Iterable[Run]) -> Iterator[Run]:
    """Yield cells as runs with one ink each."""
    text, ink = "", None
    for char, colour in cells:
        # A space looks the same in every ink without a background.
        if colour != ink and (char != " " or " on " in colour or " on " in (ink or "")):
            if text:
                yield text, ink or ""
            text, ink = "", colour
        text += char
    yield text, ink or ""


@lru_cache(maxsize=1024)
def style_of(ink: str, base: Style) -> Style:
    """Return the style of an ink drawn on a widget's own style."""
    return base + Style.parse(ink) if ink else base


def _narrow(row: Row) -> list[Run]:
    """Replace characters that are not one cell wide, because layout counts characters."""
    return [
        (char if cell_len(char) == 1 else "?", ink)
        for text, ink in row
        for char in text
        if cell_len(char)
    ]


def fit(text: str, width: int, ellipsis: str = "…") -> str:
    """Return ``text`` cut or padded to ``width`` cells."""
    if len(text) > width > 0:
        text = text[: width - 1] + ellipsis
    return set_cell_size(text, max(width, 0))


@lru_cache(maxsize=256)
def abbreviated(names: frozenset[str], width: int, ellipsis: str = "…") -> Mapping[str, str]:
    """Return ``names``, each cut to ``width`` cells so that no two become the same text.

    A name is cut at its end; names that begin alike are cut in the middle, before they differ.
    """
    short: dict[str, str] = {}
    pending = sorted(names)
    for tail in (0, *dict.fromkeys([max(width // 2 - 1, 0), *range(1, width - 1)])):
        head = max(width - 1 - tail, 0)
        cut = {each: _cut(each, head, tail, width, ellipsis) for each in pending}
        taken = Counter([*cut.values(), *short.values()])
        short |= {each: text for each, text in cut.items() if taken[text] == 1}
        pending = [each for each in pending if each not in short]
    return short | {each: _cut(each, width - 1, 0, width, ellipsis) for each in pending}


def _cut(name: str, head: int, tail: int, width: int, ellipsis: str) -> str:
    if len(name) <= width:
        return name
    return f"{name[:head]}{ellipsis}{name[len(name) - tail :]}"


def first_fitting(width: int, *texts: str) -> str:
    """Return the first of ``texts`` that fits into ``width`` cells; the last if none does."""
    return next((each for each in texts if len(each) <= width), texts[-1])


def length(row: Row) -> int:
    """Return the number of cells in a row."""
    return sum(len(text) for text, _ in row)


def whole_items(items: Iterable[str], between: str, width: int) -> str:
    """Return the leading ``items`` that fit uncut into ``width`` cells, joined by ``between``."""
    text = ""
    for item in items:
        longer = f"{text}{between}{item}" if text else item
        if len(longer) > width:
            break
        text = longer
    return text


def spread(left: Row, right: Row, width: int, ellipsis: str = "…") -> list[Run]:
    """Return ``left`` and ``right`` aligned to the two ends of ``width`` cells.

    ``right`` is kept whole; if ``left`` must be cut, it ends in an ellipsis.
    """
    room = width - length(right) - 1
    kept: list[Run] = []
    for text, ink in left:
        if room <= 0:
            break
        kept.append((text if len(text) <= room else fit(text.rstrip(), room, ellipsis), ink))
        room -= len(kept[-1][0])
    return [*kept, (" " * (width - length(kept) - length(right)), ""), *right]


# --- the characters of the screen, in Unicode or plain ASCII --------------------------------------


class Glyphs(msgspec.Struct, frozen=True):
    """One set of characters."""

    name: str
    horizontal: str
    vertical: str
    top_left: str
    top_right: str
    bottom_left: str
    bottom_right: str
    tee_right: str
    """Vertical line with a branch to the right."""
    tee_left: str
    tee_down: str
    tee_up: str
    cross: str
    bottleneck: str
    """Horizontal line, for the link under study."""
    dotted: str
    """Dotted horizontal line, for ssthresh and limits."""
    dashed_vertical: str
    """Dashed vertical line, for marks through the plots."""
    cursor: str
    """Vertical line, for the cursor through the plots."""
    arrow_right: str
    arrow_left: str
    queue_steps: tuple[str, ...]
    """Cells of the queue bar, from empty to full."""
    flow_glyphs: tuple[str, ...]
    """Glyphs of flows, which distinguish flows without colours."""
    ghost_glyphs: tuple[str, ...]
    """Glyphs of flows in an earlier run, smaller than those of this run's flows if possible."""
    ghost: str
    """Glyph of an earlier run in the legend, and in plots that can't have braille dots."""
    answer: str
    """Glyph of a ping's reply in an earlier run."""
    bars: tuple[str, ...]
    """Bars of increasing height, the last as high as a cell."""
    ribbon: tuple[str, ...]
    """Glyphs of the states Open, Disorder, CWR, Recovery and Loss in the ribbon."""
    reduced: tuple[str, ...]
    """Glyphs for four increasing shares of time outside Open, most of it in CWR."""
    timeout: str
    """Glyph for time partly spent in Loss."""
    live: str
    frozen: str
    replay: str
    drop: str
    mark: str
    traced: str
    """Glyph of a traced flow, after the flow's own glyph."""
    chosen: str
    """Glyph at the selected line of a list."""
    available: str
    missing: str
    shade: str
    """Glyph that fills a marked region."""
    ellipsis: str
    separator: str
    plot_cells: Literal["braille", "ascii"]
    border: Literal["round", "ascii"]
    """Border type, named as in Textual's styles."""

    def flow_glyph(self, number: int) -> str:
        """Return the glyph of the flow with index ``number``, from 0; glyphs repeat."""
        return self.flow_glyphs[number % len(self.flow_glyphs)]

    def ghost_glyph(self, number: int) -> str:
        """Return the glyph of a flow in an earlier run, by its index from 0; glyphs repeat."""
        return self.ghost_glyphs[number % len(self.ghost_glyphs)]

    def translate(self, text: str) -> str:
        """Return ``text`` with characters that this set lacks replaced."""
        return text if self.name == "unicode" else text.translate(_TO_ASCII)


UNICODE = Glyphs(
    name="unicode",
    horizontal="─",
    vertical="│",
    top_left="┌",
    top_right="┐",
    bottom_left="└",
    bottom_right="┘",
    tee_right="├",
    tee_left="┤",
    tee_down="┬",
    tee_up="┴",
    cross="┼",
    bottleneck="═",
    dotted="┄",
    dashed_vertical="┊",
    cursor="│",
    arrow_right="▶",
    arrow_left="◀",
    queue_steps=(" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"),
    flow_glyphs=("●", "■", "▲", "◆", "○", "□", "△", "◇", "★", "☆"),
    ghost_glyphs=("•", "▪", "▴", "⋄", "◦", "▫", "▵", "◊", "⋆", "∗"),
    ghost="⠂",
    answer="·",
    bars=("▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"),
    ribbon=("▁", "▂", "▄", "▆", "█"),
    reduced=("░", "▒", "▒", "▓"),
    timeout="!",
    live="●",
    frozen="■",
    replay="▶",
    drop="×",
    mark="▾",
    traced="∿",
    chosen="▸",
    available="✓",
    missing="✗",
    shade="░",
    ellipsis="…",
    separator="·",
    plot_cells="braille",
    border="round",
)

ASCII = Glyphs(
    name="ascii",
    horizontal="-",
    vertical="|",
    top_left="+",
    top_right="+",
    bottom_left="+",
    bottom_right="+",
    tee_right="+",
    tee_left="+",
    tee_down="+",
    tee_up="+",
    cross="+",
    bottleneck="=",
    dotted=".",
    dashed_vertical=":",
    cursor="|",
    arrow_right=">",
    arrow_left="<",
    queue_steps=(" ", ".", ":", "=", "#"),
    flow_glyphs=("o", "x", "+", "*", "@", "%", "&", "$", "w", "m"),
    ghost_glyphs=("o", "x", "+", "*", "@", "%", "&", "$", "w", "m"),
    ghost=",",
    answer="`",
    bars=(".", ":", "=", "#"),
    ribbon=("_", ".", "-", "=", "#"),
    reduced=("c", "c", "C", "C"),
    timeout="!",
    live="*",
    frozen="#",
    replay=">",
    drop="x",
    mark="v",
    traced="~",
    chosen=">",
    available="+",
    missing="-",
    shade=":",
    ellipsis="~",
    separator="-",
    plot_cells="ascii",
    border="ascii",
)

_TO_ASCII = str.maketrans(
    {
        "→": "->",
        "←": "<",
        "↔": "<->",
        "⌫": "bksp",
        "↑": "^",
        "↓": "v",
        "…": "...",
        "·": "-",
        "±": "+-",
        "µ": "u",
        "×": "x",
        "–": "-",
        "—": "-",
        "≥": ">=",
        "≤": "<=",
        "⏎": "enter",
        "▲": "^",
        "▼": "v",
        "▾": "v",
        "▸": ">",
        "●": "*",
        "│": "|",
        "─": "-",
    }
)

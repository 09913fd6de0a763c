"""The screen as rows of characters, grouped into runs of one face."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby
from typing import Any

import msgspec
from rich.cells import cell_len
from rich.color import Color
from rich.style import Style
from textual._context import visible_screen_stack
from textual.app import App
from textual.strip import Strip

from ccplay.ui.appearance import appearance

_DIMMED = 0.5
"""Share of the background in the colour of dim text; terminals differ."""


class Face(msgspec.Struct, frozen=True):
    """Appearance of characters. Colours are ``#rrggbb``."""

    ink: str
    paper: str
    """Colour of the background."""
    bold: bool = False
    italic: bool = False
    underline: bool = False
    strike: bool = False


class Span(msgspec.Struct, frozen=True):
    """Adjacent characters of one face in one row."""

    x: int
    """Column of the first cell, from 0."""
    cells: tuple[str, ...]
    """Texts of the cells; empty for the second cell of a wide character."""
    face: Face


class Frame(msgspec.Struct, frozen=True):
    """The whole screen at one moment."""

    width: int
    """Number of columns."""
    height: int
    """Number of rows."""
    paper: str
    """Background of the theme, ``#rrggbb``."""
    rows: tuple[tuple[Span, ...], ...]
    """Spans of each row from left to right, which cover it completely."""

    @property
    def lines(self) -> list[str]:
        """The characters without colours, one text per row."""
        return ["".join(cell for span in row for cell in span.cells) for row in self.rows]


def frame_of(app: App[Any]) -> Frame:
    """Return the screen of ``app``, including dialogs and notifications."""
    # Dialogs are translucent: the compositor reads the screens below from this variable.
    token = visible_screen_stack.set(app._background_screens)
    try:
        strips = app.screen._compositor.render_strips()
    finally:
        visible_screen_stack.reset(token)
    theme = appearance(app).look.textual_theme
    base = Face(theme.foreground or "#ffffff", theme.background or "#000000")
    width, height = app.size
    rows = tuple(tuple(_spans(strip, width, base)) for strip in strips[:height])
    return Frame(width, height, base.paper, rows)


def _spans(strip: Strip, width: int, base: Face) -> Iterator[Span]:
    """Yield the spans of one row, cut or padded to ``width`` cells."""
    cells = [
        (cell, face)
        for text, style, control in strip.adjust_cell_length(width)
        if not control
        for face in (_face(style or Style.null(), base),)
        for cell in _cells(text)
    ]
    x = 0
    for face, group in groupby(cells, key=lambda cell: cell[1]):
        run = tuple(cell for cell, _ in group)
        yield Span(x, run, face)
        x += len(run)


def _cells(text: str) -> Iterator[str]:
    for char in text:
        if taken := cell_len(char):
            yield char
            yield from [""] * (taken - 1)


@lru_cache(maxsize=1024)
def _face(style: Style, base: Face) -> Face:
    ink, paper = _hex(style.color, base.ink), _hex(style.bgcolor, base.paper)
    if style.reverse:
        ink, paper = paper, ink
    if style.dim:
        ink = _mixed(ink, paper, _DIMMED)
    return Face(
        ink,
        paper,
        bold=bool(style.bold),
        italic=bool(style.italic),
        underline=bool(style.underline),
        strike=bool(style.strike),
    )


def _hex(colour: Color | None, default: str) -> str:
    return default if colour is None or colour.is_default else colour.get_truecolor().hex


def _mixed(one: str, other: str, share: float) -> str:
    """Return a colour ``share`` of the way from ``one`` to ``other``."""
    pairs = ((int(one[at : at + 2], 16), int(other[at : at + 2], 16)) for at in (1, 3, 5))
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)

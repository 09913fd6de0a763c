"""The screen's cells as shapes: fonts lack braille and blocks, or leave gaps.

A cell is ``WIDTH`` by ``HEIGHT`` units, with 0, 0 at its top left.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby
from typing import Any, TypeAlias

import msgspec
from rich.cells import cell_len
from rich.color import Color
from rich.style import Style
from textual._context import visible_screen_stack
from textual.app import App
from textual.strip import Strip

from ccplay.ui.themes import appearance

# --- the screen as rows of characters, grouped into runs of one face ------------------------------

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


# --- braille dots, blocks, box lines and glyphs as shapes: fonts lack them, or leave gaps ---------

WIDTH, HEIGHT = 10.0, 20.0
"""Width and height of a cell in units."""

Point: TypeAlias = tuple[float, float]


class Dot(msgspec.Struct, frozen=True):
    """A filled circle."""

    centre: Point
    radius: float


class Area(msgspec.Struct, frozen=True):
    """A filled polygon."""

    corners: tuple[Point, ...]
    opacity: float = 1.0
    """Opacity, above 0 and at most 1."""


class Line(msgspec.Struct, frozen=True):
    """A line through points, with square ends that do not extend beyond them."""

    points: tuple[Point, ...]
    width: float


Shape: TypeAlias = Dot | Area | Line

_LIGHT, _HEAVY = 1.5, 3.0
"""Widths of light and heavy lines in units."""

_BRAILLE = 0x2800
_DOT = 1.5
"""Radius of a braille dot in units; dots are 5 units apart, also between cells."""

_PLACES = tuple((x, y) for x, ys in ((2.5, (2.5, 7.5, 12.5)), (7.5, (2.5, 7.5, 12.5))) for y in ys)
_DOTS = (*_PLACES, (2.5, 17.5), (7.5, 17.5))
"""Places of the dots in units, in the order of the bits of a braille pattern's code point."""

_MIDDLE = (WIDTH / 2, HEIGHT / 2)

_ARMS = {
    "─╴╶━╸╺": "lr l r LR L R",
    "│╵╷┃╹╻": "ud u d UD U D",
    "┌┐└┘┏┓┗┛": "rd ld ru lu RD LD RU LU",
    "├┤┬┴┼": "udr udl lrd lru lrud",
    "┣┫┳┻╋": "UDR UDL LRD LRU LRUD",
}
"""Arms of box lines from the middle of the cell: left, right, up, down; capitals are heavy."""

_DASHES = {"┄┅": 3, "┈┉": 4, "╌╍": 2, "┆┇": -3, "┊┋": -4, "╎╏": -2}
"""Number of dashes in a cell, negative if vertical; the second of each pair is heavy."""

_ROUND = {"╭": (1, 1), "╮": (-1, 1), "╰": (1, -1), "╯": (-1, -1)}
"""Directions of a rounded corner's arms: 1 is right or down, -1 is left or up."""

_QUADRANTS = {
    "▖": "c", "▗": "d", "▘": "a", "▙": "acd", "▚": "ad",
    "▛": "abc", "▜": "abd", "▝": "b", "▞": "bc", "▟": "bcd",
}  # fmt: skip
"""Quarters of a cell in a block element: a and b are above, c and d below."""

_ROUNDS = {"●": 3.9, "•": 2.3, "·": 1.0}
"""Radii of discs in units."""

_RINGS = {"○": 3.5, "◦": 1.9}

_SQUARES = {"■": 3.6, "▪": 2.0, "□": 3.3, "▫": 1.8}
"""Half sides of squares in units."""

_DIAMONDS = {"◆": (4.6, 4.6), "◇": (4.2, 4.2), "⋄": (2.6, 2.6), "◊": (2.6, 4.2)}
"""Half widths and heights of diamonds in units."""

_TRIANGLES = {
    "▲": (4.4, "u"), "△": (4.1, "u"), "▴": (2.6, "u"), "▵": (2.5, "u"),
    "▼": (4.4, "d"), "▽": (4.1, "d"), "▾": (2.6, "d"),
    "▶": (4.4, "r"), "▸": (2.6, "r"), "◀": (4.4, "l"), "◂": (2.6, "l"),
}  # fmt: skip
"""Half sizes of triangles in units, and their directions: up, down, left, right."""

_STARS = {"★": 4.9, "☆": 4.5, "⋆": 3.0}
"""Outer radii of stars in units."""

_HOLLOW = frozenset("□▫◇◊△▵▽☆")


@lru_cache(maxsize=1024)
def shapes_of(char: str) -> tuple[Shape, ...]:
    """Return the shapes of a character; none if a font draws it."""
    code = ord(char) if len(char) == 1 else 0
    if _BRAILLE <= code < _BRAILLE + 0x100:
        bits = code - _BRAILLE
        return tuple(Dot(place, _DOT) for bit, place in enumerate(_DOTS) if bits >> bit & 1)
    return _TABLE.get(char, ())


def is_drawn(char: str) -> bool:
    """Return whether a character is drawn by shapes, even by none, as an empty braille pattern."""
    return bool(shapes_of(char)) or char == chr(_BRAILLE)


def _box(left: float, top: float, right: float, bottom: float, opacity: float = 1.0) -> Area:
    return Area(((left, top), (right, top), (right, bottom), (left, bottom)), opacity)


def _blocks() -> dict[str, tuple[Shape, ...]]:
    """Return the block elements, U+2580 to U+259F."""
    found: dict[str, tuple[Shape, ...]] = {
        "▀": (_box(0, 0, WIDTH, HEIGHT / 2),),
        "▐": (_box(WIDTH / 2, 0, WIDTH, HEIGHT),),
        "▔": (_box(0, 0, WIDTH, HEIGHT / 8),),
        "▕": (_box(WIDTH * 7 / 8, 0, WIDTH, HEIGHT),),
    }
    for eighths in range(1, 9):
        found[chr(0x2580 + eighths)] = (_box(0, HEIGHT * (8 - eighths) / 8, WIDTH, HEIGHT),)
        found[chr(0x2590 - eighths)] = (_box(0, 0, WIDTH * eighths / 8, HEIGHT),)
    for char, opacity in zip("░▒▓", (0.25, 0.5, 0.75), strict=True):
        found[char] = (_box(0, 0, WIDTH, HEIGHT, opacity),)
    x, y = _MIDDLE
    quarters = {"a": (0, 0), "b": (x, 0), "c": (0, y), "d": (x, y)}
    for char, names in _QUADRANTS.items():
        corners = (quarters[name] for name in names)
        found[char] = tuple(_box(left, top, left + x, top + y) for left, top in corners)
    return found


def _lines() -> dict[str, tuple[Shape, ...]]:
    """Return the box drawing characters with lines of one width."""
    x, y = _MIDDLE
    ends = {"l": (0.0, y), "r": (WIDTH, y), "u": (x, 0.0), "d": (x, HEIGHT)}
    found: dict[str, tuple[Shape, ...]] = {}
    for chars, all_arms in _ARMS.items():
        for char, arms in zip(chars, all_arms.split(), strict=True):
            width = _HEAVY if arms.isupper() else _LIGHT
            found[char] = _arms([ends[arm] for arm in arms.lower()], width)
    for pair, dashes in _DASHES.items():
        for char, width in zip(pair, (_LIGHT, _HEAVY), strict=True):
            found[char] = tuple(_dashes(dashes, width))
    for char, (right, down) in _ROUND.items():
        bend = [
            (x + right * x * (1 - math.cos(turn)), y + down * x * (1 - math.sin(turn)))
            for turn in (math.pi / 2 * step / 8 for step in range(9))
        ]
        found[char] = (Line(((x, y + down * y), *bend, (x + right * x, y)), _LIGHT),)
    for char, apart in (("═", (0, 2)), ("║", (2, 0))):
        aside, below = apart
        line = "lr" if below else "ud"
        (x1, y1), (x2, y2) = (ends[arm] for arm in line)
        found[char] = tuple(
            Line(((x1 + s * aside, y1 + s * below), (x2 + s * aside, y2 + s * below)), _LIGHT)
            for s in (-1, 1)
        )
    rising, falling = ((0.0, HEIGHT), (WIDTH, 0.0)), ((0.0, 0.0), (WIDTH, HEIGHT))
    for char, diagonals in (("╱", (rising,)), ("╲", (falling,)), ("╳", (rising, falling))):
        found[char] = tuple(Line(each, _LIGHT) for each in diagonals)
    return found


def _arms(ends: list[Point], width: float) -> tuple[Shape, ...]:
    """Return arms as lines; the first two are joined, so that their corner has no gap."""
    x, y = _MIDDLE
    if len(ends) == 1:
        return (Line((ends[0], _MIDDLE), width),)
    first, second, *rest = ends
    straight = first[0] == second[0] or first[1] == second[1]
    joined = (first, second) if straight else (first, _MIDDLE, second)
    return (Line(joined, width), *(Line((each, (x, y)), width) for each in rest))


def _dashes(count: int, width: float) -> list[Line]:
    x, y = _MIDDLE
    across = count > 0
    step = (WIDTH if across else HEIGHT) / abs(count)
    parts = ((step * (at + 0.2), step * (at + 0.8)) for at in range(abs(count)))
    return [Line(((a, y), (b, y)) if across else ((x, a), (x, b)), width) for a, b in parts]


def _glyphs() -> dict[str, tuple[Shape, ...]]:
    """Return the glyphs of flows and the signs shown beside them."""
    x, y = _MIDDLE
    outlines: dict[str, list[Point]] = {}
    for char, half in _SQUARES.items():
        outlines[char] = [(-half, -half), (half, -half), (half, half), (-half, half)]
    for char, (wide, high) in _DIAMONDS.items():
        outlines[char] = [(0, -high), (wide, 0), (0, high), (-wide, 0)]
    for char, (half, way) in _TRIANGLES.items():
        up = [(0.0, -0.9 * half), (half, 0.9 * half), (-half, 0.9 * half)]
        turned = {"u": (1, 0), "d": (-1, 0), "r": (0, 1), "l": (0, -1)}[way]
        cos, sin = turned
        outlines[char] = [(a * cos - b * sin, a * sin + b * cos) for a, b in up]
    for char, radius in _STARS.items():
        outlines[char] = [
            (r * math.sin(math.pi * at / 5), -r * math.cos(math.pi * at / 5))
            for at in range(10)
            for r in (radius if at % 2 == 0 else radius * 0.45,)
        ]
    found: dict[str, tuple[Shape, ...]] = {}
    for char, outline in outlines.items():
        corners = tuple((x + a, y + b) for a, b in outline)
        # An outline that passes its first side twice has a joint at each corner.
        closed = Line((*corners, *corners[:2]), 1.2)
        found[char] = (closed if char in _HOLLOW else Area(corners),)
    for char, radius in _ROUNDS.items():
        found[char] = (Dot(_MIDDLE, radius),)
    for char, radius in _RINGS.items():
        turns = [math.tau * at / 24 for at in range(26)]
        ring = tuple((x + radius * math.cos(t), y + radius * math.sin(t)) for t in turns)
        found[char] = (Line(ring, 1.2),)
    wave = [(a, y - 2.5 * math.sin(math.tau * a / WIDTH)) for a in map(float, range(1, 10))]
    found["∿"] = (Line(tuple(wave), 1.2),)
    return found


_TABLE = {**_blocks(), **_lines(), **_glyphs()}

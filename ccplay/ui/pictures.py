"""Pictures of the screen, SVG and PNG: cells as shapes, because fonts lack some or leave gaps.

A cell is ``WIDTH`` by ``HEIGHT`` units, with 0, 0 at its top left.
"""

from __future__ import annotations

import io
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from html import escape
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from rich.cells import cell_len
from rich.color import Color
from rich.style import Style
from textual.app import App
from textual.strip import Strip

from ccplay.errors import UsageError
from ccplay.files import writing
from ccplay.ui.help import OrderlyApp
from ccplay.ui.textual_private import screen_lines
from ccplay.ui.themes import mixed
from ccplay.visible import printable

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont

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


class ScreenFrame(msgspec.Struct, frozen=True):
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


def frame_of(app: App[Any]) -> ScreenFrame:
    """Return the screen of ``app``, including dialogs and notifications."""
    assert isinstance(app, OrderlyApp)  # noqa: S101 - no other app is drawn
    theme = app.appearance.look.textual_theme
    base = Face(theme.foreground or "#ffffff", theme.background or "#000000")
    width, height = app.size
    rows = tuple(tuple(_spans(strip, width, base)) for strip in screen_lines(app)[:height])
    return ScreenFrame(width, height, base.paper, rows)


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
        ink = mixed(ink, paper, _DIMMED)
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


class DrawnLine(msgspec.Struct, frozen=True):
    """A line through points, with square ends that do not extend beyond them."""

    points: tuple[Point, ...]
    width: float


Shape: TypeAlias = Dot | Area | DrawnLine

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
        found[char] = (DrawnLine(((x, y + down * y), *bend, (x + right * x, y)), _LIGHT),)
    for char, apart in (("═", (0, 2)), ("║", (2, 0))):
        aside, below = apart
        line = "lr" if below else "ud"
        (x1, y1), (x2, y2) = (ends[arm] for arm in line)
        found[char] = tuple(
            DrawnLine(((x1 + s * aside, y1 + s * below), (x2 + s * aside, y2 + s * below)), _LIGHT)
            for s in (-1, 1)
        )
    rising, falling = ((0.0, HEIGHT), (WIDTH, 0.0)), ((0.0, 0.0), (WIDTH, HEIGHT))
    for char, diagonals in (("╱", (rising,)), ("╲", (falling,)), ("╳", (rising, falling))):
        found[char] = tuple(DrawnLine(each, _LIGHT) for each in diagonals)
    return found


def _arms(ends: list[Point], width: float) -> tuple[Shape, ...]:
    """Return arms as lines; the first two are joined, so that their corner has no gap."""
    x, y = _MIDDLE
    if len(ends) == 1:
        return (DrawnLine((ends[0], _MIDDLE), width),)
    first, second, *rest = ends
    straight = first[0] == second[0] or first[1] == second[1]
    joined = (first, second) if straight else (first, _MIDDLE, second)
    return (DrawnLine(joined, width), *(DrawnLine((each, (x, y)), width) for each in rest))


def _dashes(count: int, width: float) -> list[DrawnLine]:
    x, y = _MIDDLE
    across = count > 0
    step = (WIDTH if across else HEIGHT) / abs(count)
    parts = ((step * (at + 0.2), step * (at + 0.8)) for at in range(abs(count)))
    return [DrawnLine(((a, y), (b, y)) if across else ((x, a), (x, b)), width) for a, b in parts]


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
        closed = DrawnLine((*corners, *corners[:2]), 1.2)
        found[char] = (closed if char in _HOLLOW else Area(corners),)
    for char, radius in _ROUNDS.items():
        found[char] = (Dot(_MIDDLE, radius),)
    for char, radius in _RINGS.items():
        turns = [math.tau * at / 24 for at in range(26)]
        ring = tuple((x + radius * math.cos(t), y + radius * math.sin(t)) for t in turns)
        found[char] = (DrawnLine(ring, 1.2),)
    wave = [(a, y - 2.5 * math.sin(math.tau * a / WIDTH)) for a in map(float, range(1, 10))]
    found["∿"] = (DrawnLine(tuple(wave), 1.2),)
    return found


_TABLE = {**_blocks(), **_lines(), **_glyphs()}


# --- a frame as SVG: text as text, everything else as paths, so that it looks the same everywhere -

FONT_SIZE = WIDTH / 0.602
"""Font size in units at which characters of DejaVu Sans Mono are as wide as a cell."""

BASELINE = 15.2
"""Distance of the baseline from the top of a cell in units."""

_HEAD = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0:g} {1:g}" '
    'width="{0:g}" height="{1:g}">'
)

_FAMILIES = "'DejaVu Sans Mono',Menlo,Consolas,'Liberation Mono',monospace"


def svg(frame: ScreenFrame, title: str) -> str:
    """Return ``frame`` as an SVG document titled ``title``."""
    width, height = frame.width * WIDTH, frame.height * HEIGHT
    spans = [(y, span) for y, row in enumerate(frame.rows) for span in row]
    return "\n".join(
        (
            _HEAD.format(width, height),
            f"<title>{escape(printable(title))}</title>",
            f'<rect width="100%" height="100%" fill="{frame.paper}"/>',
            *_papers(spans, frame.paper),
            *_paths(spans),
            f'<g font-family="{_FAMILIES}" font-size="{FONT_SIZE:.2f}" xml:space="preserve">',
            *_texts(spans),
            "</g>",
            "</svg>\n",
        )
    )


def _papers(spans: Iterable[tuple[int, Span]], paper: str) -> Iterator[str]:
    """Yield a path for each background colour that differs from the screen's."""
    paths: defaultdict[str, list[str]] = defaultdict(list)
    for y, span in spans:
        if span.face.paper != paper:
            wide = len(span.cells) * WIDTH
            at = f"M{span.x * WIDTH:g} {y * HEIGHT:g}"
            paths[span.face.paper].append(f"{at}h{wide:g}v{HEIGHT:g}h{-wide:g}z")
    for colour, parts in paths.items():
        yield f'<path shape-rendering="crispEdges" fill="{colour}" d="{"".join(parts)}"/>'


def _paths(spans: Iterable[tuple[int, Span]]) -> Iterator[str]:
    """Yield a path for each kind and colour of shapes."""
    paths: defaultdict[str, list[str]] = defaultdict(list)
    for y, span in spans:
        for x, char in enumerate(span.cells, span.x):
            for shape in shapes_of(char):
                paths[_brush(shape, span.face.ink)].append(_path(shape, x * WIDTH, y * HEIGHT))
    for brush, parts in paths.items():
        yield f'<path {brush} d="{"".join(parts)}"/>'


def _brush(shape: Shape, ink: str) -> str:
    match shape:
        case Dot():
            # A minimal line with round ends needs a tenth of the text of a circle.
            return f'stroke="{ink}" stroke-width="{2 * shape.radius:g}" stroke-linecap="round"'
        case DrawnLine():
            return f'stroke="{ink}" stroke-width="{shape.width:g}" fill="none"'
        case Area():
            faint = f' fill-opacity="{shape.opacity:g}"' if shape.opacity < 1 else ""
            return f'fill="{ink}"{faint}'


def _path(shape: Shape, x: float, y: float) -> str:
    match shape:
        case Dot():
            return f"M{x + shape.centre[0]:g} {y + shape.centre[1]:g}h.01"
        case DrawnLine():
            return _through(shape.points, x, y)
        case Area():
            return _through(shape.corners, x, y) + "z"


def _through(points: Iterable[tuple[float, float]], x: float, y: float) -> str:
    return "M" + "L".join(f"{round(x + a, 2):g} {round(y + b, 2):g}" for a, b in points)


def _texts(spans: Iterable[tuple[int, Span]]) -> Iterator[str]:
    """Yield the texts that a font draws, each stretched to the width of its cells."""
    for y, span in spans:
        for x, text, cells in _words(span):
            place = f'x="{x * WIDTH:g}" y="{y * HEIGHT + BASELINE:g}"'
            size = f'textLength="{cells * WIDTH:g}" lengthAdjust="spacingAndGlyphs"'
            yield f"<text {place} {size}{_traits(span.face)}>{escape(text)}</text>"


def _words(span: Span) -> Iterator[tuple[int, str, int]]:
    """Yield column, text and number of cells of each part of a span that a font draws."""
    x, lined = span.x, span.face.underline or span.face.strike
    for drawn, group in groupby(span.cells, key=is_drawn):
        cells = list(group)
        text = printable("".join(cells))
        if not drawn and lined:
            yield x, text, len(cells)
        elif not drawn and text.strip():
            before, after = (len(text) - len(each) for each in (text.lstrip(), text.rstrip()))
            yield x + before, text.strip(), len(cells) - before - after
        x += len(cells)


def _traits(face: Face) -> str:
    lines = " ".join(
        name for name, on in (("underline", face.underline), ("line-through", face.strike)) if on
    )
    return (
        f' fill="{face.ink}"'
        + (' font-weight="bold"' if face.bold else "")
        + (' font-style="italic"' if face.italic else "")
        + (f' text-decoration="{lines}"' if lines else "")
    )


# --- a frame as PNG, drawn by Pillow, which only this module imports, and only when needed --------

SCALE = 2
"""Pixels per unit: a cell is 20 by 40 pixels, sharp on a projector."""

_FINE = 4
"""Factor by which shapes are drawn larger and then reduced, to smooth their edges."""

_FOLDERS = ("truetype/dejavu", "dejavu", "dejavu-sans-mono-fonts", "TTF")
"""Folders below /usr/share/fonts in which Debian, Arch and Fedora keep DejaVu Sans Mono."""

_FILES = {
    (False, False): "DejaVuSansMono.ttf",
    (True, False): "DejaVuSansMono-Bold.ttf",
    (False, True): "DejaVuSansMono-Oblique.ttf",
    (True, True): "DejaVuSansMono-BoldOblique.ttf",
}
"""Files of the font, by whether they are bold and italic."""

_NO_PILLOW = "a PNG needs Pillow: pip install 'ccplay[report]'; an SVG needs nothing"
_NO_FONT = "a PNG needs the font {}: apt install fonts-dejavu-core, or pip install matplotlib"


def png(frame: ScreenFrame) -> bytes:
    """Return ``frame`` as a PNG file with ``SCALE`` pixels per unit of its cells.

    Raises ``UsageError`` with the remedy if Pillow or a font is missing.
    """
    try:
        from PIL import Image, ImageDraw  # noqa: PLC0415 - only a PNG needs it
    except ImportError:
        raise UsageError(_NO_PILLOW) from None
    wide, high = round(WIDTH * SCALE), round(HEIGHT * SCALE)
    drawn = Image.new("RGB", (frame.width * wide, frame.height * high), frame.paper)
    draw, glyphs = ImageDraw.Draw(drawn), _Glyphs()
    for y, row in enumerate(frame.rows):
        for span in row:
            face, left, top = span.face, span.x * wide, y * high
            right = left + len(span.cells) * wide
            if face.paper != frame.paper:
                draw.rectangle((left, top, right - 1, top + high - 1), face.paper)
            for x, char in enumerate(span.cells):
                if char and char != " ":
                    mask = glyphs.mask(char, face)
                    drawn.paste(face.ink, (left + x * wide, top), mask)
            for lined, at in ((face.underline, BASELINE + 2), (face.strike, HEIGHT / 2)):
                if lined:
                    line = top + round(at * SCALE)
                    draw.rectangle((left, line, right - 1, line + SCALE - 1), face.ink)
    file = io.BytesIO()
    drawn.save(file, "PNG", optimize=True)
    return file.getvalue()


class _Glyphs:
    """The masks of characters, each drawn once and cached."""

    def __init__(self) -> None:
        self._fonts: dict[tuple[bool, bool], FreeTypeFont] = {}
        self._masks: dict[tuple[str, bool, bool], Image] = {}

    def mask(self, char: str, face: Face) -> Image:
        """Return the mask of a character's ink within its cell."""
        key = (char, face.bold, face.italic)
        if key not in self._masks:
            shapes = shapes_of(char)
            if is_drawn(char):
                self._masks[key] = _shaped(shapes)
            else:
                self._masks[key] = self._written(char, (face.bold, face.italic))
        return self._masks[key]

    def _written(self, char: str, traits: tuple[bool, bool]) -> Image:
        from PIL import Image, ImageDraw  # noqa: PLC0415 - only a PNG needs it

        if traits not in self._fonts:
            self._fonts[traits] = _font(traits)
        size = (round(WIDTH * SCALE) * cell_len(char), round(HEIGHT * SCALE))
        mask = Image.new("L", size)
        place = (0, round(BASELINE * SCALE))
        ImageDraw.Draw(mask).text(place, char, 255, self._fonts[traits], anchor="ls")
        return mask


def _shaped(shapes: tuple[Shape, ...]) -> Image:
    from PIL import Image, ImageDraw  # noqa: PLC0415 - only a PNG needs it

    by = SCALE * _FINE
    mask = Image.new("L", (round(WIDTH * by), round(HEIGHT * by)))
    draw = ImageDraw.Draw(mask)
    for shape in shapes:
        match shape:
            case Dot(centre=(x, y), radius=r):
                draw.ellipse(((x - r) * by, (y - r) * by, (x + r) * by - 1, (y + r) * by - 1), 255)
            case Area(corners=corners, opacity=opacity):
                _fill(draw, [(x * by, y * by) for x, y in corners], round(255 * opacity))
            case DrawnLine(points=points, width=width):
                draw.line([(x * by, y * by) for x, y in points], 255, round(width * by), "curve")
    return mask.resize((round(WIDTH * SCALE), round(HEIGHT * SCALE)), Image.Resampling.BOX)


def _fill(draw: ImageDraw, corners: list[tuple[float, float]], level: int) -> None:
    xs, ys = zip(*corners, strict=True)
    box = (min(xs), min(ys), max(xs), max(ys))
    if {(x in box[::2], y in box[1::2]) for x, y in corners} == {(True, True)}:
        # Pillow includes the last pixel, which belongs to the next area.
        draw.rectangle((box[0], box[1], box[2] - 1, box[3] - 1), level)
    else:
        draw.polygon(corners, level)


def _font(traits: tuple[bool, bool]) -> FreeTypeFont:
    """Return DejaVu Sans Mono in a size that makes a character as wide as a cell."""
    from PIL import ImageFont  # noqa: PLC0415 - only a PNG needs it

    for folder in _font_folders():
        path = folder / _FILES[traits]
        if path.is_file():
            return ImageFont.truetype(path, FONT_SIZE * SCALE)
    raise UsageError(_NO_FONT.format(_FILES[traits]))


def _font_folders() -> list[Path]:
    """Return the folders that may contain the font; matplotlib is located, but not imported."""
    found = find_spec("matplotlib")
    brought = Path(found.origin).parent if found and found.origin else None
    inside = [brought / "mpl-data" / "fonts" / "ttf"] if brought else []
    return [*inside, *(Path("/usr/share/fonts") / each for each in _FOLDERS)]


# --- the names of picture files, and how they are written -----------------------------------------

_TITLE = "ccplay"

DRAWN: Mapping[str, Callable[[ScreenFrame], str | bytes]] = {
    ".svg": lambda frame: svg(frame, _TITLE),
    ".png": png,
}
"""Functions that draw a frame, by the ending of files; one that raises ``UsageError`` is last."""


def stem(t: float) -> str:
    """Return the file name, without its ending, of a picture at the moment ``t`` in seconds."""
    return f"ccplay-{moment(t)}"


def moment(t: float) -> str:
    """Return the moment ``t`` in seconds as it appears in names of pictures: ``01m30.0s``."""
    tenths = round(t * 10)
    return f"{tenths // 600:02d}m{tenths % 600 / 10:04.1f}s"


def write_new(frame: ScreenFrame, stem: str, suffix: str, folder: Path) -> Path:
    """Draw ``frame`` into a new file, with a number if the name is taken; return its path.

    Raises ``OSError``, and ``UsageError`` if this machine can't draw that kind of file.
    """
    return writing.write_numbered(folder, stem, suffix, DRAWN[suffix](frame))

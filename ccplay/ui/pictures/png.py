"""A frame as PNG, drawn by Pillow, which only this module imports, and only when needed."""

from __future__ import annotations

import io
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from rich.cells import cell_len

from ccplay.errors import UsageError
from ccplay.ui.pictures.shapes import (
    HEIGHT,
    WIDTH,
    Area,
    Dot,
    Face,
    Frame,
    Line,
    Shape,
    is_drawn,
    shapes_of,
)
from ccplay.ui.pictures.svg import BASELINE, FONT_SIZE

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont

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


def png(frame: Frame) -> bytes:
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
            case Line(points=points, width=width):
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

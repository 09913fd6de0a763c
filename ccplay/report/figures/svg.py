"""Figures as small SVG, reproducible byte by byte, for a page with dozens of them."""

from __future__ import annotations

import atexit
import base64
import io
import re
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path

import msgspec
from fontTools import subset
from fontTools.ttLib import TTFont
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font
from matplotlib.ft2font import FT2Font

from ccplay.files import writing
from ccplay.files.writing import create, passing_folder

# --- the figures' font, reduced to Latin letters so that every file can contain it ----------------
# The font is matplotlib's own, DejaVu Sans (its licence allows this), so that figures look the same
# everywhere; text in other letters falls back to the whole font.

WHOLE = "DejaVu Sans"
FAMILY = "DejaVu Sans Latin"
WEIGHTS = ("normal", "bold")
_LETTERS = "".join(map(chr, (*range(0x20, 0x7F), *range(0xA0, 0x180)))) + "–—…→←↑↓±×−µΔ≤≥≈·•“”‘’„"
_FAMILY_NAMES = (1, 4, 16)
"""IDs of records in the font's ``name`` table: family, full name, typographic family."""


@lru_cache(maxsize=1)
def cut() -> Path:
    """Return a folder with the reduced font in each weight; removed when this process exits."""
    held = ExitStack()
    folder = held.enter_context(passing_folder(Path(tempfile.gettempdir()), "ccplay-font-"))
    atexit.register(held.close)
    for weight in WEIGHTS:
        font = TTFont(findfont(FontProperties(family=WHOLE, weight=weight)), recalcTimestamp=False)
        options = subset.Options(hinting=False, layout_features=["kern"], notdef_outline=True)
        options.drop_tables += ["FFTM", "GSUB", "GDEF"]
        subsetter = subset.Subsetter(options)
        subsetter.populate(text=_LETTERS)
        subsetter.subset(font)
        for record in font["name"].names:
            if record.nameID in _FAMILY_NAMES:
                font["name"].setName(
                    FAMILY, record.nameID, record.platformID, record.platEncID, record.langID
                )
        with create(folder / f"{weight}.ttf") as file:
            font.save(file)
    return folder


def use(folder: Path) -> None:
    """Draw the figures of this process with the fonts that ``cut`` wrote."""
    if FAMILY not in {each.name for each in fontManager.ttflist}:
        for weight in WEIGHTS:
            fontManager.addfont(folder / f"{weight}.ttf")
        _font.cache_clear()


@lru_cache(maxsize=1)
def face(folder: Path) -> str:
    """Return the CSS that adds the font to a page: WOFF in data URIs."""
    return "".join(
        f"@font-face{{font-family:'{FAMILY}';font-weight:{weight};"
        f"src:url(data:font/woff;base64,{_woff(folder / f'{weight}.ttf')})}}"
        for weight in WEIGHTS
    )


def _woff(path: Path) -> str:
    font = TTFont(path, recalcTimestamp=False)
    font.flavor = "woff"
    buffer = io.BytesIO()
    font.save(buffer)
    return base64.b64encode(buffer.getvalue()).decode()


@lru_cache(maxsize=4096)
def text_width_in(text: str, points: float, weight: str = "normal") -> float:
    """Return the width in inches of a text that is printed ``points`` large."""
    font = _font(weight)
    # Measured at 100 points, because widths are whole pixels, too coarse at small sizes.
    font.set_size(100, 72)
    font.set_text(text)
    return font.get_width_height()[0] / 64 / 72 * points / 100 + 0.02


@lru_cache(maxsize=4)
def _font(weight: str) -> FT2Font:
    return get_font(findfont(FontProperties(family=WHOLE, weight=weight)))


# --- figures as small SVG, reproducible byte by byte, for a page with dozens of them --------------

_PREAMBLE = re.compile(r"^.*?(?=<svg )|\s*<metadata>.*?</metadata>|<!--.*?-->", re.DOTALL)
_SPACES = re.compile(r">\s+<")
_GROUP = re.compile(r"(<g\b[^>]*>|</g>)")
_EMPTY = re.compile(r"<g\b[^>]*/>")
_REFERENCE = re.compile(r'(url\(|href=")#([\w.]+)')
_ID = re.compile(r' id="([\w.]+)"')
_TAG = re.compile(r"<[^>]*>")
_STYLE = re.compile(r' style="([^"]*)"')
_IDLE = re.compile(r' transform="rotate\(-?0 [^"]*"|; stroke-dashoffset: 0(?=[;"])')
"""Attributes without effect: a rotation by 0, an offset of 0."""
_FAMILY = re.compile(r"font-family: ([^;\"]*)(?:; |(?=\"))")
_ALIKE = re.compile(r'<use [^>]*?( style="[^"]*")/>(?:<use [^>]*?\1/>)+')
_DIGITS = re.compile(r"(\d+\.\d\d)\d+")
_PATH = re.compile(r' d="(M[^"]*)"')
_STEP = re.compile(r"([MLz])([^MLz]*)")
_STRAIGHT = frozenset("MLz 0123456789.-\ne")


def svg_text(figure: Figure, prefix: str) -> str:
    """Return a figure as SVG; its ids begin with ``prefix``, so that a page can contain several.

    Lines keep a precision of a tenth of a point, 1/720 inch; text stays text.
    """
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = _SPACES.sub("><", _PREAMBLE.sub("", buffer.getvalue()))
    text = _one_family(_flatten(_numbered(_PATH.sub(_compact, text), prefix)))
    # Only within tags, because digits in labels are measured values.
    return _ALIKE.sub(_together, _TAG.sub(_terse, text))


def _flatten(text: str) -> str:
    """Remove empty groups, and groups without attributes."""
    kept, pieces = [], []
    for piece in _GROUP.split(_EMPTY.sub("", text)):
        if piece.startswith("<g"):
            kept.append(piece != "<g>")
            if not kept[-1]:
                continue
        elif piece == "</g>" and not kept.pop():
            continue
        pieces.append(piece)
    return "".join(pieces)


def _numbered(text: str, prefix: str) -> str:
    """Replace the ids that are referenced with short ones, and remove the others."""
    names = dict.fromkeys(match[2] for match in _REFERENCE.finditer(text))
    ids = {name: f"{prefix}-{number}" for number, name in enumerate(names)}
    text = _ID.sub(lambda m: f' id="{ids[m[1]]}"' if m[1] in ids else "", text)
    return _REFERENCE.sub(lambda m: f"{m[1]}#{ids[m[2]]}", text)


def _one_family(text: str) -> str:
    """Name the font only once if all texts have the same."""
    families = set(_FAMILY.findall(text))
    if len(families) != 1:
        return text
    return _FAMILY.sub("", text).replace("<svg ", f'<svg style="font-family: {families.pop()}" ', 1)


def _terse(tag: re.Match[str]) -> str:
    """Return a tag without attributes that have no effect, and with coordinates to hundredths."""
    text = _DIGITS.sub(r"\1", _IDLE.sub("", tag[0]))
    return _STYLE.sub(lambda m: m[0].replace(": ", ":").replace("; ", ";"), text)


def _together(markers: re.Match[str]) -> str:
    """Return adjacent markers of the same style as a group with that style."""
    return f"<g{markers[1]}>{markers[0].replace(markers[1], '')}</g>"


# --- paths --------------------------------------------------------------------------------------


def _compact(match: re.Match[str]) -> str:
    """Return a path of straight lines as relative steps in tenths of a point; others unchanged."""
    if not set(match[1]) <= _STRAIGHT:
        return match[0]
    words: list[str] = []
    x = y = 0
    steps: list[tuple[int, int]] = []
    for command, numbers in _STEP.findall(match[1]):
        if command == "z":
            words += [*_steps(steps), "z"]
            steps = []
            continue
        across, up = (round(float(number) * 10) for number in numbers.split())
        if command == "M":
            words += [*_steps(steps), f"M{_pair(across, up)}"]
            steps = []
        else:
            steps.append((across - x, up - y))
        x, y = across, up
    return f' d="{"".join([*words, *_steps(steps)])}"'


def _steps(steps: list[tuple[int, int]]) -> list[str]:
    """Return steps as SVG path commands, with adjacent ones in the same direction joined."""
    words: list[str] = []
    before = ""
    for across, up in _merged(steps):
        if not up:
            before, word = "h", f"h{_tenths(across)}"
        elif not across:
            before, word = "v", f"v{_tenths(up)}"
        else:
            sign = "" if across < 0 else " "
            word = (sign if before == "l" else "l") + _pair(across, up)
            before = "l"
        words.append(word)
    return words


def _merged(steps: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join consecutive vertical or horizontal steps of the same sign, and remove empty ones."""
    found: list[tuple[int, int]] = []
    for across, up in steps:
        if not (across or up):
            continue
        if found:
            x, y = found[-1]
            if (up == y == 0 and across * x > 0) or (across == x == 0 and up * y > 0):
                found[-1] = (x + across, y + up)
                continue
        found.append((across, up))
    return found


def _pair(x: int, y: int) -> str:
    return f"{_tenths(x)}{'' if y < 0 else ' '}{_tenths(y)}"


def _tenths(value: int) -> str:
    sign, (whole, part) = "-" if value < 0 else "", divmod(abs(value), 10)
    if not part:
        return f"{sign}{whole}"
    return f"{sign}{whole or ''}.{part}"


# --- figures as files, reproducible byte by byte --------------------------------------------------

FORMATS = ("svg", "pdf", "png")
PNG_DPI = 200


class Saved(msgspec.Struct, frozen=True):
    """A figure that was written."""

    svg: str
    """Text of the SVG without its font, for a page that contains the font."""
    files: list[str]
    """Names of the files."""
    width_in: float


def save(figure: Figure, stem: Path, formats: Sequence[str], font_face: str = "") -> Saved:
    """Write a figure in each format. Raises ``OSError``.

    ``font_face`` is CSS with the font, which an SVG file contains to look the same everywhere.
    """
    text = svg_text(figure, stem.name)
    names = [f"{stem.name}.{kind}" for kind in formats]
    for name, kind in zip(names, formats, strict=True):
        with writing.create(stem.with_name(name)) as file:
            if kind == "svg":
                style = f"<style>{font_face}</style>" if font_face else ""
                file.write(text.replace("<defs>", f"{style}<defs>", 1).encode())
            elif kind == "pdf":
                undated = {"CreationDate": None, "Producer": None}
                figure.savefig(file, format="pdf", metadata=undated)
            else:
                figure.savefig(file, format=kind, dpi=PNG_DPI, metadata={"Software": None})
    return Saved(text, names, figure.get_size_inches()[0])

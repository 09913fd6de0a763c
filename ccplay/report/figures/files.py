"""Figures as files: the same bytes every time, SVG small enough to stand in a page by dozens."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

FORMATS = ("svg", "pdf", "png")
PNG_DPI = 200


def save(figure: Figure, stem: Path, formats: Sequence[str], font_face: str = "") -> list[Path]:
    """Write a figure in each format and return the files. Raises ``OSError``.

    ``font_face`` is CSS that an SVG shall carry: its font, so that it is the same everywhere.
    """
    paths = []
    for kind in formats:
        path = stem.with_name(f"{stem.name}.{kind}")
        if kind == "svg":
            head, mark, rest = svg(figure, stem.name).partition("<defs>")
            text = (
                f"{head}<style>{font_face}</style>{mark}{rest}" if font_face else head + mark + rest
            )
            path.write_text(text, encoding="utf-8")
        elif kind == "pdf":
            figure.savefig(path, format="pdf", metadata={"CreationDate": None, "Producer": None})
        else:
            figure.savefig(path, format=kind, dpi=PNG_DPI, metadata={"Software": None})
        paths.append(path)
    return paths


# --- SVG ----------------------------------------------------------------------------------------

_PREAMBLE = re.compile(r"^.*?(?=<svg )|\s*<metadata>.*?</metadata>|<!--.*?-->", re.DOTALL)
_REFERENCED = re.compile(r'(?:url\(|href=")#([\w.]+)')
_ID = re.compile(r' id="([\w.]+)"')
_SPACES = re.compile(r">\s+<")
_GROUP = re.compile(r"(<g\b[^>]*>|</g>)")
_PATH = re.compile(r' d="(M[^"]*)"')
_STEP = re.compile(r"([MLz])([^MLz]*)")
_TAG = re.compile(r"<[^>]*>")
_DIGITS = re.compile(r"(\d+\.\d\d)\d+")


def svg(figure: Figure, prefix: str) -> str:
    """Return a figure as SVG for a page with others: its ids begin with ``prefix``, no date.

    Lines keep a tenth of a point, 1/720 inch; text stays text.
    """
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = _SPACES.sub("><", _PREAMBLE.sub("", buffer.getvalue()))
    wanted = set(_REFERENCED.findall(text))
    text = _ID.sub(lambda m: f' id="{prefix}-{m[1]}"' if m[1] in wanted else "", text)
    text = text.replace("url(#", f"url(#{prefix}-").replace('href="#', f'href="#{prefix}-')
    # Only within tags: a label's digits are somebody's measurement.
    return _TAG.sub(lambda m: _DIGITS.sub(r"\1", m[0]), _PATH.sub(_compact, _flatten(text)))


def _flatten(text: str) -> str:
    """Leave out groups that say nothing."""
    kept, pieces = [], []
    for piece in _GROUP.split(text):
        if piece.startswith("<g"):
            kept.append(piece != "<g>")
            if not kept[-1]:
                continue
        elif piece == "</g>" and not kept.pop():
            continue
        pieces.append(piece)
    return "".join(pieces)


def _compact(match: re.Match[str]) -> str:
    """Write a path of straight lines as steps from point to point, in tenths."""
    if not set(match[1]) <= set("MLz 0123456789.-\ne"):
        return match[0]
    words, x, y = [], 0, 0
    for command, numbers in _STEP.findall(match[1]):
        if command == "z":
            words.append("z")
            continue
        across, up = (round(float(number) * 10) for number in numbers.split())
        if command == "M":
            words.append(f"M{_tenths(across)} {_tenths(up)}")
        elif (across, up) != (x, y):
            words.append(f"l{_tenths(across - x)} {_tenths(up - y)}")
        x, y = across, up
    return f' d="{"".join(words)}"'


def _tenths(value: int) -> str:
    sign, value = ("-", -value) if value < 0 else ("", value)
    whole, part = divmod(value, 10)
    return f"{sign}{whole}.{part}" if part else f"{sign}{whole}"

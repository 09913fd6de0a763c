"""Figures as small SVG, reproducible byte by byte, for a page with dozens of them."""

from __future__ import annotations

import io
import re

from matplotlib.figure import Figure

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


def svg(figure: Figure, prefix: str) -> str:
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

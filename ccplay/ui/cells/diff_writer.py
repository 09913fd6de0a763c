"""Writes only changed cells to the terminal, and a colour only when it changes, or no colours.

For a partial update, Textual 8 writes each line from the left edge of the widget, and each run of
one style with both of its colours and a reset. On a screen that is mostly plots, this module writes
a tenth of those bytes, which makes a demonstration over SSH usable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from rich.color import ColorSystem
from rich.console import COLOR_SYSTEMS, Console
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, CompositorUpdate
from textual.color import Color
from textual.filter import LineFilter
from textual.strip import Strip

from ccplay.ui.cells.sheet import Run, runs_of, style_of

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
        pen = Pen(COLOR_SYSTEMS[console.color_system or "truecolor"])
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


class Pen:
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

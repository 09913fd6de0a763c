"""The content of a canvas at one moment: traces over a time window, marks and colours."""

from __future__ import annotations

import math

import msgspec

from ccplay.ui.cells.glyphs import UNICODE, Glyphs
from ccplay.ui.plots.traces import CountTrace, Trace
from ccplay.ui.themes import StrokeName


class Inks(msgspec.Struct, frozen=True):
    """Colours of axes and marks."""

    axis: str = ""
    grid: str = ""
    text: str = ""
    muted: str = ""
    mark: str = ""
    cursor: str = ""
    ghost: str = ""
    ground: str = ""
    """Colour of the background, which is mixed into faint inks."""


class Picture(msgspec.Struct, frozen=True):
    """The whole content of a plot at one moment."""

    left: float
    """Moment at the left edge, in seconds."""
    width: float
    """Width of the window in seconds."""
    until: float
    """Moment in seconds after which nothing is drawn."""
    traces: tuple[Trace, ...] = ()
    """Traces from bottom to top; those behind all others are first."""
    counts: tuple[CountTrace, ...] = ()
    marks: tuple[float, ...] = ()
    """Moments at which a command took effect."""
    ghost_marks: tuple[float, ...] = ()
    """Moments of commands in the ghost."""
    cursor: float | None = None
    pointer: float | None = None
    """Moment that the presenter points at; None if there is none."""
    region: tuple[float, float] | None = None
    """Lower and upper end of a marked region on the value axis."""
    hint: tuple[str, ...] = ()
    """Text shown in the middle."""
    least: float = 1.0
    """Smallest value at which the value axis may end."""
    unit: str = ""
    """Unit of the value axis, shown in its corner if it fits."""
    stroke: StrokeName = "normal"
    """Thickness of the lines."""
    glyphs: Glyphs = UNICODE
    inks: Inks = msgspec.field(default_factory=Inks)

    def column(self, t: float, columns: int) -> int:
        """Return the index of the column that contains a moment, counted from ``left``.

        The index of a moment outside the window is below 0, or ``columns`` or more.
        """
        return math.floor((t - self.left) / self.width * columns)

    def same_page(self, other: Picture | None) -> bool:
        """Return whether the drawing of ``other`` remains valid, except its newest columns."""
        return (
            other is not None
            and (self.left, self.width, self.hint) == (other.left, other.width, other.hint)
            and (self.traces, self.counts, self.inks) == (other.traces, other.counts, other.inks)
            and (self.ghost_marks, self.region) == (other.ghost_marks, other.region)
            and (self.glyphs, self.stroke) == (other.glyphs, other.stroke)
            and self.until >= other.until
        )

"""The content of a canvas at one moment: traces over a window of time, marks and colours."""

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
    """Colour behind everything: faint inks lie on the way to it."""


class Picture(msgspec.Struct, frozen=True):
    """All that a plot shows at one moment."""

    left: float
    """The moment at the left edge, in seconds."""
    width: float
    """Seconds from edge to edge."""
    until: float
    """Moment after which nothing is drawn."""
    traces: tuple[Trace, ...] = ()
    """Traces from the bottom to the top; those that lie under all others first."""
    counts: tuple[CountTrace, ...] = ()
    marks: tuple[float, ...] = ()
    """Moments at which a command took effect."""
    ghost_marks: tuple[float, ...] = ()
    """Moments of commands in the ghost."""
    cursor: float | None = None
    pointer: float | None = None
    """The moment that the presenter points at."""
    region: tuple[float, float] | None = None
    """Lower and upper end of a region that is marked, on the value axis."""
    hint: tuple[str, ...] = ()
    """Shown in the middle."""
    least: float = 1.0
    """The value axis never ends below this."""
    unit: str = ""
    """Unit of the value axis, in its corner where it fits."""
    stroke: StrokeName = "normal"
    """Thickness of the lines."""
    glyphs: Glyphs = UNICODE
    inks: Inks = msgspec.field(default_factory=Inks)

    def column(self, t: float, columns: int) -> int:
        """Return which of ``columns`` a moment lies in; outside them less than 0, or more."""
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

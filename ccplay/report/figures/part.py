"""A part of a run's figure: a plot, and the part of the run that one panel shows."""

from __future__ import annotations

import math

import msgspec

from ccplay.plots.plot import Line, Plot
from ccplay.report.data.scene import Scene
from ccplay.report.figures.style import Inks
from ccplay.state.lab_state import Flow

MANY = 4
"""Number of panels of single flows above which flows share one panel, to keep the page short."""


class Part(msgspec.Struct, frozen=True):
    """A plot, and the part of a run that one panel shows."""

    plot: Plot
    scene: Scene
    inks: Inks
    flows: list[list[Flow]]
    """Flows and downloads, each as its parallel streams."""
    link: str = ""
    """Name of the link, or ``LINK CLASS``, of the queue that is drawn; empty for none."""
    peak: float = math.inf
    """Greatest value of the variable, which determines the unit of its axis."""
    top: float = 0.0
    """Value that the axis includes even if no drawn value is as great."""

    @property
    def lines(self) -> tuple[Line, ...]:
        """Lines of the plot that this part draws."""
        in_bytes = self.plot.in_bytes is not None and self.scene.in_bytes(self.link)
        return self.plot.drawn(in_bytes=in_bytes)

    @property
    def unit(self) -> str:
        """Unit of the value axis; empty if it has none."""
        return self.lines[-1].variable.axis(self.peak)[0]

    @property
    def label(self) -> str:
        """Label of the value axis, with its unit."""
        words = self.plot.label or self.plot.title
        return f"{words} ({self.unit})" if self.unit else words

    @property
    def crowded(self) -> bool:
        """Whether there are too many flows to draw the details of each."""
        return len(self.flows) > MANY

    def factor(self, line: Line) -> float:
        """Return the factor from a variable's unit to that of the axis."""
        return line.variable.axis(self.peak)[1]

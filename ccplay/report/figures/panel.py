"""What one panel of a run's figure shows, and the names of its flows and queues."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from ccplay.report.data.scene import Scene
from ccplay.report.figures.style import Inks
from ccplay.traffic.connections import Flow
from ccplay.traffic.plot import Line, Plot

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


def name_of(streams: Sequence[Flow]) -> str:
    """Return the name of a flow or download; the streams of a flow share one."""
    first = streams[0]
    return first.parent if first.kind == "flow" else first.name


def short_label(streams: Sequence[Flow]) -> str:
    """Return a flow's label without algorithms: ``flow 1``."""
    return f"{streams[0].kind} {name_of(streams)}"


def flow_label(streams: Sequence[Flow]) -> str:
    """Return a flow's label: ``flow 1, reno → bbr``."""
    first = streams[0]
    ccs = [cc for _, cc in first.cc_changes] or [first.cc]
    many = f", {len(streams)} streams" if len(streams) > 1 else ""
    return f"{short_label(streams)}, {' → '.join(cc for cc in ccs if cc)}{many}"


def queue_label(link: str) -> str:
    """Return a queue's label: ``queue r1 → r2``."""
    return f"queue {link.replace('->', ' → ')}"

"""A panel of a run's figure, and the names of flows in titles and legends."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from matplotlib.artist import Artist
from matplotlib.axes import Axes

from ccplay.report.data.material import slug
from ccplay.state.lab_state import Flow


class Panel(msgspec.Struct, frozen=True):
    """One panel of a run's figure."""

    name: str
    title: str
    label: str
    """Label of the value axis, with its unit."""
    height_in: float
    draw: Callable[[Axes], list[Artist]]
    """Function that draws the panel and returns the entries of its legend."""
    window: tuple[float, float] | None = None
    """Start and end of the panel's time axis in seconds; None for the whole run."""
    counts: bool = False
    """Whether the values are whole numbers."""

    @property
    def slug(self) -> str:
        """Name of the panel, reduced to characters that are safe in file names."""
        return slug(self.name)


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

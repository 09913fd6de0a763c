"""Congestion states as the shaded background of a flow's panel, and in its legend."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path

from ccplay.model.wording import CA_STATES
from ccplay.report.figures import style


def shade(axes: Axes, spans: Sequence[tuple[float, float, int]]) -> set[int]:
    """Shade the background where a connection was not Open; return the states that occurred."""
    seen = {state for _, _, state in spans}
    for each in seen:
        boxes = [
            Path([(left, 0), (left, 1), (right, 1), (right, 0), (left, 0)], closed=True)
            for left, right, state in spans
            if state == each
        ]
        # All boxes are one path, or a page with many runs would be twice as large.
        # Added as an artist, not as a patch, which would change the limits of the axes.
        axes.add_artist(
            PathPatch(
                Path.make_compound_path(*boxes),
                transform=axes.get_xaxis_transform(),
                facecolor=style.STATES[each],
                linewidth=0,
                zorder=0.5,
            )
        )
    return seen


def state_handles(seen: Iterable[int]) -> list[Artist]:
    """Return the entries of the legend for the shaded states."""
    return [
        Patch(
            facecolor=style.STATES[each], edgecolor="#999999", linewidth=0.4, label=CA_STATES[each]
        )
        for each in sorted(seen)
    ]

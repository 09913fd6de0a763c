"""The panel of cross traffic: what all UDP together sent, and how much of that arrived."""

from __future__ import annotations

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from ccplay.report.data import curves
from ccplay.report.data.scene import Scene
from ccplay.report.figures import style


def draw(axes: Axes, scene: Scene) -> list[Artist]:
    """Draw what all cross traffic together sent, and how much of that arrived."""
    moments, sent, received = curves.cross_traffic(
        scene.udp, scene.start, scene.start + scene.span_s
    )
    names = ", ".join(each.name for each in scene.udp)
    handles: list[Artist] = []
    for bits_per_s, colour, label in (
        (sent, style.QUEUE_FILL, f"sent by {names}"),
        ([rate or 0.0 for rate in received], style.QUEUE, "received (mean of each)"),
    ):
        axes.stairs(
            [rate * 1e-6 for rate in bits_per_s], moments, fill=True, color=colour, zorder=1.8
        )
        handles.append(Patch(facecolor=colour, label=label))
    axes.set_ylim(0, max(sent, default=0.0) * 1.08e-6 or 1)
    return handles

"""The panel of cross traffic: the rates at which all UDP together was sent and received."""

from __future__ import annotations

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from ccplay.report.data import curves
from ccplay.report.figures import style
from ccplay.report.figures.part import Part


def draw(axes: Axes, part: Part) -> list[Artist]:
    """Draw the rates at which all cross traffic together was sent and received.

    The rate sent is the configured one. The rate received comes from a monitor's samples, or else
    is the mean over the traffic.
    """
    scene, factor = part.scene, part.factor(part.lines[-1])
    moments, sent, received = curves.cross_traffic(
        scene.udp, scene.start, scene.start + scene.span_s
    )
    arrived = [rate or 0.0 for rate in received]
    names = ", ".join(each.name for each in scene.udp)
    means = [each.name for each in scene.udp if not each.seen]
    whose = "each" if len(means) == len(scene.udp) else ", ".join(means)
    known = f"received (mean of {whose})" if means else "received"
    handles: list[Artist] = []
    for bits_per_s, colour, label in (
        (sent, style.QUEUE_FILL, f"sent by {names}"),
        (arrived, style.QUEUE, known),
    ):
        rates = [rate * factor for rate in bits_per_s]
        axes.stairs(rates, moments, fill=True, color=colour, zorder=1.8)
        handles.append(Patch(facecolor=colour, label=label))
    axes.set_ylim(0, max([*sent, *arrived], default=0.0) * factor * 1.08 or 1)
    return handles

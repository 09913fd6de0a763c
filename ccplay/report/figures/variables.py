"""Panels of the variables of algorithms: one per variable, with all flows that have it."""

from __future__ import annotations

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from ccplay.model.variables import variable
from ccplay.report.data.curves import curve
from ccplay.report.data.scene import Scene
from ccplay.report.figures.panels import Panel, flow_label, name_of
from ccplay.report.figures.style import Inks
from ccplay.state.lab_state import Flow

_MONITORED = {"monitor_one_way_delay_us": ("one-way delay of the flow's packets", "delay")}
"""Variables that no algorithm exports, with title and axis."""
_MOST = 6
"""With more the page would be too long."""


def told(scene: Scene, inks: Inks) -> list[Panel]:
    """Return a panel for each variable that changed; of too many, as many of each algorithm."""
    flows = [flow for streams in scene.flows for flow in streams]
    every = dict.fromkeys(name for flow in flows for name in flow.own)
    names = [name for name in every if _changed(flows, name)]
    algorithms = [variable(name).algorithm for name in names]
    place = {name: algorithms[:at].count(algorithms[at]) for at, name in enumerate(names)}
    chosen = sorted(names, key=lambda name: place[name])[:_MOST]
    return [_panel(scene, inks, name) for name in names if name in chosen]


def _changed(flows: list[Flow], name: str) -> bool:
    return len({each for low_high in _ranges(flows, name) for each in low_high}) > 1


def _ranges(flows: list[Flow], name: str) -> list[tuple[float, float]]:
    """Return the least and the greatest value of each flow that has any."""
    series = [flow.own[name] for flow in flows if name in flow.own]
    return [found for each in series if (found := each.extremes(each.first, each.end))]


def _panel(scene: Scene, inks: Inks, name: str) -> Panel:
    what = variable(name)
    flows = [flow for streams in scene.flows for flow in streams]
    unit, factor = what.axis(max(high for _, high in _ranges(flows, name)))
    title, words = _MONITORED.get(name, (what.title, what.words))
    label = f"{words} ({unit})" if unit else words
    return Panel(
        f"own-{name}", title, label, 0.8, lambda axes: _draw(axes, scene, inks, name, factor)
    )


def _draw(axes: Axes, scene: Scene, inks: Inks, name: str, factor: float) -> list[Artist]:
    handles: list[Artist] = []
    top = 0.0
    for streams in scene.flows:
        lines = [
            curve(flow.own[name], factor=factor, start=scene.start)
            for flow in streams
            if name in flow.own
        ]
        ink = inks[name_of(streams)]
        for line in lines:
            axes.plot(line.t, line.y, color=ink.colour, linewidth=1.0)
            # Dots as wide as the line.
            lone = line.lone
            axes.plot(lone.t, lone.y, ".", color=ink.colour, markersize=2.0, markeredgewidth=0)
            top = max(top, line.top)
        if lines:
            handles.append(Line2D([], [], color=ink.colour, label=flow_label(streams)))
    axes.set_ylim(0, top * 1.08 or 1)
    return handles

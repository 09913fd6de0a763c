"""The panels of what algorithms and disciplines report of themselves, one a variable."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from ccplay.model.variables import variable
from ccplay.report.data.curves import curve
from ccplay.report.data.scene import Scene
from ccplay.report.figures import style
from ccplay.report.figures.panel import Panel, flow_label, name_of, queue_label
from ccplay.report.figures.style import Inks
from ccplay.state.series import Series

_MONITORED = {"monitor_one_way_delay_us": ("one-way delay of the flow's packets", "delay")}
"""Variables that no algorithm exports, with title and axis."""
_MOST = 6
"""With more the page would be too long."""


@dataclass(frozen=True, slots=True)
class _Member:
    """A flow, as its streams, or a queue, and what it has reported."""

    label: str
    colour: str
    own: list[dict[str, Series]]


def told(scene: Scene, inks: Inks) -> list[Panel]:
    """Return a panel for each variable that changed; of too many, as many of each algorithm."""
    members = [
        _Member(flow_label(streams), inks[name_of(streams)].colour, [each.own for each in streams])
        for streams in scene.flows
    ]
    members += [
        _Member(queue_label(queue.link), style.QUEUE, [queue.own]) for queue in scene.queues
    ]
    every = dict.fromkeys(name for each in members for own in each.own for name in own)
    names = [name for name in every if _changed(members, name)]
    algorithms = [variable(name).algorithm for name in names]
    place = {name: algorithms[:at].count(algorithms[at]) for at, name in enumerate(names)}
    chosen = sorted(names, key=lambda name: place[name])[:_MOST]
    return [_panel(scene, members, name) for name in names if name in chosen]


def _changed(members: list[_Member], name: str) -> bool:
    return len({each for low_high in _ranges(members, name) for each in low_high}) > 1


def _ranges(members: list[_Member], name: str) -> list[tuple[float, float]]:
    """Return the least and the greatest value of each flow or queue that has reported any."""
    series = [own[name] for each in members for own in each.own if name in own]
    return [found for each in series if (found := each.extremes(each.first, each.end))]


def _panel(scene: Scene, members: list[_Member], name: str) -> Panel:
    what = variable(name)
    unit, factor = what.axis(max(high for _, high in _ranges(members, name)))
    title, words = _MONITORED.get(name, (what.title, what.words))
    label = f"{words} ({unit})" if unit else words
    return Panel(
        f"own-{name}", title, label, 0.8, lambda axes: _draw(axes, scene, members, name, factor)
    )


def _draw(
    axes: Axes, scene: Scene, members: list[_Member], name: str, factor: float
) -> list[Artist]:
    handles: list[Artist] = []
    top = 0.0
    for each in members:
        lines = [
            curve(own[name], factor=factor, start=scene.start) for own in each.own if name in own
        ]
        for line in lines:
            axes.plot(line.t, line.y, color=each.colour, linewidth=1.0)
            # Dots as wide as the line.
            lone = line.lone
            axes.plot(lone.t, lone.y, ".", color=each.colour, markersize=2.0, markeredgewidth=0)
            top = max(top, line.top)
        if lines:
            handles.append(Line2D([], [], color=each.colour, label=each.label))
    axes.set_ylim(0, top * 1.08 or 1)
    return handles

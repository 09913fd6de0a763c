"""The panels of a run's figure, made from the descriptions of plots."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TypeAlias

from matplotlib.artist import Artist
from matplotlib.axes import Axes

from ccplay.analysis.trust import credible
from ccplay.model.variables import Subject
from ccplay.plots.plot import Plot
from ccplay.plots.table import reported
from ccplay.report.data import curves
from ccplay.report.data.scene import Scene
from ccplay.report.figures import cross_traffic, lines, rates
from ccplay.report.figures.panel import Panel, flow_label, queue_label
from ccplay.report.figures.part import MANY, Part
from ccplay.report.figures.style import Inks
from ccplay.state.lab_state import Flow

Drawing: TypeAlias = Callable[[Axes, Part], list[Artist]]
"""Function that draws a panel and returns the entries of its legend."""


def panels(scene: Scene, inks: Inks, names: Collection[str] = ()) -> list[Panel]:
    """Return the panels for which this run has data, from top to bottom.

    They show the plots that reports draw by default, and those in ``names``.
    """
    found: list[Panel] = []
    for plot in reported(names):
        if not any(lines.has(scene, line) for line in plot.lines):
            continue
        match plot.apart:
            case "flow":
                found += _by_flow(plot, scene, inks)
            case "queue":
                found += _by_queue(plot, scene, inks)
            case _:
                found.append(together(Part(plot, scene, inks, scene.flows)))
    return found


def together(part: Part) -> Panel:
    """Return one panel with all of a run's lines of a plot."""
    plot = part.plot
    name = f"own-{plot.name}" if plot.variable.subject is None else plot.name
    title = (plot.about or plot.title).format(interval=rates.interval(part.scene.span_s))
    if plot.variable.rate is not None and rates.counted(part.scene):
        title += ", and UDP received" if part.flows else " of UDP received"
    return _panel(part, name, title)


_DRAWINGS: Mapping[tuple[Subject | None, str], Drawing] = {
    ("flow", "rate"): rates.throughput,
    ("flow", "bars"): rates.transfer,
    ("flow", "total"): rates.acked,
    ("udp", "area"): cross_traffic.draw,
}
"""Drawings by subject and style of a plot's last line; style ``rate`` is a line of a derived
variable."""


def _panel(part: Part, name: str, title: str) -> Panel:
    line = part.plot.lines[-1]
    style = "rate" if line.variable.rate and line.style == "line" else line.style
    drawing = _DRAWINGS.get((line.subject, style), lines.draw)
    whole = line.variable.whole and part.unit == line.variable.unit
    return Panel(
        name, title, part.label, part.plot.height_in, partial(_draw, drawing, part), counts=whole
    )


def _draw(drawing: Drawing, part: Part, axes: Axes) -> list[Artist]:
    return drawing(axes, part)


def _by_queue(plot: Plot, scene: Scene, inks: Inks) -> list[Panel]:
    alone = len(scene.queues) == 1
    return [
        _panel(
            Part(plot, scene, inks, scene.flows, queue.link),
            plot.name if alone else f"{plot.name}-{queue.link}",
            queue_label(queue.link),
        )
        for queue in scene.queues
    ]


def _by_flow(plot: Plot, scene: Scene, inks: Inks) -> list[Panel]:
    """Return a panel for each flow, and one for all downloads; if too many, one for all."""
    flows = [each for each in scene.flows if lines.of_flow(each, plot.lines[-1])]
    long = [each for each in flows if each[0].kind != "download"]
    short = [each for each in flows if each[0].kind == "download"]
    groups = [[each] for each in long] + ([short] if short else [])
    if len(groups) > MANY:
        groups = [flows]
    top = max((_top(plot, each) for each in long), default=0.0)
    found = []
    for group in groups:
        name = plot.name if len(groups) == 1 else f"{plot.name}-{group[0][0].name}"
        shared = top if group[0][0].kind != "download" else 0.0
        found.append(_panel(Part(plot, scene, inks, group, top=shared), name, _title(group)))
    return found


def _top(plot: Plot, streams: list[Flow]) -> float:
    """Return a flow's greatest value in the axis's unit; the panels of flows share their scale."""
    variable = plot.variable
    most, (_, factor) = credible(variable.name), variable.axis()
    every = (each.series[variable.series] for each in streams)
    return max((curves.curve(each, factor=factor, most=most).top for each in every), default=0.0)


def _title(group: list[list[Flow]]) -> str:
    if len(group) == 1:
        return flow_label(group[0])
    kind = "download" if all(each[0].kind == "download" for each in group) else "flow"
    return f"{kind}s " + ", ".join(each[0].name for each in group)

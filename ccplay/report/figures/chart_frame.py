"""Common parts of charts of lines and of bars: frame, legend, axes, intervals and dots."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from matplotlib import markers
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from ccplay.report.data.charts import Chart, Estimate, Line
from ccplay.report.figures import style
from ccplay.report.figures.style import Ink

LEFT_IN = 0.58
RIGHT_IN = 0.14
_BOTTOM_IN = 0.40
_HEIGHT_IN = 2.0
_ROW_IN = 0.14
_PANEL_GAP_IN = 0.22
INTERVAL = "_interval"
"""Label of confidence intervals; its underscore keeps them out of matplotlib's legends."""
_UP, _DOWN = markers.CARETUP, markers.CARETDOWN
_LEFT, _RIGHT = markers.CARETLEFT, markers.CARETRIGHT
_FOUR = 4
_COMMON: dict[str, Any] = {"linestyle": (0, (4, 2)), "linewidth": 0.9}
PUBLISHED: dict[str, Any] = {
    "linestyle": "",
    "marker": "D",
    "markersize": 3.6,
    "markerfacecolor": "white",
    "markeredgecolor": style.INK,
    "markeredgewidth": 0.8,
    "zorder": 5,
}


def frame(
    chart: Chart,
    handles: Sequence[Any],
    width: float,
    *,
    left: float = LEFT_IN,
    height: float = _HEIGHT_IN,
    labelled: bool = True,
    sideways: bool = False,
) -> tuple[Figure, list[Axes]]:
    """Return a figure with a legend on top, and the axes of its panels side by side, in rows."""
    handles = [*handles]
    if chart.published:
        handles.append(Line2D([], [], label="published", **{**PUBLISHED, "zorder": 1}))
    if chart.published_of_all:
        handles.append(
            Line2D([], [], color=style.INK, label="published for all cases together", **_COMMON)
        )
    room = width - left - RIGHT_IN
    columns = style.legend_columns([str(each.get_label()) for each in handles], room)
    rows = math.ceil(len(handles) / columns)
    across = panels_across(len(chart.panels), sideways=sideways)
    down = math.ceil(len(chart.panels) / across)
    titled = any(title for title, _ in chart.panels)
    head = 0.08 + _ROW_IN * rows
    over = 0.18 if titled else 0.0
    below = _BOTTOM_IN if labelled else _BOTTOM_IN - 0.15
    total = head + down * (over + height + below) + (down - 1) * 0.12
    figure = Figure(figsize=(width, total))
    each = (room - (across - 1) * _PANEL_GAP_IN) / across
    panels: list[Axes] = []
    for number, (title, _) in enumerate(chart.panels):
        row, column = divmod(number, across)
        bottom = total - head - (row + 1) * (over + height) - row * (0.12 + below)
        axes = style.box(figure, left + column * (each + _PANEL_GAP_IN), bottom, each, height)
        if titled:
            axes.set_title(title, fontsize=7.5, fontweight="bold", loc="left", pad=3)
        if panels and sideways:
            axes.sharex(panels[0])
        elif panels:
            axes.sharey(panels[0])
        if column:
            axes.tick_params(labelleft=False)
        panels.append(axes)
    if handles:
        figure.legend(
            handles=handles,
            loc="upper left",
            bbox_to_anchor=(left / width, 1 - 0.03 / total),
            ncols=columns,
        )
    return figure, panels


def panels_across(panels: int, *, sideways: bool = False) -> int:
    """Return the number of panels per row: at most three; four panels form a square.

    Four panels of ``sideways`` bars share one row.
    """
    if panels == _FOUR:
        return _FOUR if sideways else 2
    return min(panels, 3)


def draw_common(axes: Axes, chart: Chart, line: Line, colour: str, *, upright: bool) -> None:
    """Draw a line across the panel at each value published for all points of ``line`` together."""
    for value in line.published:
        (axes.axhline if upright else axes.axvline)(
            value / chart.unit.scale, color=colour, zorder=3, **_COMMON
        )


def finish_values(panels: Sequence[Axes], chart: Chart) -> None:
    """Finish the value axes: one scale for all panels, from zero, with the unit.

    If ratios differ greatly, the scale is logarithmic, with twice and half equally far from 1.
    """
    for axes in panels:
        axes.set_ylim(*chart.frame)
        if chart.doublings is not None:
            _double(axes, chart.doublings)
        else:
            axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
        place, figure = axes.get_position(), axes.get_figure(root=True)
        width = figure.get_size_inches()[0] if figure else 1.0
        if place.x0 * width < LEFT_IN + 0.05:
            axes.set_ylabel(chart.value_label)
            axes.yaxis.set_label_coords(-0.40 / (place.width * width), 0.5)
        if chart.reference is not None:
            axes.axhline(chart.reference, color=style.INK, linewidth=0.7, zorder=1.5)


def _double(axes: Axes, powers: range) -> None:
    """Set a value axis to a logarithmic scale with a tick at each power of two."""
    axes.set_yscale("log", base=2, nonpositive="clip")
    axes.yaxis.set_major_locator(FixedLocator([2.0**power for power in powers]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def arrows(axes: Axes, *, upright: bool) -> None:
    """Draw an arrow where a confidence interval extends beyond the frame."""
    along = 1 if upright else 0
    least, greatest = axes.get_ylim() if upright else axes.get_xlim()
    for container in axes.containers:
        if not isinstance(container, ErrorbarContainer) or container.get_label() != INTERVAL:
            continue
        for bars in container.lines[2]:
            style_of: dict[str, Any] = {"color": bars.get_color()[0], "markersize": 4, "zorder": 6}
            # A single run has no interval, so its segment is empty.
            for first, last in filter(len, bars.get_segments()):
                if first[along] < least:
                    at = (first[0], least) if upright else (least, first[1])
                    axes.plot(*at, marker=_DOWN if upright else _LEFT, **style_of)
                if last[along] > greatest:
                    at = (last[0], greatest) if upright else (greatest, last[1])
                    axes.plot(*at, marker=_UP if upright else _RIGHT, **style_of)


def half_widths(estimates: Sequence[Estimate], scale: float) -> list[list[float]]:
    """Return half widths of confidence intervals, below and above; NaN for a single run."""
    widths = [estimate.statistic.half_width for estimate in estimates]
    halves = [math.nan if width is None else width / scale for width in widths]
    return [halves, halves]


def deviations(estimates: Sequence[Estimate], scale: float) -> list[float]:
    """Return standard deviations; NaN for a single run."""
    found = [estimate.statistic.sd for estimate in estimates]
    return [math.nan if sd is None else sd / scale for sd in found]


def draw_singles(axes: Axes, xs: Sequence[float], ys: Sequence[float], ink: Ink) -> None:
    """Draw the values of single runs as dots, unless there is only one, which equals the mean."""
    if len(xs) > 1:
        axes.plot(
            xs,
            ys,
            linestyle="",
            marker="o",
            markersize=2.8,
            markeredgewidth=0.4,
            markeredgecolor="white",
            color=ink.colour,
            alpha=0.75,
            zorder=3,
        )

"""Cumulative distributions of flow completion times, on a logarithmic axis, by size and case."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, PercentFormatter

from ccplay.report.data.distributions import Distribution
from ccplay.report.figures import style

_LEFT_IN = 0.52
_RIGHT_IN = 0.14
_HEIGHT_IN = 1.75
_BOTTOM_IN = 0.40
_ROW_IN = 0.14
_GAP_IN = 0.18
_TITLE_IN = 0.18
_LEAST_MS = 1e-3
"""Smallest value on the axis in ms; recordings may have 0, which a logarithmic axis can't show."""


def draw(
    panels: Sequence[tuple[str, Mapping[str, Distribution]]], names: Sequence[str], label: str
) -> Figure:
    """Return panels side by side, each with a title and a line for some of ``names``.

    They share a logarithmic axis in ms with the label ``label``, because the times of short and
    long transfers differ by orders of magnitude.
    """
    several = len(panels) > 1
    width = style.PAGE_IN if several else style.COLUMN_IN
    room = width - _LEFT_IN - _RIGHT_IN
    inks = style.case_inks(names)
    drawn = [name for name in names if any(name in lines for _, lines in panels)]
    columns = style.legend_columns(drawn, room)
    rows = math.ceil(len(drawn) / columns) if len(drawn) > 1 else 0
    head = 0.06 + _ROW_IN * rows + (_TITLE_IN if several else 0)
    total = head + _HEIGHT_IN + _BOTTOM_IN
    figure = Figure(figsize=(width, total))
    each = (room - (len(panels) - 1) * _GAP_IN) / len(panels)
    ends = _ends([line for _, lines in panels for line in lines.values()])
    for number, (title, lines) in enumerate(panels):
        axes = style.box(figure, _LEFT_IN + number * (each + _GAP_IN), _BOTTOM_IN, each, _HEIGHT_IN)
        for name, line in lines.items():
            axes.plot(
                [max(value, _LEAST_MS) for value in (line.values[0], *line.values)],
                [0.0, *line.shares],
                color=inks[name].colour,
                linestyle=inks[name].dash,
                linewidth=1.1,
                drawstyle="steps-post",
            )
        _finish(axes, ends, label)
        if number:
            axes.tick_params(labelleft=False)
        else:
            axes.set_ylabel("share of transfers", labelpad=1.5)
        if several:
            axes.set_title(title, fontsize=7.5, fontweight="bold", loc="left", pad=3)
    if rows:
        figure.legend(
            handles=[
                Line2D([], [], color=inks[name].colour, linestyle=inks[name].dash, label=name)
                for name in drawn
            ],
            loc="upper left",
            bbox_to_anchor=(_LEFT_IN / width, 1 - 0.02 / total),
            ncols=columns,
        )
    return figure


def _ends(lines: Sequence[Distribution]) -> tuple[float, float]:
    """Return the ends of the axis, slightly beyond all values."""
    least = max(min(line.values[0] for line in lines), _LEAST_MS)
    most = max(*(line.values[-1] for line in lines), least)
    return least / 1.15, most * 1.15


def _finish(axes: Axes, ends: tuple[float, float], label: str) -> None:
    axes.set_xscale("log")
    axes.set_xlim(*ends)
    axes.set_ylim(0, 1.01)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    # On a few decades, powers of ten alone would be too few ticks.
    span = ends[1] / ends[0]
    subs = (1.0,) if span > 1000 else (1.0, 3.0) if span > 30 else (1.0, 2.0, 5.0)
    axes.xaxis.set_major_locator(LogLocator(subs=subs, numticks=9))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel(label, labelpad=1.5)

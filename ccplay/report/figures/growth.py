"""Acknowledged segments over time, a line a case."""

from __future__ import annotations

import math
from collections.abc import Mapping

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from ccplay.report.curves import Curve
from ccplay.report.figures import style

_LEFT_IN = 0.58
_RIGHT_IN = 0.14
_HEIGHT_IN = 3.0
_BOTTOM_IN = 0.40
_ROW_IN = 0.14


def draw(lines: Mapping[str, Curve]) -> Figure:
    """Return the figure; lines of one colour differ in their dashes."""
    inks = {
        name: (style.CASES[i % len(style.CASES)], style.DASHES[i // len(style.CASES) % 4])
        for i, name in enumerate(lines)
    }
    room = style.PAGE_IN - _LEFT_IN - _RIGHT_IN
    columns = style.legend_columns(list(lines), room)
    head = 0.1 + _ROW_IN * math.ceil(len(lines) / columns)
    total = head + _HEIGHT_IN + _BOTTOM_IN
    figure = Figure(figsize=(style.PAGE_IN, total))
    axes = style.box(figure, _LEFT_IN, _BOTTOM_IN, room, _HEIGHT_IN)
    for name, line in lines.items():
        colour, dash = inks[name]
        axes.plot(line.t, line.y, color=colour, linestyle=dash, linewidth=1.1)
    axes.set_xlim(0, max(line.t[-1] for line in lines.values()))
    axes.set_ylim(0, max(line.top for line in lines.values()) * 1.03 or 1)
    axes.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 2.5, 5, 10]))
    axes.set_xlabel("time (s)", labelpad=1.5)
    axes.set_ylabel("acknowledged (segments)")
    figure.legend(
        handles=[
            Line2D([], [], color=colour, linestyle=dash, label=name)
            for name, (colour, dash) in inks.items()
        ],
        loc="upper left",
        bbox_to_anchor=(_LEFT_IN / style.PAGE_IN, 1 - 0.02 / total),
        ncols=columns,
    )
    return figure

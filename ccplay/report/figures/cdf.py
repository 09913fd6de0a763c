"""Cumulative distributions of RTTs, queueing delays and sojourn times, by case."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, PercentFormatter

from ccplay.report.data.distributions import Distribution
from ccplay.report.figures import style
from ccplay.report.figures.chart import scale
from ccplay.report.figures.style import Ink

_LEFT_IN = 0.52
_RIGHT_IN = 0.14
_HEIGHT_IN = 1.75
_BOTTOM_IN = 0.40
_ROW_IN = 0.14
_GAP_IN = 0.18
_FOUR = 4
_NEAR = 0.4
"""Largest ratio of the least to the greatest value at which the axis begins at 0."""


def draw(
    labels: tuple[str, str],
    panels: Sequence[tuple[str, Mapping[str, Distribution]]],
    cases: Sequence[str],
    *,
    ordered: bool,
) -> Figure:
    """Return one or several panels side by side, with a line per name.

    ``labels`` are those of the two axes. ``ordered`` draws the names as steps of a colour scale;
    otherwise a name that is one of ``cases`` has the same ink in all figures.
    """
    names = list(dict.fromkeys(name for _, lines in panels for name in lines))
    known = cases if set(names) <= set(cases) else names
    inks = dict(zip(names, scale(len(names)), strict=True)) if ordered else style.case_inks(known)
    inks = {name: inks[name] for name in names}
    width = style.COLUMN_IN if len(panels) == 1 else style.PAGE_IN
    room = width - _LEFT_IN - _RIGHT_IN
    handles = [
        Line2D([], [], color=ink.colour, linestyle=ink.dash, label=name)
        for name, ink in inks.items()
    ]
    columns = style.legend_columns(names, room)
    titled = len(panels) > 1
    rows = math.ceil(len(names) / columns) if len(names) > 1 else 0
    head = 0.06 + _ROW_IN * rows + (0.18 if titled else 0)
    across = 2 if len(panels) == _FOUR else min(len(panels), 3)
    down = math.ceil(len(panels) / across)
    total = head + down * (_HEIGHT_IN + _BOTTOM_IN) + (down - 1) * 0.2
    figure = Figure(figsize=(width, total))
    each = (room - (across - 1) * _GAP_IN) / across
    every = [each for _, lines in panels for each in lines.values()]
    left, right = min(each.values[0] for each in every), max(each.quantile(0.999) for each in every)
    ends = (left - 0.03 * (right - left) if left > _NEAR * right else 0.0, right)
    for number, (title, lines) in enumerate(panels):
        row, column = divmod(number, across)
        bottom = total - head - _HEIGHT_IN - row * (_HEIGHT_IN + _BOTTOM_IN + 0.2)
        axes = style.box(figure, _LEFT_IN + column * (each + _GAP_IN), bottom, each, _HEIGHT_IN)
        for name, distribution in lines.items():
            _line(axes, distribution, inks[name])
        _finish(axes, labels, ends)
        if column:
            axes.tick_params(labelleft=False)
            axes.set_ylabel("")
        if titled:
            axes.set_title(title, fontsize=7.5, fontweight="bold", loc="left", pad=3)
    if rows:
        figure.legend(
            handles=handles,
            loc="upper left",
            bbox_to_anchor=(_LEFT_IN / width, 1 - 0.02 / total),
            ncols=columns,
        )
    return figure


def _line(axes: Axes, distribution: Distribution, ink: Ink) -> None:
    axes.plot(
        [distribution.values[0], *distribution.values],
        [0.0, *distribution.shares],
        color=ink.colour,
        linestyle=ink.dash,
        linewidth=1.1,
        drawstyle="steps-post",
    )


def _finish(axes: Axes, labels: tuple[str, str], ends: tuple[float, float]) -> None:
    left, right = ends
    axes.set_ylim(0, 1.01)
    axes.set_xlim(left, right + 0.03 * (right - left) or 1)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    axes.set_xlabel(labels[0], labelpad=1.5)
    axes.set_ylabel(labels[1])

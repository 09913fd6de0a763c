"""Cumulative curves: of sojourn times, of completion times, and growth over time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import (
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullFormatter,
    PercentFormatter,
)

from ccplay.report.data.curves import Curve
from ccplay.report.data.findings import Distribution
from ccplay.report.figures import style
from ccplay.report.figures.chart import scale
from ccplay.report.figures.style import Ink

# --- cumulative distributions of delays, and of flow completion times, by case --------------------

_LEFT_IN = 0.52
_HEIGHT_IN = 1.75
_BOTTOM_IN = 0.40
_NEAR = 0.4
"""Largest ratio of the least to the greatest value at which the axis begins at 0."""


def draw_cdf(
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
    every = [each for _, lines in panels for each in lines.values()]
    left, right = min(each.values[0] for each in every), max(each.quantile(0.999) for each in every)
    left = left - 0.03 * (right - left) if left > _NEAR * right else 0.0
    figure, drawn = _frame([title for title, _ in panels], {name: inks[name] for name in names})
    for number, (axes, (_, lines)) in enumerate(zip(drawn, panels, strict=True)):
        for name, distribution in lines.items():
            _line(axes, distribution, inks[name])
        axes.set_xlim(left, right + 0.03 * (right - left) or 1)
        axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
        axes.set_xlabel(labels[0], labelpad=1.5)
        axes.set_ylabel("" if number % style.panels_across(len(panels)) else labels[1])
    return figure


_LEAST_MS = 1e-3
"""Smallest value on a logarithmic axis in ms, which can't show the 0 that recordings may have."""


def draw_completion_times(
    labels: tuple[str, str],
    panels: Sequence[tuple[str, Mapping[str, Distribution]]],
    names: Sequence[str],
) -> Figure:
    """Return panels side by side, each with a title and a line for some of ``names``.

    ``labels`` are those of the two axes. The panels share a logarithmic axis in
    ms, because the times of short and long transfers differ by orders of magnitude.
    """
    inks = style.case_inks(names)
    used = [name for name in names if any(name in lines for _, lines in panels)]
    every = [line for _, lines in panels for line in lines.values()]
    least = max(min(line.values[0] for line in every), _LEAST_MS)
    most = max(*(line.values[-1] for line in every), least)
    # On a few decades, powers of ten alone would be too few ticks.
    span = most / least * 1.15**2
    subs = (1.0,) if span > 1000 else (1.0, 3.0) if span > 30 else (1.0, 2.0, 5.0)
    figure, drawn = _frame([title for title, _ in panels], {name: inks[name] for name in used})
    for number, (axes, (_, lines)) in enumerate(zip(drawn, panels, strict=True)):
        for name, line in lines.items():
            _line(axes, line, inks[name], _LEAST_MS)
        axes.set_xscale("log")
        axes.set_xlim(least / 1.15, most * 1.15)
        axes.xaxis.set_major_locator(LogLocator(subs=subs, numticks=9))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel(labels[0], labelpad=1.5)
        if not number:
            axes.set_ylabel(labels[1], labelpad=1.5)
    return figure


def _frame(titles: Sequence[str], inks: Mapping[str, Ink]) -> tuple[Figure, list[Axes]]:
    """Return a figure and the axes of its panels, whose vertical axis has shares in percent."""
    handles = [
        Line2D([], [], color=ink.colour, linestyle=ink.dash, label=name)
        for name, ink in (inks.items() if len(inks) > 1 else ())
    ]
    width = style.PAGE_IN if len(titles) > 1 else style.COLUMN_IN
    figure, panels = style.frame(
        titles, handles, width, left=_LEFT_IN, height=_HEIGHT_IN, below=_BOTTOM_IN
    )
    for axes in panels:
        axes.set_ylim(0, 1.01)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    return figure, panels


def _line(axes: Axes, distribution: Distribution, ink: Ink, least: float = -math.inf) -> None:
    axes.plot(
        [max(value, least) for value in (distribution.values[0], *distribution.values)],
        [0.0, *distribution.shares],
        color=ink.colour,
        linestyle=ink.dash,
        linewidth=1.1,
        drawstyle="steps-post",
    )


# --- acknowledged segments over time: one line per case, labelled at its end ----------------------

_GROWTH_LEFT_IN = 0.58
_LEADER_IN = 0.16
_SAMPLE_IN = 0.3
"""Length in inches of the sample of a line beside its label."""
_GROWTH_HEIGHT_IN = 3.0
_TOP_IN = 0.1
_GROWTH_ROW_IN = 0.125


def draw_growth(lines: Mapping[str, Curve], cases: Sequence[str]) -> Figure:
    """Return a figure of the named lines, with inks in the order of ``cases``, which has all names.

    Lines of one colour differ in their dashes.
    """
    known = style.case_inks(cases)
    inks = {name: known[name] for name in lines}
    widest = max(style.text_width_in(name) for name in lines)
    width = style.PAGE_IN - _GROWTH_LEFT_IN - _LEADER_IN - _SAMPLE_IN - widest - 0.12
    height = max(_GROWTH_HEIGHT_IN, _GROWTH_ROW_IN * len(lines))
    figure = Figure(figsize=(style.PAGE_IN, _TOP_IN + height + _BOTTOM_IN))
    axes = style.box(figure, _GROWTH_LEFT_IN, _BOTTOM_IN, width, height)
    for name, line in lines.items():
        ink = inks[name]
        axes.plot(line.t, line.y, color=ink.colour, linestyle=ink.dash, linewidth=1.2)
    top = max(line.top for line in lines.values()) * 1.03 or 1
    last = max(line.t[-1] for line in lines.values())
    axes.set_xlim(0, last)
    axes.set_ylim(0, top)
    axes.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 2.5, 5, 10]))
    axes.set_xlabel("time since the flow's start (s)", labelpad=1.5)
    axes.set_ylabel("acknowledged (segments)")
    ends = [(line.t[-1] / last, line.y[-1] / top) for line in lines.values()]
    places = spread([y for _, y in ends], _GROWTH_ROW_IN / height)
    for (name, ink), end, place in zip(inks.items(), ends, places, strict=True):
        _name(axes, name, ink, (end, place, width))
    return figure


def spread(wanted: Sequence[float], least: float) -> list[float]:
    """Return positions from 0 to 1 near the wanted ones, in order, at least ``least`` apart.

    Positions that are too close are spread around their middle.
    """
    order = sorted(range(len(wanted)), key=lambda n: wanted[n])
    groups: list[tuple[float, list[int]]] = []
    for n in order:
        middle, members = wanted[n], [n]
        while groups and _bottom(middle, members, least) < _bottom(*groups[-1], -least) + least:
            _, before = groups.pop()
            members = [*before, *members]
            middle = sum(wanted[m] for m in members) / len(members)
            half = (len(members) - 1) / 2 * least
            middle = min(max(middle, half), max(1 - half, half))
        groups.append((middle, members))
    places = [0.0] * len(wanted)
    for middle, members in groups:
        for row, n in enumerate(members):
            places[n] = _bottom(middle, members, least) + row * least
    return places


def _bottom(middle: float, members: Sequence[int], least: float) -> float:
    """Return the lowest position of a group; the highest one for a negative distance."""
    return middle - (len(members) - 1) / 2 * least


def _name(
    axes: Axes, name: str, ink: style.Ink, where: tuple[tuple[float, float], float, float]
) -> None:
    """Draw the label of a line, and a leader to it from the line's end at another height."""
    (right, end), place, width_in = where
    turn, tip = 1 + _LEADER_IN / width_in, 1 + (_LEADER_IN + _SAMPLE_IN) / width_in
    across = axes.transAxes
    axes.plot(
        [right, turn],
        [end, place],
        transform=across,
        clip_on=False,
        color=ink.colour,
        linewidth=0.5,
    )
    axes.plot(
        [turn, tip],
        [place, place],
        transform=across,
        clip_on=False,
        color=ink.colour,
        linestyle=ink.dash,
        linewidth=1.2,
    )
    axes.annotate(
        name,
        (tip, place),
        xycoords=across,
        xytext=(3, 0),
        textcoords="offset points",
        va="center_baseline",
        fontsize=style.SMALL,
        annotation_clip=False,
    )

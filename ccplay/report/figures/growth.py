"""Acknowledged segments over time: one line per case, labelled at its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ccplay.report.data.curves import Curve
from ccplay.report.figures import style

_LEFT_IN = 0.58
_LEADER_IN = 0.16
_SAMPLE_IN = 0.3
"""Length in inches of the sample of a line beside its label."""
_HEIGHT_IN = 3.0
_BOTTOM_IN = 0.40
_TOP_IN = 0.1
_ROW_IN = 0.125


def draw(lines: Mapping[str, Curve], cases: Sequence[str]) -> Figure:
    """Return a figure of the named lines, with inks in the order of ``cases``, which has all names.

    Lines of one colour differ in their dashes.
    """
    known = style.case_inks(cases)
    inks = {name: known[name] for name in lines}
    widest = max(style.text_width_in(name) for name in lines)
    width = style.PAGE_IN - _LEFT_IN - _LEADER_IN - _SAMPLE_IN - widest - 0.12
    height = max(_HEIGHT_IN, _ROW_IN * len(lines))
    figure = Figure(figsize=(style.PAGE_IN, _TOP_IN + height + _BOTTOM_IN))
    axes = style.box(figure, _LEFT_IN, _BOTTOM_IN, width, height)
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
    places = spread([y for _, y in ends], _ROW_IN / height)
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
        while groups and _bottom(middle, members, least) < _top(*groups[-1], least) + least:
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
    return middle - (len(members) - 1) / 2 * least


def _top(middle: float, members: Sequence[int], least: float) -> float:
    return middle + (len(members) - 1) / 2 * least


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

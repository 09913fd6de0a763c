"""The figures of an experiment: charts of estimates, trade-offs, distributions, and growth."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import covariance, fmean, variance
from typing import Any

import matplotlib as mpl
from matplotlib import markers
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Ellipse, Patch
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullFormatter,
    NullLocator,
    PercentFormatter,
)

from ccplay.report.data.charts import Chart, ChartLine, Estimate
from ccplay.report.data.curves import Curve
from ccplay.report.data.findings import Distribution
from ccplay.report.data.material import CASES, Parameter, as_written
from ccplay.report.figures import style
from ccplay.report.figures.style import Ink, Inks

# --- common parts of charts of lines and of bars: frame, legend, axes, intervals and dots ---------

LEFT_IN = 0.58
_BOTTOM_IN = 0.40
_HEIGHT_IN = 2.0
INTERVAL = "_interval"
"""Label of confidence intervals; its underscore keeps them out of matplotlib's legends."""
_UP, _DOWN = markers.CARETUP, markers.CARETDOWN
_LEFT, _RIGHT = markers.CARETLEFT, markers.CARETRIGHT
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
    """Return the figure of a chart, with entries for published values, and its panels' axes."""
    handles = [*handles]
    if chart.published:
        handles.append(Line2D([], [], label="published", **{**PUBLISHED, "zorder": 1}))
    if chart.published_of_all:
        handles.append(
            Line2D([], [], color=style.INK, label="published for all cases together", **_COMMON)
        )
    titles = [title for title, _ in chart.panels]
    below = _BOTTOM_IN if labelled else _BOTTOM_IN - 0.15
    return style.frame(
        titles, handles, width, left=left, height=height, below=below, sideways=sideways
    )


def draw_common(axes: Axes, chart: Chart, line: ChartLine, colour: str, *, upright: bool) -> None:
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
        place, width = axes.get_position(), style.size_in(axes)[0]
        if place.x0 * width / place.width < LEFT_IN + 0.05:
            axes.set_ylabel(chart.value_label)
            axes.yaxis.set_label_coords(-0.40 / width, 0.5)
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


# --- charts of an experiment: bars by case, or lines along an axis, with error bars ---------------

_DECADE = 10
_VALUE_IN = 0.3
"""Inches left free behind the longest bar for its value."""
_OURS_IN = 0.22
"""Inches left free in addition for the word "ours" if the chart has published values."""
_ERROR: dict[str, Any] = {"elinewidth": 0.8, "capsize": 2.2, "capthick": 0.8, "label": INTERVAL}
_SPREAD: dict[str, Any] = {"elinewidth": 3.0, "capsize": 0, "alpha": 0.35, "label": "_spread"}


def draw_chart(chart: Chart, inks: Inks) -> Figure:
    """Return a chart as a figure: lines along a numeric axis, bars otherwise."""
    if chart.drawn_along:
        return _lines(chart, inks)
    return _bars(chart, inks)


def hues(chart: Chart, inks: Inks) -> dict[str, Ink]:
    """Return the ink of each line: that of its flow, or a step of a scale from dark to light."""
    labels = list(dict.fromkeys(line.label for _, lines in chart.panels for line in lines))
    if not chart.hue:
        flows = {line.label: line.flow for _, lines in chart.panels for line in lines}
        plain = Ink(style.CASES[0], "-", "o")
        return {label: inks[flows[label]] if flows[label] else plain for label in labels}
    return dict(zip(labels, scale(len(labels)), strict=True))


def scale(count: int) -> list[Ink]:
    """Return ``count`` inks from dark to light, an order that survives printing."""
    colours = [
        mpl.colors.to_hex(mpl.colormaps["viridis"](0.06 + 0.72 * i / max(count - 1, 1)))
        for i in range(count)
    ]
    return [style.ink(i, colours) for i in range(count)]


# --- lines --------------------------------------------------------------------------------------


def _lines(chart: Chart, inks: Inks) -> Figure:
    numbers, unit = chart.axis.numbers or ({}, "")
    colours = hues(chart, inks)
    many = len(chart.panels)
    width = style.COLUMN_IN if many == 1 else style.PAGE_IN
    handles = [
        Line2D(
            [], [], color=i.colour, linestyle=i.dash, marker=i.marker, label=_named(chart, label)
        )
        for label, i in colours.items()
    ]
    figure, panels = frame(chart, handles, width)
    wide = max(numbers.values()) >= _DECADE * min(numbers.values()) > 0
    for axes, (_, lines) in zip(panels, chart.panels, strict=True):
        for number, line in enumerate(lines):
            shift = (number - (len(lines) - 1) / 2) * 0.032
            _line(axes, chart, line, colours[line.label], (numbers, shift, wide))
            draw_common(axes, chart, line, colours[line.label].colour, upright=True)
        if wide:
            axes.set_xscale("log")
        axes.xaxis.set_major_locator(FixedLocator(sorted(numbers.values())))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        name = "queue limit" if chart.axis.name in ("limit", "queue") else chart.axis.name
        counted = unit or ("packets" if name == "queue limit" else "")
        axes.set_xlabel(f"{name} ({counted})" if counted else name, labelpad=1.5)
    finish_values(panels, chart)
    for axes in panels:
        arrows(axes, upright=True)
    return figure


def _line(
    axes: Axes,
    chart: Chart,
    line: ChartLine,
    ink: Ink,
    where: tuple[dict[Parameter, float], float, bool],
) -> None:
    numbers, shift, wide = where
    span = max(numbers.values()) - min(numbers.values())
    estimates = sorted(line.estimates, key=lambda estimate: numbers[estimate.at])

    def moved(x: float, by: float) -> float:
        return x * (1 + by) if wide else x + by * span

    xs = [moved(numbers[estimate.at], shift) for estimate in estimates]
    scale = chart.unit.scale
    for x, estimate in zip(xs, estimates, strict=True):
        draw_singles(axes, [x] * len(estimate.singles), [v / scale for v in estimate.singles], ink)
    axes.errorbar(
        xs,
        [estimate.statistic.mean / scale for estimate in estimates],
        yerr=half_widths(estimates, scale),
        color=ink.colour,
        linestyle=ink.dash,
        marker=ink.marker,
        zorder=4,
        **_ERROR,
    )
    published = [
        (x, v / scale)
        for x, estimate in zip(xs, estimates, strict=True)
        for v in estimate.published
    ]
    if published:
        axes.plot(*zip(*published, strict=True), **{**PUBLISHED, "markeredgecolor": ink.colour})
    curve = [
        (x, fmean(estimate.published) / scale)
        for x, estimate in zip(xs, estimates, strict=True)
        if estimate.published and estimate.at in line.joined
    ]
    if len(curve) > 1:
        axes.plot(*zip(*curve, strict=True), color=ink.colour, zorder=3, **_COMMON)


def _named(chart: Chart, label: str) -> str:
    return f"{chart.hue} {label}" if chart.hue and chart.hue != CASES else label


# --- bars ---------------------------------------------------------------------------------------


def _bars(chart: Chart, inks: Inks) -> Figure:
    """Return a figure with bars drawn upwards if the names below them fit, else to the right."""
    colours = hues(chart, inks)
    names = [as_written(value) for value in chart.axis.values]
    bars = max(len(lines) for _, lines in chart.panels)
    widest = max(style.text_width_in(name) for name in names) + 0.12
    handles = [
        Patch(color=ink.colour, label=_named(chart, label)) for label, ink in colours.items()
    ]
    handles = handles if len(handles) > 1 else []
    many = len(chart.panels)
    width = style.COLUMN_IN if many == 1 else style.PAGE_IN
    upright = widest * len(names) * style.panels_across(many) <= width - LEFT_IN - style.RIGHT_IN
    if upright:
        figure, panels = frame(chart, handles, width, labelled=chart.axis.name != CASES)
    else:
        between = 0.12 if bars > 1 or chart.runs[1] > 1 else 0.04
        height = max((0.17 * bars + between) * len(names) + 0.1, 0.8)
        left = min(widest + 0.05, 0.5 * style.PAGE_IN)
        width = max(width, left + 3.0)
        figure, panels = frame(chart, handles, width, left=left, height=height, sideways=True)
    for axes, (_, lines) in zip(panels, chart.panels, strict=True):
        for line in lines:
            _bar(axes, chart, line, colours[line.label], lines, upright=upright)
            draw_common(axes, chart, line, style.INK, upright=upright)
        _categories(axes, chart, names, upright=upright)
    if upright:
        finish_values(panels, chart)
    else:
        # One label of the value axis below all panels, which have no room for their own.
        places = [axes.get_position() for axes in panels]
        middle = (min(each.x0 for each in places) + max(each.x1 for each in places)) / 2
        low = 0.04 / figure.get_size_inches()[1]
        figure.supxlabel(chart.value_label, x=middle, y=low, va="bottom")
    for axes in panels:
        arrows(axes, upright=upright)
    return figure


def _bar(
    axes: Axes,
    chart: Chart,
    line: ChartLine,
    ink: Ink,
    lines: Sequence[ChartLine],
    *,
    upright: bool,
) -> None:
    thick = 0.76 / len(lines)
    scale = chart.unit.scale
    order = {value: i for i, value in enumerate(chart.axis.values)}
    at = [
        order[estimate.at] + _aside(line, lines, estimate.at) * thick for estimate in line.estimates
    ]
    means = [estimate.statistic.mean / scale for estimate in line.estimates]
    errors = half_widths(line.estimates, scale)
    spreads = deviations(line.estimates, scale)
    style_of: dict[str, Any] = {"color": ink.colour, "alpha": 0.8, "linewidth": 0, "zorder": 2}
    error_of: dict[str, Any] = {"linestyle": "", "color": style.INK, "zorder": 4, **_ERROR}
    if upright:
        axes.bar(at, means, width=thick * 0.92, **style_of)
        axes.errorbar(at, means, yerr=spreads, **{**error_of, **_SPREAD})
        axes.errorbar(at, means, yerr=errors, **error_of)
    else:
        axes.barh(at, means, height=thick * 0.92, **style_of)
        axes.errorbar(means, at, xerr=spreads, **{**error_of, **_SPREAD})
        axes.errorbar(means, at, xerr=errors, **error_of)
    if not upright and chart.runs[1] == 1:
        _written(axes, chart, line.estimates, at)
    for x, estimate in zip(at, line.estimates, strict=True):
        values = [v / scale for v in estimate.singles] if len(estimate.singles) > 1 else []
        spread = [x + thick * (0.26 + 0.1 * (i % 2)) for i in range(len(values))]
        dots = (spread, values) if upright else (values, spread)
        draw_singles(axes, *dots, Ink(style.INK, "-", "o"))
        theirs = [v / scale for v in estimate.published]
        beside = [x - thick * 0.3] * len(theirs)
        axes.plot(*((beside, theirs) if upright else (theirs, beside)), **PUBLISHED)


def _aside(line: ChartLine, lines: Sequence[ChartLine], at: Parameter) -> float:
    """Return the distance, in bars, of a line's bar from the middle of its category's bars."""
    there = [
        each is line for each in lines if any(estimate.at == at for estimate in each.estimates)
    ]
    return there.index(True) - (len(there) - 1) / 2


def _written(axes: Axes, chart: Chart, estimates: Sequence[Estimate], at: Sequence[float]) -> None:
    """Write the values of single runs to the right of their bars and published values."""
    for estimate, y in zip(estimates, at, strict=True):
        right = max(estimate.statistic.mean, *estimate.published, 0.0) / chart.unit.scale
        value = chart.unit.write(estimate.statistic.mean)
        axes.annotate(
            f"ours {value}" if estimate.published else value,
            (right, y),
            xytext=(5 if estimate.published else 2, 0),
            textcoords="offset points",
            va="center_baseline",
            fontsize=style.SMALL - 0.5,
            color=style.MUTED,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.2},
        )


def _categories(axes: Axes, chart: Chart, names: Sequence[str], *, upright: bool) -> None:
    places = list(range(len(names)))
    if upright:
        axes.set_xticks(places, names)
        axes.set_xlim(-0.6, len(names) - 0.4)
        axes.tick_params(axis="x", length=0)
        axes.grid(visible=False, axis="x")
        axes.set_xlabel("" if chart.axis.name == CASES else chart.axis.name, labelpad=1.5)
        return
    axes.set_yticks(places, names)
    axes.set_ylim(len(names) - 0.45, -0.55)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    value_in = _VALUE_IN + _OURS_IN if chart.published else _VALUE_IN
    room = 1.0 if chart.runs[1] > 1 else 1.0 + value_in / style.size_in(axes)[0]
    axes.set_xlim(0, chart.frame[1] * room)
    ticks = 6 if len(chart.panels) == 1 else 4
    axes.xaxis.set_major_locator(MaxNLocator(ticks, steps=[1, 2, 2.5, 5, 10]))
    if chart.reference is not None:
        axes.axvline(chart.reference, color=style.INK, linewidth=0.7, zorder=1.5)


# --- throughput against delay, as papers on cellular links draw it: up and right is better --------


def draw_trade_off(panels: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]]) -> Figure:
    """Return panels side by side; of each name the delay in ms and the Mbit/s of every run.

    An ellipse has the standard deviation of the runs as its half axes, along and across their
    trend.
    """
    inks = style.case_inks(dict.fromkeys(name for names in panels.values() for name in names))
    handles = [
        Line2D([], [], linestyle="", marker=ink.marker, markersize=4, color=ink.colour, label=name)
        for name, ink in inks.items()
    ]
    width = style.PAGE_IN if len(panels) > 1 else style.COLUMN_IN
    figure, drawn = style.frame(
        [*panels], handles, width, left=LEFT_IN, height=_HEIGHT_IN, below=_BOTTOM_IN
    )
    for number, (axes, names) in enumerate(zip(drawn, panels.values(), strict=True)):
        for name, runs in names.items():
            look: dict[str, Any] = {"color": inks[name].colour, "marker": inks[name].marker}
            axes.plot(*zip(*runs, strict=True), linestyle="", markersize=3, alpha=0.75, **look)
            if len(runs) > 1:
                axes.add_patch(_spread(runs, inks[name].colour))
        longest = max(delay for runs in names.values() for delay, _ in runs)
        axes.set_xlim(longest * 1.1 or 1, 0)
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
        axes.set_xlabel("self-inflicted delay, p95 (ms)", labelpad=1.5)
        if not number % style.panels_across(len(panels)):
            axes.set_ylabel("goodput (Mbit/s)")
    every = [rate for names in panels.values() for runs in names.values() for _, rate in runs]
    drawn[0].set_ylim(0, max(every) * 1.1 or 1)
    return figure


def _spread(runs: Sequence[tuple[float, float]], colour: str) -> Ellipse:
    xs, ys = zip(*runs, strict=True)
    means = fmean(xs), fmean(ys)
    across, up, both = variance(xs), variance(ys), covariance(xs, ys)
    middle, apart = (across + up) / 2, math.hypot((across - up) / 2, both)
    axes = [2 * math.sqrt(max(each, 0.0)) for each in (middle + apart, middle - apart)]
    angle = math.degrees(math.atan2(2 * both, across - up) / 2)
    return Ellipse(means, *axes, angle=angle, facecolor=colour, alpha=0.3, linewidth=0, zorder=2)


# --- cumulative distributions of delays, and of flow completion times, by case --------------------

_SHARES_LEFT_IN = 0.52
_SHARES_HEIGHT_IN = 1.75
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
    figure, drawn = _frame_shares(
        [title for title, _ in panels], {name: inks[name] for name in names}
    )
    for number, (axes, (_, lines)) in enumerate(zip(drawn, panels, strict=True)):
        for name, distribution in lines.items():
            _draw_distribution(axes, distribution, inks[name])
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
    figure, drawn = _frame_shares(
        [title for title, _ in panels], {name: inks[name] for name in used}
    )
    for number, (axes, (_, lines)) in enumerate(zip(drawn, panels, strict=True)):
        for name, line in lines.items():
            _draw_distribution(axes, line, inks[name], _LEAST_MS)
        axes.set_xscale("log")
        axes.set_xlim(least / 1.15, most * 1.15)
        axes.xaxis.set_major_locator(LogLocator(subs=subs, numticks=9))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel(labels[0], labelpad=1.5)
        if not number:
            axes.set_ylabel(labels[1], labelpad=1.5)
    return figure


def _frame_shares(titles: Sequence[str], inks: Mapping[str, Ink]) -> tuple[Figure, list[Axes]]:
    """Return a figure and the axes of its panels, whose vertical axis has shares in percent."""
    handles = [
        Line2D([], [], color=ink.colour, linestyle=ink.dash, label=name)
        for name, ink in (inks.items() if len(inks) > 1 else ())
    ]
    width = style.PAGE_IN if len(titles) > 1 else style.COLUMN_IN
    figure, panels = style.frame(
        titles, handles, width, left=_SHARES_LEFT_IN, height=_SHARES_HEIGHT_IN, below=_BOTTOM_IN
    )
    for axes in panels:
        axes.set_ylim(0, 1.01)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    return figure, panels


def _draw_distribution(
    axes: Axes, distribution: Distribution, ink: Ink, least: float = -math.inf
) -> None:
    axes.plot(
        [max(value, least) for value in (distribution.values[0], *distribution.values)],
        [0.0, *distribution.shares],
        color=ink.colour,
        linestyle=ink.dash,
        linewidth=1.1,
        drawstyle="steps-post",
    )


# --- acknowledged segments over time: one line per case, labelled at its end ----------------------

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
    width = style.PAGE_IN - LEFT_IN - _LEADER_IN - _SAMPLE_IN - widest - 0.12
    height = max(_GROWTH_HEIGHT_IN, _GROWTH_ROW_IN * len(lines))
    figure = Figure(figsize=(style.PAGE_IN, _TOP_IN + height + _BOTTOM_IN))
    axes = style.box(figure, LEFT_IN, _BOTTOM_IN, width, height)
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
        _name_line(axes, name, ink, (end, place, width))
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


def _name_line(
    axes: Axes, name: str, ink: Ink, where: tuple[tuple[float, float], float, float]
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

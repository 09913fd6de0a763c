"""The figures of one run: all its panels on one time axis, and each panel alone."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ccplay.report.data.scene import Scene
from ccplay.report.figures import marks, style
from ccplay.report.figures.panel import Panel
from ccplay.report.figures.panels import panels
from ccplay.report.figures.strokes import grid
from ccplay.report.figures.style import Inks
from ccplay.report.figures.variables import own_values
from ccplay.report.figures.zoom import zoomed

_LEFT_IN = 0.62
_RIGHT_IN = 0.14
_BOTTOM_IN = 0.36
_HEAD_IN = 0.17
"""Height in inches of the line above each panel, with its title and its legend."""
_ROW_IN = 0.14
_GAP_IN = 0.09
_ALONE_IN = 1.55
_SECONDS = 4
"""Length of a run in seconds below which its axis has fractions of seconds."""


def stacked(scene: Scene, inks: Inks, names: Collection[str] = ()) -> Figure:
    """Return all panels of a run one above the other, on one time axis.

    ``names`` are plots to draw in addition to those that reports draw by default.
    """
    whole = [*panels(scene, inks, names), *own_values(scene, inks)]
    parts = zoomed(scene, inks)
    shown = [*whole, *parts]
    width = style.PAGE_IN - _LEFT_IN - _RIGHT_IN
    labels = marks.place(scene.marks, scene.span_s, width)
    top = marks.height_in(labels) + (0.06 if labels else 0.0)
    figure = Figure(figsize=(style.PAGE_IN, 1))
    drawn = []
    for panel in shown:
        axes = style.box(figure, 0, 0, 1, 1)
        handles = _draw(axes, panel, scene)
        title = style.text_width_in(panel.title, 7.5, "bold") + 0.2
        columns, rows = _fit(handles, width - title)
        drawn.append((panel, axes, handles, columns, _HEAD_IN + _ROW_IN * max(rows - 1, 0)))
    height = top + sum(p.height_in + head + _GAP_IN for p, *_, head in drawn)
    height += _BOTTOM_IN * (1 + len(parts))
    figure.set_size_inches(style.PAGE_IN, height)
    y = height - top
    for panel, axes, handles, columns, head in drawn:
        y -= head + panel.height_in
        style.move(axes, _LEFT_IN, y, width, panel.height_in)
        _head(axes, panel, handles, columns)
        y -= _GAP_IN
        if panel is shown[0]:
            marks.draw(axes, labels, head + 0.02)
        if panel in whole[:-1]:
            axes.tick_params(bottom=False, labelbottom=False)
        else:
            axes.set_xlabel("time (s)", labelpad=1.5)
            y -= _BOTTOM_IN
        # Labels are aligned, whatever the width of the numbers.
        axes.yaxis.set_label_coords(-0.42 / width, 0.5)
    return figure


def single(scene: Scene, panel: Panel) -> Figure:
    """Return one panel as a figure of the width of a paper's column."""
    width = style.COLUMN_IN - _LEFT_IN - 0.1
    figure = Figure(figsize=(style.COLUMN_IN, 1))
    rows = 1
    axes = style.box(figure, 0, 0, 1, 1)
    handles = _draw(axes, panel, scene)
    columns, rows = _fit(handles, width)
    head = _ROW_IN * rows + (0.15 if panel.title else 0) + 0.04
    height = _BOTTOM_IN + _ALONE_IN + head
    figure.set_size_inches(style.COLUMN_IN, height)
    style.move(axes, _LEFT_IN, _BOTTOM_IN, width, _ALONE_IN)
    axes.set_xlabel("time (s)", labelpad=1.5)
    axes.yaxis.set_label_coords(-0.42 / width, 0.5)
    if handles:
        axes.legend(
            handles=handles,
            loc="lower left",
            bbox_to_anchor=(0, 1.0 + 0.02 / _ALONE_IN),
            ncols=columns,
        )
    if panel.title:
        axes.annotate(
            panel.title,
            (0, 1),
            xycoords="axes fraction",
            xytext=(0, 72 * (_ROW_IN * rows + 0.03)),
            textcoords="offset points",
            fontsize=7.5,
            fontweight="bold",
            va="bottom",
            annotation_clip=False,
        )
    return figure


def _draw(axes: Axes, panel: Panel, scene: Scene) -> list[Artist]:
    handles = panel.draw(axes)
    left, right = panel.window or (0.0, scene.span_s)
    axes.set_xlim(left, right)
    axes.set_ylabel(panel.label)
    whole = panel.window is None and right >= _SECONDS
    axes.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 5, 10], integer=whole))
    axes.yaxis.set_major_locator(
        MaxNLocator(5, steps=[1, 2, 2.5, 5, 10], min_n_ticks=3, integer=panel.counts)
    )
    grid(axes)
    marks.rule(axes, [each for each in scene.marks if left <= each[0] <= right])
    return handles


def _head(axes: Axes, panel: Panel, handles: Sequence[Artist], columns: int) -> None:
    """Write a panel's title at the left and its legend at the right of the line above it."""
    if panel.title:
        axes.annotate(
            panel.title,
            (0, 1),
            xycoords="axes fraction",
            xytext=(0, 2.5),
            textcoords="offset points",
            fontsize=7.5,
            fontweight="bold",
            annotation_clip=False,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
        )
    if handles:
        axes.legend(
            handles=list(handles),
            loc="lower right",
            bbox_to_anchor=(1, 1),
            ncols=columns,
        )


def _fit(handles: Sequence[Artist], width_in: float) -> tuple[int, int]:
    """Return the numbers of columns and rows with which a legend fits into a width."""
    if not handles:
        return 1, 0
    columns = style.legend_columns([str(each.get_label()) for each in handles], width_in + 0.1)
    return columns, -(-len(handles) // columns)

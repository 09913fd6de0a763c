"""The figures of one run: all its panels on one time axis, and each by itself."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ccplay.report.figures import marks, style
from ccplay.report.figures.panels import Panel, panels
from ccplay.report.figures.style import Inks
from ccplay.report.scene import Scene

_LEFT_IN = 0.62
_RIGHT_IN = 0.14
_BOTTOM_IN = 0.36
_HEAD_IN = 0.17
"""The line above each panel, with its title and its legend."""
_GAP_IN = 0.09
_ALONE_IN = 1.55


def stacked(scene: Scene, inks: Inks) -> Figure:
    """Return all panels of a run above one another, on one time axis."""
    shown = panels(scene, inks)
    width = style.PAGE_IN - _LEFT_IN - _RIGHT_IN
    labels = marks.place(scene.marks, scene.span_s, width)
    top = marks.height_in(labels) + (0.06 if labels else 0.0)
    height = top + sum(each.height_in + _HEAD_IN + _GAP_IN for each in shown) + _BOTTOM_IN
    figure = Figure(figsize=(style.PAGE_IN, height))
    y = height - top
    for number, panel in enumerate(shown):
        y -= _HEAD_IN + panel.height_in
        axes = style.box(figure, _LEFT_IN, y, width, panel.height_in)
        handles = _draw(axes, panel, scene)
        _head(axes, panel, handles)
        y -= _GAP_IN
        if number == 0:
            marks.draw(axes, labels, _HEAD_IN + 0.02)
        if panel is not shown[-1]:
            axes.tick_params(labelbottom=False)
        else:
            axes.set_xlabel("time (s)", labelpad=1.5)
        # All labels on one line, whatever the width of the numbers.
        axes.yaxis.set_label_coords(-0.42 / width, 0.5)
    return figure


def single(scene: Scene, panel: Panel) -> Figure:
    """Return one panel as a figure of a column's width."""
    width = style.COLUMN_IN - _LEFT_IN - 0.1
    figure = Figure(figsize=(style.COLUMN_IN, 1))
    rows = 1
    axes = style.box(figure, 0, 0, 1, 1)
    handles = _draw(axes, panel, scene)
    columns, rows = _fit(handles, width)
    head = 0.14 * rows + (0.15 if panel.title else 0) + 0.04
    height = _BOTTOM_IN + _ALONE_IN + head
    figure.set_size_inches(style.COLUMN_IN, height)
    axes.set_position(
        (
            _LEFT_IN / style.COLUMN_IN,
            _BOTTOM_IN / height,
            width / style.COLUMN_IN,
            _ALONE_IN / height,
        )
    )
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
            xytext=(0, 72 * (0.14 * rows + 0.03)),
            textcoords="offset points",
            fontsize=7.5,
            fontweight="bold",
            va="bottom",
            annotation_clip=False,
        )
    return figure


def _draw(axes: Axes, panel: Panel, scene: Scene) -> list[Artist]:
    handles = panel.draw(axes)
    axes.set_xlim(0, scene.span_s)
    axes.set_ylabel(panel.label)
    axes.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 5, 10], integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10], min_n_ticks=3))
    marks.rule(axes, scene.marks)
    return handles


def _head(axes: Axes, panel: Panel, handles: Sequence[Artist]) -> None:
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
            ncols=len(handles),
        )


def _fit(handles: Sequence[Artist], width_in: float) -> tuple[int, int]:
    """Return in how many columns and rows a legend fits into a width."""
    if not handles:
        return 1, 0
    columns = style.legend_columns([str(each.get_label()) for each in handles], width_in + 0.1)
    return columns, -(-len(handles) // columns)

"""The two axes of a plot, as rows of cells: values at the left, moments at the bottom."""

from __future__ import annotations

from collections.abc import Callable

from ccplay.ui.cells.sheet import Run
from ccplay.ui.plots.picture import Picture
from ccplay.ui.plots.scale import Scale, short, time_ticks
from ccplay.ui.plots.scale import moment as clock

GUTTER = 5
"""Number of columns to the left of a plot's area: labels of four characters, and the axis."""


def value_axis(
    picture: Picture, scale: Scale, line_of: Callable[[float], int], lines: int
) -> list[list[Run]]:
    """Return the value axis from top to bottom; ``line_of`` returns the line of a value."""
    glyphs, inks = picture.glyphs, picture.inks
    labels = {line_of(value): short(value) for value in scale.ticks()}
    ticked = {*labels, *map(line_of, scale.minor_ticks())}
    return [
        [
            (f"{labels.get(line, ''):>{GUTTER - 1}}", inks.muted),
            (glyphs.tee_left if line in ticked else glyphs.vertical, inks.axis),
        ]
        for line in range(lines)
    ]


def time_axis(picture: Picture, columns: int) -> list[Run]:
    """Return the time axis below ``columns`` columns, with the unit of the values in its corner."""
    glyphs, inks = picture.glyphs, picture.inks
    ticks = time_ticks(picture.left, picture.width, columns // 9)
    unit = picture.unit if len(picture.unit) < GUTTER else ""
    row: list[Run] = [(f"{unit:>{GUTTER - 1}}", inks.muted), (glyphs.bottom_left, inks.axis)]
    at = 0
    for moment in ticks:
        x, label = picture.column(moment + 1e-6, columns), clock(moment)
        if x < at or x + 1 + len(label) > columns:
            continue
        sign = glyphs.tee_up if x else glyphs.horizontal
        row += [
            (glyphs.horizontal * (x - at) + sign, inks.axis),
            (label, inks.muted),
        ]
        at = x + 1 + len(label)
    return [*row, (glyphs.horizontal * (columns - at), inks.axis)]

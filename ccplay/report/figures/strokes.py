"""Draws many strokes as one line with gaps; as separate paths they would be most of a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes

from ccplay.state.series import MISSING


def grid(axes: Axes) -> None:
    """Draw the grid of ``axes``, the limits of which must be set."""
    axes.grid(visible=False)
    style_of: dict[str, Any] = {
        "color": mpl.rcParams["grid.color"],
        "linewidth": mpl.rcParams["grid.linewidth"],
        "zorder": 0.6,
    }
    strokes(axes, _within(axes.get_xticks(), axes.get_xlim()), (0, 1), **style_of)
    strokes(axes, _within(axes.get_yticks(), axes.get_ylim()), (0, 1), level=True, **style_of)


def strokes(
    axes: Axes,
    places: Sequence[float],
    span: tuple[float, float],
    *,
    level: bool = False,
    **style_of: Any,
) -> None:
    """Draw a vertical stroke at each place, between two shares of the height of ``axes``.

    ``level`` strokes are horizontal.
    """
    along = [each for place in places for each in (place, place, MISSING)]
    across = [*span, MISSING] * len(places)
    axes.plot(
        *((across, along) if level else (along, across)),
        transform=axes.get_yaxis_transform() if level else axes.get_xaxis_transform(),
        scalex=False,
        scaley=False,
        solid_capstyle="butt",
        **style_of,
    )


def _within(ticks: Iterable[float], ends: tuple[float, float]) -> list[float]:
    return [each for each in ticks if ends[0] <= each <= ends[1]]

"""All plots that the screen offers, in order, and those that it shows."""

from __future__ import annotations

from ccplay.plots.table import CWND, GOODPUT, PLOTS, QUEUE, RTT
from ccplay.ui.plots import own_values
from ccplay.ui.plots.pane import Pane
from ccplay.ui.view import View

PANES: dict[str, Pane] = {name: Pane(plot) for name, plot in PLOTS.items() if plot.on_screen}
"""Panes by name; ``own_values`` makes those for own values of algorithms and queues."""

DEFAULT = (CWND.name, QUEUE.name, RTT.name)
"""Plots shown from left to right if the user has chosen none."""

WIDE_DEFAULT = (*DEFAULT, GOODPUT.name)
"""Plots shown from left to right on a wide screen if the user has chosen none."""

LEAST_WIDTH = 26
"""Smallest width in columns of a plot, for its axis and its title."""

_WIDE = 160
"""Smallest width in columns of a screen that shows four plots, as wide as three on 120 columns."""


def plot_at(view: View, name: str) -> Pane:
    """Return the plot of this name; a chosen variable replaces RTT."""
    if name == RTT.name and (own := own_values.shown(view)) is not None:
        return own_values.pane(view, own)
    return PANES[name] if name in PANES else own_values.pane(view, name)


def room(width: int) -> int:
    """Return the number of plots that fit side by side on a screen of ``width`` columns."""
    return max(width // LEAST_WIDTH, 1)


def unasked(width: int) -> tuple[str, ...]:
    """Return the default plots for a screen of ``width`` columns."""
    return WIDE_DEFAULT if width >= _WIDE else DEFAULT


def toggled(chosen: tuple[str, ...], name: str, room: int) -> tuple[str, ...]:
    """Return the plots shown after ``name`` is toggled: removed if shown, otherwise added last.

    If there is no room, the plot replaces the last one. The only plot can't be removed.
    """
    shown = chosen[:room]
    if name in shown:
        return tuple(each for each in shown if each != name) or shown
    return (*shown[: room - 1], name)

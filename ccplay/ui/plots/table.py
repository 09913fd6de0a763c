"""All plots, in the order of choice, and those that the screen shows."""

from __future__ import annotations

from ccplay.plots.table import CWND, GOODPUT, PLOTS, QUEUE, RTT
from ccplay.ui.plots import own_values
from ccplay.ui.plots.pane import Pane
from ccplay.ui.view import View

PANES: dict[str, Pane] = {name: Pane(plot) for name, plot in PLOTS.items() if plot.on_screen}
"""Panes by name; ``own_values`` makes those for values of algorithms and queues."""

DEFAULT = (CWND.name, QUEUE.name, RTT.name)
"""Plots that are shown unless others are chosen, from left to right."""

WIDE_DEFAULT = (*DEFAULT, GOODPUT.name)
"""The same where there is room for it: who has most, and since when."""

LEAST_WIDTH = 26
"""Cells that a plot needs for its axis and its title."""

_WIDE = 160
"""Cells of a screen from which on four plots have as many each as three on 120."""


def plot_at(view: View, name: str) -> Pane:
    """Return the plot at a place: in place of RTT a chosen variable."""
    if name == RTT.name and (own := own_values.shown(view)) is not None:
        return own_values.pane(view, own)
    return PANES[name] if name in PANES else own_values.pane(view, name)


def room(width: int) -> int:
    """Return how many plots stand side by side on a screen of ``width`` cells."""
    return max(width // LEAST_WIDTH, 1)


def unasked(width: int) -> tuple[str, ...]:
    """Return the plots of a screen of ``width`` cells whose user has chosen none."""
    return WIDE_DEFAULT if width >= _WIDE else DEFAULT


def toggled(chosen: tuple[str, ...], name: str, room: int) -> tuple[str, ...]:
    """Return the plots shown after a choice: removed if shown, otherwise added last.

    Without room it replaces the last one. The only plot stays.
    """
    shown = chosen[:room]
    if name in shown:
        return tuple(each for each in shown if each != name) or shown
    return (*shown[: room - 1], name)

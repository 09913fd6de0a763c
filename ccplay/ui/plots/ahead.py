"""Prepares data for long windows of the shown plots, a little in each frame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ccplay.state.lab_state import Flow, Queue
from ccplay.state.series import Series
from ccplay.ui import lineup
from ccplay.ui.plots.pane import Pane
from ccplay.ui.plots.subjects import link_queues
from ccplay.ui.plots.values import series_of
from ccplay.ui.view import View

_MOST = 8192
"""Largest number of values read from a series in one frame, which takes a millisecond."""


def build(view: View, panes: Sequence[Pane]) -> bool:
    """Prepare a part of one series for long windows; return False if nothing is left to do.

    Without preparation, a key that widens the window or groups flows would stall the screen.
    """
    return any(series.build(_MOST) for series in _series(view, panes))


def _series(view: View, panes: Sequence[Pane]) -> Iterator[Series]:
    flows = lineup.in_window(view)[: lineup.MOST]
    subjects: list[Flow | Queue] = [*link_queues(view), *flows]
    for pane in panes:
        lines = pane.lines(view)
        variables = [*(each.variable for each in lines), *(c.variable for c in pane.plot.counts)]
        for subject in subjects:
            every = (series_of(subject, variable) for variable in variables)
            yield from (series for series in every if series is not None)

"""The ribbon: each flow's congestion state over time, aligned under the cwnd plot."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ccplay.model.wording import CA_STATES
from ccplay.state.lab_state import Flow
from ccplay.state.series import Series
from ccplay.state.trace import Trace
from ccplay.ui.cells.sheet import Row, Run, fit
from ccplay.ui.plots.canvas import GUTTER
from ccplay.ui.view import View

_HOLD = 3.5
"""Sampling intervals that a sample stands for, as in the plots."""

_SHORT = ("opn", "dis", "cwr", "rec", "loss")


def title(view: View, width: int) -> list[Run]:
    """Return the legend."""
    words = CA_STATES if width >= 52 else _SHORT
    row: list[Run] = [("state  " if width >= 36 else "", f"bold {view.ink('text')}")]
    for state, word in enumerate(words):
        row.append((view.glyphs.ribbon[state], view.look.ca_states[state]))
        row.append((f"{word.lower()} ", view.ink("muted")))
    return row


class Ribbon:
    """Caches complete columns: a live ribbon costs one column a frame."""

    def __init__(self) -> None:
        self._page: tuple[float, float, int] | None = None
        self._until = 0.0
        self._known: dict[str, list[int | None]] = {}

    def rows(self, view: View, width: int, height: int) -> list[Row]:
        """Return the legend and a row for each flow: the worst state in each column."""
        head = view.playhead
        columns = max(width - GUTTER - 1, 1)
        page = (head.left, head.width, columns)
        if page != self._page or head.until < self._until:
            self._page = page
            self._known.clear()
        self._until = head.until
        if view.unread:
            # Values missing in these columns may yet be read.
            self._page = None
        flows = [
            each
            for each in view.state.flows.values()
            if each.started < head.until and (each.ended is None or each.ended > head.left)
        ]
        # The selected flow always fits.
        flows.sort(key=lambda flow: (flow.name != view.selected, view.number(flow.name)))
        flows = sorted(flows[: height - 1], key=lambda flow: view.number(flow.name))
        return [title(view, width), *(self._row(view, flow, columns) for flow in flows)]

    def _row(self, view: View, flow: Flow, columns: int) -> list[Run]:
        known = self._known.setdefault(flow.name, [])
        # The last column was not complete when it was drawn.
        del known[-1:]
        known += states(view, flow, columns, len(known))
        label = f"{view.flow_glyph(flow.name)}{flow.name}"
        row: list[Run] = [(f"{fit(label, GUTTER - 1)} ", f"bold {view.flow_ink(flow.name)}")]
        for state in known:
            if state is None:
                row.append((" ", ""))
            else:
                row.append((view.glyphs.ribbon[state], view.look.ca_states[state]))
        return row


def states(view: View, flow: Flow, columns: int, first: int = 0) -> list[int | None]:
    """Return the worst congestion state of a flow in each column from ``first`` to the newest."""
    head, series = view.playhead, flow.series["ca_state"]
    slot = head.width / columns
    last = min(int((head.until - head.left) / slot), columns - 1)
    edges = [min(head.left + slot * i, head.until + 1e-6) for i in range(first, last + 2)]
    ticks = [series.timeline.at_or_after(edge) for edge in edges]
    found = [
        series.extremes(*pair) or _before(series, pair[0], edge, view.interval)
        for pair, edge in zip(pairwise(ticks), edges, strict=False)
    ]
    worst = [None if each is None else min(int(each[1]), 4) for each in found]
    return worst if flow.trace is None else _traced(flow.trace, edges, worst)


def _before(series: Series, tick: int, edge: float, interval: float) -> tuple[float, float] | None:
    """Return the sample before a column that is too narrow to contain one."""
    last = tick - 1
    if (
        not series.first <= last < series.end
        or series.timeline.time(last) <= edge - _HOLD * interval
    ):
        return None
    return series.extremes(last, tick)


def _traced(trace: Trace, edges: Sequence[float], worst: list[int | None]) -> list[int | None]:
    """Return the traced states at the moments of their changes, if traced."""
    series = trace.ca_state
    ticks = [series.timeline.at_or_after(edge) for edge in edges]
    states = list(worst)
    for at, (start, end) in enumerate(pairwise(ticks)):
        if start > series.timeline.first and trace.covers(edges[at + 1]):
            # The state at the column's left edge, and changes within it.
            found = series.extremes(start - 1, end)
            states[at] = states[at] if found is None else min(int(found[1]), 4)
        elif (found := series.extremes(start, end)) is not None:
            states[at] = max(states[at] or 0, min(int(found[1]), 4))
    return states

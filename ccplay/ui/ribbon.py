"""The ribbon: each flow's congestion state over time, aligned under the cwnd plot.

A short column shows the worst state within it. In a long column nearly every flow has lost a
segment, as has some flow of a group in any column. The height is then the share of time outside
Open, and the colour that of the most frequent other state.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from heapq import nsmallest
from itertools import pairwise

import msgspec

from ccplay.model.series import Series
from ccplay.model.wording import CA_STATES
from ccplay.traffic.connections import AckTrace, Flow
from ccplay.ui import lineup
from ccplay.ui.cells import Row, Run, abbreviated, fit
from ccplay.ui.plot_canvas import GUTTER
from ccplay.ui.plot_traces import HOLD, is_long
from ccplay.ui.view import View

_CWR, _LOSS = 2, 4
"""Numbers of the congestion states CWR and Loss in the kernel."""

_TIMES = ("share of time in  ", "time in  ")
"""First words of the legend of long columns: spelled out, and short."""

_SHORT = ("opn", "dis", "CWR", "rec", "loss")
_HEADS = ("congestion state  ", "state  ")


def title(view: View, width: int, *, long: bool = False) -> list[Run]:
    """Return the legend of short columns, or of ``long`` ones."""
    glyphs, bars = view.glyphs, view.glyphs.bars
    signs, heads, room = glyphs.ribbon, _HEADS, width
    if long:
        signs = (glyphs.ribbon[0], bars[1], glyphs.reduced[0], bars[len(bars) // 2], glyphs.timeout)
        # One cell stays free, because the title of the events follows.
        heads, room = _TIMES, width - 1
    words = CA_STATES if _needed(CA_STATES) <= room else _SHORT
    head = next((each for each in heads if len(each) + _needed(words) <= room), "")
    row: list[Run] = [(head, f"bold {view.ink('text')}")]
    for sign, word, ink in zip(signs, words, view.look.ca_states, strict=True):
        row += [(sign, ink), (f"{word} ", view.ink("muted"))]
    return row


def _needed(words: Sequence[str]) -> int:
    """Return the number of cells for the names of the states, each after its sign."""
    return sum(len(word) + 2 for word in words) - 1


class Ribbon:
    """The ribbon, with complete columns cached: a live frame computes one column per row."""

    def __init__(self) -> None:
        self._page: tuple[float, float, int, bool] | None = None
        self._until = 0.0
        self._known: dict[tuple[str, ...], list[Run]] = {}
        """Cells drawn so far in each row, by the names of the row's flows."""

    def rows(self, view: View, width: int, height: int) -> list[Row]:
        """Return the legend and, for each flow, a row with its state in each column."""
        head = view.shown.playhead
        columns = max(width - GUTTER - 1, 1)
        page = (head.left, head.width, columns, view.shown.listing.grouped)
        if page != self._page or head.until < self._until:
            self._page = page
            self._known.clear()
        self._until = head.until
        if view.unread:
            # Values missing in these columns may yet be read.
            self._page = None
        # The selected flow has a row even if others have no room.
        listed = list(_listed(view))
        words = frozenset(row.word for row in listed)
        found = nsmallest(height - 1, listed, key=lambda row: (not row.chosen, row.number))
        found.sort(key=lambda row: row.number)
        long = view.shown.listing.grouped or is_long(head.width / columns)
        short = abbreviated(words, GUTTER - 2, view.glyphs.ellipsis)
        rows = (self._row(view, each, short[each.word], columns, long=long) for each in found)
        return [title(view, width, long=long), *rows]

    def _row(self, view: View, row: _Listed, word: str, columns: int, *, long: bool) -> list[Run]:
        known = self._known.setdefault(tuple(flow.name for flow in row.flows), [])
        # The last column was not complete when it was drawn.
        del known[-1:]
        [flow, *_], inks = row.flows, view.look.ca_states
        if long:
            every = [each.series["ca_state"] for each in row.flows]
            _, ticks = _edges(view, every[0], columns, len(known))
            known += [_shares(view, every, *pair) for pair in pairwise(ticks)]
        else:
            known += [
                (" ", "") if state is None else (view.glyphs.ribbon[state], inks[state])
                for state in states(view, flow, columns, len(known))
            ]
        label = f"{view.flow_glyph(flow.name)}{word}"
        head = fit(label, GUTTER - 1, view.glyphs.ellipsis)
        return [(f"{head} ", f"bold {view.flow_ink(flow.name)}"), *known]


class _Listed(msgspec.Struct, frozen=True):
    """The subject of a row: a flow, or the flows of one algorithm."""

    word: str
    flows: tuple[Flow, ...]
    number: int
    chosen: bool


def _listed(view: View) -> Iterator[_Listed]:
    """Yield the filtered flows in the window, or their groups."""
    flows, places, selected = lineup.in_window(view), view.state.places, view.shown.selected
    if not view.shown.listing.grouped:
        for each in flows:
            yield _Listed(each.name, (each,), places[each.name], each.name == selected)
        return
    for group in lineup.groups(view, flows):
        yield _Listed(group.cc, group.flows, places[group.first], group.chosen(view) == selected)


def _shares(view: View, every: Sequence[Series], start: int, end: int) -> Run:
    """Return the cell of a long column for the mean shares of time in each state."""
    inks, glyphs = view.look.ca_states, view.glyphs
    # Extremes are exact, however rare the worst state is; shares may be estimated.
    found = [spans for series in every if (spans := series.extremes(start, end)) is not None]
    if not found:
        return " ", ""
    worst = int(max(span[1] for span in found))
    if worst >= _LOSS:
        return glyphs.timeout, f"bold {inks[_LOSS]}"
    if not worst:
        return glyphs.ribbon[0], inks[0]
    known = [parts for series in every if (parts := series.shares(start, end, worst + 1))]
    shares = [sum(parts) / len(known) for parts in zip(*known, strict=True)]
    shares = shares or [1.0, *[0.0] * worst]
    most = max(range(1, worst + 1), key=lambda state: (shares[state], state))
    # The lowest bar is higher than the line of Open, so that colour is not the only cue.
    steps = glyphs.reduced if most == _CWR else glyphs.bars[1:]
    height = math.ceil((1.0 - shares[0]) * len(steps) - 1e-9)
    return steps[max(height, 1) - 1], inks[most]


def _edges(view: View, series: Series, columns: int, first: int) -> tuple[list[float], list[int]]:
    """Return the edges of the columns from ``first`` to the newest, and their ticks."""
    head = view.shown.playhead
    slot = head.width / columns
    last = min(int((head.until - head.left) / slot), columns - 1)
    edges = [min(head.left + slot * i, head.until + 1e-6) for i in range(first, last + 2)]
    return edges, [series.timeline.at_or_after(edge) for edge in edges]


def states(view: View, flow: Flow, columns: int, first: int = 0) -> list[int | None]:
    """Return the worst congestion state of a flow in each column from ``first`` to the newest."""
    series = flow.series["ca_state"]
    edges, ticks = _edges(view, series, columns, first)
    found = [
        span or _before(series, tick, edge, view.interval)
        for span, tick, edge in zip(series.thinned(ticks), ticks, edges, strict=False)
    ]
    worst = [None if each is None else min(int(each[1]), 4) for each in found]
    return worst if flow.trace is None else _traced(flow.trace, edges, worst)


def _before(series: Series, tick: int, edge: float, interval: float) -> tuple[float, float] | None:
    """Return the sample that still holds in a column too narrow to contain one; else None."""
    last = tick - 1
    if (
        not series.first <= last < series.end
        or series.timeline.time(last) <= edge - HOLD * interval
    ):
        return None
    return series.extremes(last, tick)


def _traced(trace: AckTrace, edges: Sequence[float], worst: list[int | None]) -> list[int | None]:
    """Return the worst states, made exact in columns that the trace of the flow covers."""
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

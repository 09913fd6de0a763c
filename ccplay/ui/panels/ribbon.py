"""The ribbon: each flow's congestion state over time, aligned under the cwnd plot."""

from __future__ import annotations

from ccplay.state import Flow
from ccplay.ui.plot import GUTTER
from ccplay.ui.sheet import Row, Run, fit
from ccplay.ui.view import View
from ccplay.words import CA_STATES

_SHORT = ("opn", "dis", "cwr", "rec", "loss")


def title(view: View, width: int) -> list[Run]:
    """Return the legend."""
    words = CA_STATES if width >= 52 else _SHORT
    row: list[Run] = [("state  " if width >= 36 else "", f"bold {view.ink('text')}")]
    for state, word in enumerate(words):
        row.append((view.glyphs.ribbon[state], view.look.ca_states[state]))
        row.append((f"{word.lower()} ", view.ink("muted")))
    return row


def rows(view: View, width: int, height: int) -> list[Row]:
    """Return the legend and one row a flow: the worst state within each column."""
    head = view.playhead
    flows = [
        each
        for each in view.state.flows.values()
        if each.started < head.until and (each.ended is None or each.ended > head.left)
    ]
    # The selected flow is never among those that don't fit.
    flows.sort(key=lambda flow: (flow.name != view.selected, view.number(flow.name)))
    flows = sorted(flows[: height - 1], key=lambda flow: view.number(flow.name))
    columns = max(width - GUTTER - 1, 1)
    return [title(view, width), *(_row(view, flow, columns) for flow in flows)]


def _row(view: View, flow: Flow, columns: int) -> list[Run]:
    label = f"{view.flow_mark(flow.name)}{flow.name}"
    row: list[Run] = [(f"{fit(label, GUTTER - 1)} ", f"bold {view.flow_ink(flow.name)}")]
    for state in states(view, flow, columns):
        if state is None:
            row.append((" ", ""))
        else:
            row.append((view.glyphs.ribbon[state], view.look.ca_states[state]))
    return row


def states(view: View, flow: Flow, columns: int) -> list[int | None]:
    """Return the worst congestion state of a flow in each column of the window."""
    head, series = view.playhead, flow.series["ca_state"]
    slot = head.width / columns
    edges = [min(head.left + slot * i, head.until + 1e-6) for i in range(columns + 1)]
    ticks = [series.timeline.at_or_after(edge) for edge in edges]
    found = [series.extremes(*pair) for pair in zip(ticks[:-1], ticks[1:], strict=True)]
    return [None if each is None else min(int(each[1]), 4) for each in found]

"""What plots of flows share: one trace a flow in its colour, and its value in the title."""

from __future__ import annotations

from collections.abc import Callable

from ccplay.analysis.trust import credible
from ccplay.state.lab_state import Flow
from ccplay.ui.cells.sheet import Run
from ccplay.ui.plots.scale import whole
from ccplay.ui.plots.traces import Pen, SeriesTrace, Trace, TracedTrace
from ccplay.ui.view import View


def names(view: View) -> list[str]:
    """Return the flows that the window shows anything of, the selected one last, on top."""
    head = view.playhead
    found = [
        each.name
        for each in view.state.flows.values()
        if each.started < head.until and (each.ended is None or each.ended > head.left)
    ]
    return sorted(found, key=lambda name: name == view.selected)


def pen(view: View, name: str) -> Pen:
    """Return how a flow is drawn."""
    return Pen(
        view.flow_ink(name),
        mark=view.flow_mark(name),
        lane=view.number(name) * 5 % 12,
        ascii=view.flow_mark(name),
    )


def traces(view: View, field: str, factor: float = 1.0) -> list[Trace]:
    """Return one of ``FLOW_SERIES`` of each flow, times a factor."""
    return [_trace(view, view.state.flows[name], field, factor) for name in names(view)]


def _trace(view: View, flow: Flow, field: str, factor: float) -> Trace:
    ink = pen(view, flow.name)
    sampled = SeriesTrace(flow.series[field], ink, factor, view.interval, most=credible(field))
    return traced(sampled, flow, field)


def traced(sampled: SeriesTrace, flow: Flow, field: str) -> Trace:
    """Return a trace that is exact where the flow is traced."""
    if flow.trace is None:
        return sampled
    return TracedTrace(sampled, flow.trace.series[field])


def values(
    view: View, value: Callable[[Flow], float | None], write: Callable[[float], str] = whole
) -> list[Run]:
    """Return the value of each running flow, the selected one first."""
    runs: list[Run] = []
    for flow in sorted(view.running(), key=lambda flow: flow.name != view.selected):
        if (number := value(flow)) is not None:
            bold = "bold " if flow.name == view.selected else ""
            text = f" {view.flow_mark(flow.name)} {write(number)}"
            runs.append((text, bold + view.flow_ink(flow.name)))
    return runs


def sampled_values(view: View, field: str, factor: float = 1.0) -> list[Run]:
    """Return one of ``FLOW_SERIES`` of each running flow, times a factor."""

    def value(flow: Flow) -> float | None:
        found = flow.series[field].at(view.tick)
        return None if found is None else found * factor

    return values(view, value)

"""The traces of flows, singly, stacked or in groups, and their values in titles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ccplay.analysis.trust import credible
from ccplay.model.variables import Variable
from ccplay.plots.derived import per_second, values_at
from ccplay.plots.plot import Line
from ccplay.state.lab_state import Flow
from ccplay.ui import lineup
from ccplay.ui.cells.sheet import Run
from ccplay.ui.plots import ghost_plots
from ccplay.ui.plots.combined import GroupTrace, ShiftedTrace, stacked
from ccplay.ui.plots.traces import (
    Pen,
    RateTrace,
    SeriesTrace,
    Trace,
    TracedTrace,
)
from ccplay.ui.plots.values import LANES, at, series_of, write
from ccplay.ui.view import View, is_running


def flow_pen(view: View, name: str, *, dim: bool = False) -> Pen:
    """Return the pen of a flow; ``dim`` makes it fainter, for flows in the background."""
    return Pen(
        view.flow_ink(name),
        glyph=view.flow_glyph(name),
        kind=view.flow_kind(name),
        lane=view.number(name) * 5 % LANES,
        ascii=view.flow_glyph(name),
        dim=dim,
    )


def flow_trace(
    view: View, flow: Flow, variable: Variable, pen: Pen, factor: float, *, scaled: bool = True
) -> Trace | None:
    """Return the trace of a flow's variable, ACK by ACK if traced; None if it has no values."""
    series = series_of(flow, variable)
    if series is None:
        return None
    if variable.rate is not None:
        return RateTrace(series, pen, factor * per_second(variable), variable.rate.over_s)
    most = credible(variable.name)
    sampled = SeriesTrace(series, pen, factor, view.interval, scaled=scaled, most=most)
    if flow.trace is None or variable.name not in flow.trace.series:
        return sampled
    return TracedTrace(sampled, flow.trace.series[variable.name])


def traces(view: View, line: Line, factor: float) -> list[Trace]:
    """Return the traces of flows: a line each, a stack of all, or the mean of each group."""
    flows = lineup.drawn(view)
    stacks = view.listing.stacked and line.adds_up
    if view.listing.grouped:
        return _group_traces(view, lineup.groups(view, flows), line, factor, stacks=stacks)
    if stacks:
        flows = lineup.whole(flows)
    # In a stack no trace hides another.
    crowd = not stacks and lineup.crowded(view, flows)
    found: list[Trace] = []
    for flow in flows:
        pen = flow_pen(view, flow.name, dim=crowd and flow.name != view.selected)
        if (trace := flow_trace(view, flow, line.variable, pen, factor)) is not None:
            found.append(trace)
    # The selected flow, which is last, becomes the lowest layer.
    return [*stacked(found[::-1])] if stacks else found


def _group_traces(
    view: View, groups: Sequence[lineup.Group], line: Line, factor: float, *, stacks: bool
) -> list[Trace]:
    """Return each group's mean over a band, or a stack of all flows in the groups' colours.

    The group of the selected flow is on top; in a stack it is the lowest layer.
    """
    found: list[Trace] = []
    layers: list[Trace] = []
    for group in sorted(groups, key=lambda group: group.chosen(view) == view.selected):
        pen = flow_pen(view, group.first)
        every = (flow_trace(view, flow, line.variable, pen, factor) for flow in group.flows)
        parts = tuple(each for each in every if each is not None)
        layers += parts
        if parts:
            found.append(GroupTrace(parts, pen) if len(parts) > 1 else parts[0])
    return [*stacked(layers[::-1])] if stacks else found


def values_of(view: View, flows: Iterable[Flow], variable: Variable) -> list[tuple[Flow, float]]:
    """Return the value of each running flow that has one, in the variable's unit."""
    found = [(flow, series_of(flow, variable)) for flow in flows if is_running(flow, view.t)]
    known = [(flow, series) for flow, series in found if series is not None]
    values = values_at([series for _, series in known], variable, view.t)
    pairs = zip(known, values, strict=True)
    return [(flow, value) for (flow, _), value in pairs if value is not None]


def runs(view: View, variable: Variable, factor: float) -> list[Run]:
    """Return the values of the drawn flows, the selected one's first.

    If there are many flows, the others follow from the largest value to the smallest.
    """
    drawn = lineup.drawn(view)[::-1]
    known = {flow.name: value for flow, value in values_of(view, drawn, variable)}
    flows = [each for each in drawn if each.name in known]
    if view.listing.grouped:
        return _group_runs(view, lineup.groups(view, flows), known, variable, factor)
    chosen, rest = flows[:1], flows[1:]
    if chosen and chosen[0].name != view.selected:
        chosen, rest = [], flows
    if lineup.crowded(view, flows):
        rest.sort(key=lambda flow: known[flow.name], reverse=True)
    else:
        rest.reverse()
    shown = ((each.name, known[each.name] * factor) for each in (*chosen, *rest))
    return [_flow_run(view, name, value, variable) for name, value in shown]


def _flow_run(view: View, name: str, value: float, variable: Variable) -> Run:
    bold = "bold " if name == view.selected else ""
    text = f" {view.flow_glyph(name)} {write(variable, value)}"
    return text, bold + view.flow_ink(name)


def _group_runs(
    view: View,
    groups: Sequence[lineup.Group],
    known: Mapping[str, float],
    variable: Variable,
    factor: float,
) -> list[Run]:
    """Return each group's mean; the table has the sums."""
    runs: list[Run] = []
    for group in sorted(groups, key=lambda group: group.chosen(view) != view.selected):
        value = sum(known[flow.name] for flow in group.flows) / len(group.flows) * factor
        text = f" {view.flow_glyph(group.first)} {group.cc} {write(variable, value)}"
        bold = "bold " if group.chosen(view) == view.selected else ""
        runs.append((text, bold + view.flow_ink(group.first)))
    return runs


def ghosts(view: View, variable: Variable, factor: float) -> list[ShiftedTrace]:
    """Return the traces of the ghost's flows."""

    def trace(flow: Flow, pen: Pen, interval: float) -> Trace | None:
        if (series := series_of(flow, variable)) is None:
            return None
        if variable.rate is not None:
            return RateTrace(series, pen, factor * per_second(variable), variable.rate.over_s)
        return SeriesTrace(series, pen, factor, interval, most=credible(variable.name))

    return ghost_plots.flow_traces(view, trace)


def ghost_values(view: View, variable: Variable, factor: float) -> list[Run]:
    """Return the values of the ghost's flows at the moment shown."""
    return ghost_plots.values(
        view,
        lambda flow, t: at(series_of(flow, variable), variable, t, factor),
        lambda value: write(variable, value),
    )

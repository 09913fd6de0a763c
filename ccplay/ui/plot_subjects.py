"""The traces of a plot's lines, subject by subject, and their values in its title."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from ccplay.model.variables import Subject, Variable
from ccplay.plots.levels import counts_bytes
from ccplay.plots.subjects import owners, series_of, values_at
from ccplay.state.samples import Queue
from ccplay.traffic import KINDS
from ccplay.traffic.connections import Flow
from ccplay.traffic.plot import Line
from ccplay.ui import lineup, plot_ghosts
from ccplay.ui.cells import Run
from ccplay.ui.plot_ghosts import GroupTrace, ShiftedTrace, stacked
from ccplay.ui.plot_traces import (
    LANES,
    DotTrace,
    Pen,
    PlotTrace,
    SeriesTrace,
    trace_of,
    value_on_axis,
    write,
)
from ccplay.ui.view import LINGER_S, View, is_running

# --- the traces of flows, singly, stacked or in groups, and their values in titles ----------------


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
) -> PlotTrace | None:
    """Return the trace of a flow's variable, ACK by ACK if traced; None if it has no values."""
    series = series_of(flow, variable)
    if series is None:
        return None
    exact = flow.trace.series.get(variable.name) if flow.trace is not None else None
    return trace_of(series, variable, pen, factor, view.interval, scaled=scaled, exact=exact)


def traces(view: View, line: Line, factor: float) -> list[PlotTrace]:
    """Return the traces of flows: a line each, a stack of all, or the mean of each group."""
    flows = lineup.drawn(view)
    stacks = view.shown.listing.stacked and line.adds_up
    if view.shown.listing.grouped:
        return _group_traces(view, lineup.groups(view, flows), line, factor, stacks=stacks)
    if stacks:
        flows = lineup.whole(flows)
    # In a stack no trace hides another.
    crowd = not stacks and lineup.crowded(view, flows)
    found: list[PlotTrace] = []
    for flow in flows:
        pen = flow_pen(view, flow.name, dim=crowd and flow.name != view.shown.selected)
        if (trace := flow_trace(view, flow, line.variable, pen, factor)) is not None:
            found.append(trace)
    # The selected flow, which is last, becomes the lowest layer.
    return [*stacked(found[::-1])] if stacks else found


def _group_traces(
    view: View, groups: Sequence[lineup.Group], line: Line, factor: float, *, stacks: bool
) -> list[PlotTrace]:
    """Return each group's mean over a band, or a stack of all flows in the groups' colours.

    The group of the selected flow is on top; in a stack it is the lowest layer.
    """
    found: list[PlotTrace] = []
    layers: list[PlotTrace] = []
    for group in sorted(groups, key=lambda group: group.chosen(view) == view.shown.selected):
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
    if view.shown.listing.grouped:
        return _group_runs(view, lineup.groups(view, flows), known, variable, factor)
    chosen, rest = flows[:1], flows[1:]
    if chosen and chosen[0].name != view.shown.selected:
        chosen, rest = [], flows
    if lineup.crowded(view, flows):
        rest.sort(key=lambda flow: known[flow.name], reverse=True)
    else:
        rest.reverse()
    shown = ((each.name, known[each.name] * factor) for each in (*chosen, *rest))
    selected = view.shown.selected
    return [_run(view, name, write(variable, x), chosen=name == selected) for name, x in shown]


def _run(view: View, flow: str, text: str, *, chosen: bool) -> Run:
    bold = "bold " if chosen else ""
    return f" {view.flow_glyph(flow)} {text}", bold + view.flow_ink(flow)


def _group_runs(
    view: View,
    groups: Sequence[lineup.Group],
    known: Mapping[str, float],
    variable: Variable,
    factor: float,
) -> list[Run]:
    """Return each group's mean; the table has the sums."""
    runs: list[Run] = []
    for group in sorted(groups, key=lambda group: group.chosen(view) != view.shown.selected):
        value = sum(known[flow.name] for flow in group.flows) / len(group.flows) * factor
        chosen = group.chosen(view) == view.shown.selected
        text = f"{group.cc} {write(variable, value)}"
        runs.append(_run(view, group.first, text, chosen=chosen))
    return runs


# --- the traces of a plot's lines, subject by subject, and their values in its title --------------

_COUNTED_S = 0.4
"""Sampling interval in seconds assumed for counted packets, whose values hold for 3.5 of them."""

_SHADES = 3
"""Number of shades of the queue's colour that distinguish neighbours in its stack."""
_QUEUED = ("qlen", "backlog")
"""Variables of a queue that are the sums over its classes."""


class Drawer(msgspec.Struct, frozen=True):
    """Functions that draw a variable of one kind of subject; factors convert to the axis's unit."""

    traces: Callable[[View, Line, float], list[PlotTrace]]
    """Function that returns the traces, from the bottom to the top."""
    values: Callable[[View, Variable, float], list[Run]]
    """Function that returns the values at the moment shown, the most useful first."""
    ghosts: Callable[[View, Variable, float], list[ShiftedTrace]]
    """Function that returns the traces of an earlier run."""
    ghost_values: Callable[[View, Variable, float], list[Run]]


# --- queues -------------------------------------------------------------------------------------


def in_bytes(view: View) -> bool:
    """Return whether the limit of the shown queue counts bytes at the moment shown."""
    return counts_bytes(view.setting.setting.qdisc if view.setting else None)


def queues(view: View, variable: Variable) -> list[Queue]:
    """Return the shown link's queue; for own values, all its queues that report the variable."""
    if variable.subject == "queue":
        return [] if view.queue is None else [view.queue]
    return [each for each in link_queues(view) if variable.series in each.own]


def link_queues(view: View) -> list[Queue]:
    """Return the queues of the shown link, including those of its classes."""
    every = view.state.queues.values()
    return [each for each in every if each.link.partition(" ")[0] == view.link]


def _class(queue: Queue) -> str:
    """Return the class that a queue belongs to; empty for the link's own queue."""
    return queue.link.partition(" ")[2]


def _queue_traces(view: View, line: Line, factor: float) -> list[PlotTrace]:
    """Return queues as lines, or as a stack those of classes: no counter tells flows apart."""
    variable, ink = line.variable, view.ink("queue")
    stacks = view.shown.listing.stacked and line.adds_up
    classes = _classes(view) if stacks else []
    # With a second curve, shading below the first is more clutter than help.
    second = plot_ghosts.queue_traces(view, variable, factor)
    filled = line.style == "area" and not classes and not second
    traces: list[PlotTrace] = []
    for place, queue in enumerate(classes or queues(view, variable)):
        if (series := series_of(queue, variable)) is None:
            continue
        letter = _class(queue)[:1]
        pen = Pen(
            view.look.toned(ink, place % _SHADES / (_SHADES + 2)) if classes else ink,
            "area" if filled else "line",
            glyph=letter,
            lane=place * 5 % LANES,
            ascii=letter or "#",
        )
        traces.append(trace_of(series, variable, pen, factor, view.interval))
    return [*stacked(traces)] if classes else traces


def adds_up(view: View, line: Line) -> bool:
    """Return whether a line can be stacked in this view, as its subjects share a whole."""
    return line.adds_up and (line.subject != "queue" or bool(_classes(view)))


def _classes(view: View) -> list[Queue]:
    return [each for each in link_queues(view) if _class(each)]


def _queue_runs(view: View, variable: Variable, factor: float) -> list[Run]:
    runs: list[Run] = []
    every = queues(view, variable)
    if view.shown.listing.stacked and variable.name in _QUEUED:
        # The whole queue is first, then each class.
        every += _classes(view)
    for queue in every:
        value = value_on_axis(series_of(queue, variable), variable, view.t, factor)
        if value is not None:
            text = f"{_class(queue)} {write(variable, value)}".lstrip()
            runs.append((f" {text}", f"bold {view.ink('queue')}"))
    return runs


# --- other traffic ------------------------------------------------------------------------------


def _other_traces(view: View, line: Line, factor: float) -> list[PlotTrace]:
    variable, ink = line.variable, view.ink(line.ink or KINDS[line.variable.subject or ""].ink)
    found: list[PlotTrace] = []
    for place, each in enumerate(owners(view.state, variable)):
        series = series_of(each, variable)
        if series is None or isinstance(each, Queue) or each.started >= view.shown.playhead.until:
            continue
        if line.style == "dots":
            found.append(DotTrace(series, Pen(ink, "dots", ascii=":"), factor))
        else:
            digit = str(place + 1)[-1]
            pen = Pen(ink, glyph=digit, lane=place * 5 % LANES, ascii=digit)
            found.append(SeriesTrace(series, pen, factor, _COUNTED_S))
    return found


def _other_runs(view: View, variable: Variable, factor: float) -> list[Run]:
    """Return each traffic's value after its name; after the kind's if that only measures."""
    kind = KINDS[variable.subject or ""]
    ink = f"bold {view.ink(kind.ink)}" if kind.fills else view.ink(kind.ink)
    return [
        (f" {each.name if kind.fills else kind.word} {write(variable, value)}", ink)
        for each in view.state.traffic.values()
        if each.kind == kind.name and is_running(each, view.t, 0.0 if kind.fills else LINGER_S)
        if (value := value_on_axis(series_of(each, variable), variable, view.t, factor)) is not None
    ]


# --- what algorithms and disciplines report -----------------------------------------------------

_DRAWERS: Mapping[Subject | None, Drawer] = {
    "flow": Drawer(traces, runs, plot_ghosts.flow_traces, plot_ghosts.flow_values),
    "queue": Drawer(_queue_traces, _queue_runs, plot_ghosts.queue_traces, plot_ghosts.queue_values),
    None: Drawer(
        lambda *of: [*traces(*of), *_queue_traces(*of)],
        lambda *of: [*runs(*of), *_queue_runs(*of)],
        plot_ghosts.flow_traces,
        plot_ghosts.flow_values,
    ),
}
"""Drawers by subject; None stands for any subject that reports a variable of its own."""
_OTHERS = Drawer(_other_traces, _other_runs, plot_ghosts.answer_traces, lambda *_: [])


def drawer(subject: Subject | None) -> Drawer:
    """Return the drawer of a kind of subject."""
    return _DRAWERS.get(subject, _OTHERS)

"""The traces of a plot's lines, subject by subject, and their values in its title."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ccplay.analysis.trust import credible
from ccplay.model.variables import Subject, Variable
from ccplay.plots.derived import per_second, value_at
from ccplay.plots.plot import Line
from ccplay.plots.settings import counts_bytes
from ccplay.state.lab_state import Flow, Ping, Queue
from ccplay.state.series import Series
from ccplay.state.udp import Udp
from ccplay.ui.cells.sheet import Run
from ccplay.ui.plots import ghost_plots
from ccplay.ui.plots.scale import short
from ccplay.ui.plots.traces import (
    DotTrace,
    Pen,
    RateTrace,
    SeriesTrace,
    ShiftedTrace,
    Trace,
    TracedTrace,
)
from ccplay.ui.view import View

_SHORT_FROM = 1e7
"""Value from which nobody can read all digits at a glance."""
_LANES = 12
_UDP_S = 0.4
"""Seconds of which a sample of cross traffic stands for 3.5: longer than the second to the next."""

Write = Callable[[float], str]


@dataclass(frozen=True, slots=True)
class Drawer:
    """How the screen draws a variable of one kind of subject; factors lead to the axis' unit."""

    traces: Callable[[View, Line, float], list[Trace]]
    """From the bottom to the top."""
    values: Callable[[View, Variable, float], list[Run]]
    """At the moment shown, the most wanted first."""
    ghosts: Callable[[View, Variable, float], list[ShiftedTrace]]
    """The same as ``traces`` of an earlier run."""
    ghost_values: Callable[[View, Variable, float], list[Run]]


def write(variable: Variable, value: float) -> str:
    """Write a value on the axis of a variable for a title."""
    return short(value) if value >= _SHORT_FROM else variable.write(value)


def series_of(subject: Flow | Queue, variable: Variable) -> Series | None:
    """Return the series that a variable of a flow or queue is read from; None without any."""
    return (subject.own if variable.subject is None else subject.series).get(variable.series)


def _at(series: Series | None, variable: Variable, t: float, factor: float) -> float | None:
    value = None if series is None else value_at(series, variable, t)
    return None if value is None else value * factor


# --- flows --------------------------------------------------------------------------------------


def flow_names(view: View) -> list[str]:
    """Return the flows that the window shows anything of, the selected one last, on top."""
    head = view.playhead
    found = [
        each.name
        for each in view.state.flows.values()
        if each.started < head.until and (each.ended is None or each.ended > head.left)
    ]
    return sorted(found, key=lambda name: name == view.selected)


def flow_pen(view: View, name: str) -> Pen:
    """Return how a flow is drawn."""
    return Pen(
        view.flow_ink(name),
        mark=view.flow_glyph(name),
        lane=view.number(name) * 5 % _LANES,
        ascii=view.flow_glyph(name),
    )


def flow_trace(
    view: View, flow: Flow, variable: Variable, pen: Pen, factor: float, *, scaled: bool = True
) -> Trace | None:
    """Return a variable of a flow, exact where the flow is traced; None without any."""
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


def _flow_traces(view: View, line: Line, factor: float) -> list[Trace]:
    found = (
        flow_trace(view, view.state.flows[name], line.variable, flow_pen(view, name), factor)
        for name in flow_names(view)
    )
    return [each for each in found if each is not None]


def flow_values(view: View, variable: Variable) -> list[tuple[Flow, float]]:
    """Return the value of each running flow that has one, the selected first, in its unit."""
    found = (
        (flow, _at(series_of(flow, variable), variable, view.t, 1.0))
        for flow in sorted(view.running(), key=lambda flow: flow.name != view.selected)
    )
    return [(flow, value) for flow, value in found if value is not None]


def _flow_runs(view: View, variable: Variable, factor: float) -> list[Run]:
    runs: list[Run] = []
    for flow, value in flow_values(view, variable):
        bold = "bold " if flow.name == view.selected else ""
        text = f" {view.flow_glyph(flow.name)} {write(variable, value * factor)}"
        runs.append((text, bold + view.flow_ink(flow.name)))
    return runs


def _flow_ghosts(view: View, variable: Variable, factor: float) -> list[ShiftedTrace]:
    def trace(flow: Flow, pen: Pen, interval: float) -> Trace | None:
        if (series := series_of(flow, variable)) is None:
            return None
        if variable.rate is not None:
            return RateTrace(series, pen, factor * per_second(variable), variable.rate.over_s)
        return SeriesTrace(series, pen, factor, interval, most=credible(variable.name))

    return ghost_plots.flow_traces(view, trace)


def _flow_ghost_values(view: View, variable: Variable, factor: float) -> list[Run]:
    return ghost_plots.values(
        view,
        lambda flow, t: _at(series_of(flow, variable), variable, t, factor),
        lambda value: write(variable, value),
    )


# --- queues -------------------------------------------------------------------------------------


def in_bytes(view: View) -> bool:
    """Say whether the limit of the shown queue is in bytes, at the moment shown."""
    return counts_bytes(view.setting.setting.qdisc if view.setting else None)


def queues(view: View, variable: Variable) -> list[Queue]:
    """Return the shown link's queues to draw: with their classes what they themselves report."""
    if variable.subject == "queue":
        return [] if view.queue is None else [view.queue]
    return [each for each in link_queues(view) if variable.series in each.own]


def link_queues(view: View) -> list[Queue]:
    """Return the queues of the shown link, those of its classes included."""
    every = view.state.queues.values()
    return [each for each in every if each.link.partition(" ")[0] == view.link]


def _class(queue: Queue) -> str:
    """Return the class that a queue is of; empty for the link's own."""
    return queue.link.partition(" ")[2]


def _queue_traces(view: View, line: Line, factor: float) -> list[Trace]:
    traces: list[Trace] = []
    variable = line.variable
    for at, queue in enumerate(queues(view, variable)):
        if (series := series_of(queue, variable)) is None:
            continue
        letter = _class(queue)[:1]
        # Beside a second curve the ground below the first is more clutter than help.
        filled = line.manner == "area" and not _queue_ghosts(view, variable, factor)
        pen = Pen(
            view.ink("queue"),
            "area" if filled else "line",
            mark=letter,
            lane=at * 5 % _LANES,
            ascii=letter or "#",
        )
        if variable.rate is not None:
            rate = RateTrace(series, pen, factor * per_second(variable), variable.rate.over_s)
            traces.append(rate)
        else:
            traces.append(SeriesTrace(series, pen, factor, view.interval))
    return traces


def _queue_runs(view: View, variable: Variable, factor: float) -> list[Run]:
    runs: list[Run] = []
    for queue in queues(view, variable):
        if (value := _at(series_of(queue, variable), variable, view.t, factor)) is not None:
            text = f"{_class(queue)} {write(variable, value)}".lstrip()
            runs.append((f" {text}", f"bold {view.ink('queue')}"))
    return runs


def _queue_ghosts(view: View, variable: Variable, factor: float) -> list[ShiftedTrace]:
    if variable.subject is None or variable.rate is not None:
        return []
    return ghost_plots.queue(view, variable.name, factor)


def _queue_ghost_values(view: View, variable: Variable, factor: float) -> list[Run]:
    if variable.subject is None or variable.rate is not None:
        return []
    value = ghost_plots.queue_value(view, variable.name)
    if value is None:
        return []
    return [(f" {view.glyphs.ghost} {write(variable, value * factor)}", view.ink("muted"))]


# --- pings --------------------------------------------------------------------------------------


def _ping_traces(view: View, line: Line, factor: float) -> list[Trace]:
    pen = Pen(view.ink(line.ink), "dots", ascii=":")
    return [
        DotTrace(ping.rtt_us, pen, factor)
        for ping in view.state.of(Ping).values()
        if ping.started < view.playhead.until
    ]


def _ping_runs(view: View, variable: Variable, factor: float) -> list[Run]:
    return [
        (f" ping {write(variable, value)}", view.ink("ping"))
        for ping in view.pings()
        if (value := _at(ping.rtt_us, variable, view.t, factor)) is not None
    ]


# --- cross traffic ------------------------------------------------------------------------------


def _udp_traces(view: View, line: Line, factor: float) -> list[Trace]:
    return [
        SeriesTrace(series, _udp_pen(view, at), factor, _UDP_S)
        for at, udp in enumerate(view.state.of(Udp).values())
        if (series := udp.seen.get(line.variable.name)) is not None
        and udp.started < view.playhead.until
    ]


def _udp_pen(view: View, at: int) -> Pen:
    """Return how the cross traffic in a place, from 0, is drawn: with its number as its mark."""
    digit = str(at + 1)[-1]
    return Pen(view.ink("queue"), mark=digit, lane=at * 5 % _LANES, ascii=digit)


def _udp_runs(view: View, variable: Variable, factor: float) -> list[Run]:
    return [
        (f" {udp.name} {write(variable, value)}", f"bold {view.ink('queue')}")
        for udp in view.state.of(Udp).values()
        if (udp.ended is None or view.t < udp.ended)
        and (value := _at(udp.seen.get(variable.name), variable, view.t, factor)) is not None
    ]


# --- what algorithms and disciplines report -----------------------------------------------------


def _reported_traces(view: View, line: Line, factor: float) -> list[Trace]:
    return [*_flow_traces(view, line, factor), *_queue_traces(view, line, factor)]


def _reported_runs(view: View, variable: Variable, factor: float) -> list[Run]:
    return [*_flow_runs(view, variable, factor), *_queue_runs(view, variable, factor)]


DRAWERS: Mapping[Subject | None, Drawer] = {
    "flow": Drawer(_flow_traces, _flow_runs, _flow_ghosts, _flow_ghost_values),
    "queue": Drawer(_queue_traces, _queue_runs, _queue_ghosts, _queue_ghost_values),
    "ping": Drawer(
        _ping_traces,
        _ping_runs,
        lambda view, _, factor: list(ghost_plots.pings(view, factor)),
        lambda *_: [],
    ),
    "udp": Drawer(_udp_traces, _udp_runs, lambda *_: [], lambda *_: []),
    None: Drawer(_reported_traces, _reported_runs, _flow_ghosts, _flow_ghost_values),
}
"""By subject; None is whoever reports a variable of its own."""

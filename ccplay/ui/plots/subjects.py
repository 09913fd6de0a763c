"""The traces of a plot's lines, subject by subject, and their values in its title."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from ccplay.model.variables import Subject, Variable
from ccplay.plots.derived import per_second
from ccplay.plots.plot import Line
from ccplay.plots.settings import counts_bytes
from ccplay.state.lab_state import Ping, Queue
from ccplay.state.udp import Udp
from ccplay.ui.cells.sheet import Run
from ccplay.ui.plots import flow_lines, ghost_plots
from ccplay.ui.plots.combined import ShiftedTrace, stacked
from ccplay.ui.plots.traces import (
    DotTrace,
    Pen,
    RateTrace,
    SeriesTrace,
    Trace,
)
from ccplay.ui.plots.values import LANES, at, series_of, write
from ccplay.ui.view import View

_UDP_S = 0.4
"""Sampling interval in seconds assumed for cross traffic, whose values hold for 3.5 of them."""

_SHADES = 3
"""Number of shades of the queue's colour that distinguish neighbours in its stack."""
_QUEUED = ("qlen", "backlog")
"""Variables of a queue that are the sums over its classes."""


class Drawer(msgspec.Struct, frozen=True):
    """Functions that draw a variable of one kind of subject; factors convert to the axis's unit."""

    traces: Callable[[View, Line, float], list[Trace]]
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


def _queue_traces(view: View, line: Line, factor: float) -> list[Trace]:
    variable = line.variable
    if classes := _stacked_classes(view, line):
        return _class_traces(view, classes, variable, factor)
    traces: list[Trace] = []
    for place, queue in enumerate(queues(view, variable)):
        if (series := series_of(queue, variable)) is None:
            continue
        letter = _class(queue)[:1]
        # With a second curve, shading below the first is more clutter than help.
        filled = line.style == "area" and not _queue_ghosts(view, variable, factor)
        pen = Pen(
            view.ink("queue"),
            "area" if filled else "line",
            glyph=letter,
            lane=place * 5 % LANES,
            ascii=letter or "#",
        )
        if variable.rate is not None:
            rate = RateTrace(series, pen, factor * per_second(variable), variable.rate.over_s)
            traces.append(rate)
        else:
            traces.append(SeriesTrace(series, pen, factor, view.interval))
    return traces


def adds_up(view: View, line: Line) -> bool:
    """Return whether a line can be stacked in this view, as its subjects share a whole."""
    return line.adds_up and (line.subject != "queue" or bool(_classes(view)))


def _classes(view: View) -> list[Queue]:
    return [each for each in link_queues(view) if _class(each)]


def _stacked_classes(view: View, line: Line) -> list[Queue]:
    """Return the classes of the shown link to stack; none if stacking is off."""
    return _classes(view) if view.listing.stacked and line.adds_up else []


def _class_traces(
    view: View, classes: Sequence[Queue], variable: Variable, factor: float
) -> list[Trace]:
    """Return the queues of classes as a stack; no counter tells flows in a queue apart."""
    found: list[Trace] = []
    for place, queue in enumerate(classes):
        letter = _class(queue)[:1]
        ink = view.look.toned(view.ink("queue"), place % _SHADES / (_SHADES + 2))
        pen = Pen(ink, glyph=letter, lane=place * 5 % LANES, ascii=letter)
        if (series := series_of(queue, variable)) is not None:
            found.append(SeriesTrace(series, pen, factor, view.interval))
    return [*stacked(found)]


def _queue_runs(view: View, variable: Variable, factor: float) -> list[Run]:
    runs: list[Run] = []
    every = queues(view, variable)
    if view.listing.stacked and variable.name in _QUEUED:
        # The whole queue is first, then each class.
        every += _classes(view)
    for queue in every:
        if (value := at(series_of(queue, variable), variable, view.t, factor)) is not None:
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
        if (value := at(ping.rtt_us, variable, view.t, factor)) is not None
    ]


# --- cross traffic ------------------------------------------------------------------------------


def _udp_traces(view: View, line: Line, factor: float) -> list[Trace]:
    return [
        SeriesTrace(series, _udp_pen(view, place), factor, _UDP_S)
        for place, udp in enumerate(view.state.of(Udp).values())
        if (series := udp.seen.get(line.variable.name)) is not None
        and udp.started < view.playhead.until
    ]


def _udp_pen(view: View, place: int) -> Pen:
    """Return the pen of the cross traffic with this index, from 0; the glyph is its number."""
    digit = str(place + 1)[-1]
    return Pen(view.ink("queue"), glyph=digit, lane=place * 5 % LANES, ascii=digit)


def _udp_runs(view: View, variable: Variable, factor: float) -> list[Run]:
    return [
        (f" {udp.name} {write(variable, value)}", f"bold {view.ink('queue')}")
        for udp in view.state.of(Udp).values()
        if (udp.ended is None or view.t < udp.ended)
        and (value := at(udp.seen.get(variable.name), variable, view.t, factor)) is not None
    ]


# --- what algorithms and disciplines report -----------------------------------------------------


def _reported_traces(view: View, line: Line, factor: float) -> list[Trace]:
    return [*flow_lines.traces(view, line, factor), *_queue_traces(view, line, factor)]


def _reported_runs(view: View, variable: Variable, factor: float) -> list[Run]:
    return [*flow_lines.runs(view, variable, factor), *_queue_runs(view, variable, factor)]


DRAWERS: Mapping[Subject | None, Drawer] = {
    "flow": Drawer(flow_lines.traces, flow_lines.runs, flow_lines.ghosts, flow_lines.ghost_values),
    "queue": Drawer(_queue_traces, _queue_runs, _queue_ghosts, _queue_ghost_values),
    "ping": Drawer(
        _ping_traces,
        _ping_runs,
        lambda view, _, factor: list(ghost_plots.pings(view, factor)),
        lambda *_: [],
    ),
    "udp": Drawer(_udp_traces, _udp_runs, lambda *_: [], lambda *_: []),
    None: Drawer(_reported_traces, _reported_runs, flow_lines.ghosts, flow_lines.ghost_values),
}
"""Drawers by subject; None stands for any subject that reports a variable of its own."""

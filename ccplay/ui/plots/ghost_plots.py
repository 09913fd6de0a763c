"""A ghost in the plots and their titles: its shifted traces, and its values."""

from __future__ import annotations

from collections.abc import Callable

from ccplay.state.lab_state import Flow, LabState, Ping, Queue
from ccplay.state.series import Series
from ccplay.ui.cells.sheet import Run
from ccplay.ui.plots.combined import ShiftedTrace
from ccplay.ui.plots.ghosts import Ghost
from ccplay.ui.plots.traces import DotTrace, Pen, SeriesTrace, Trace
from ccplay.ui.view import View

_WIDE = 100
"""Smallest width in columns of a screen with room for whole file names."""

_CROWD = 3
"""Largest number of a ghost's flows that are all drawn; of more, only the selected one is."""


def flow_ink(view: View, name: str) -> str:
    """Return the colour of a ghost's flow."""
    flows = view.look.flows
    return view.look.faded(flows[flow_number(view, name) % len(flows)])


def flow_glyph(view: View, name: str) -> str:
    """Return the glyph of a ghost's flow."""
    return view.glyphs.ghost_glyph(flow_number(view, name))


def flow_number(view: View, name: str) -> int:
    """Return the index of a ghost's flow: that of the session's flow of this name, or its own."""
    if name in view.state.flows or view.ghost is None:
        return view.number(name)
    return view.ghost.state.places[name]


def flow_cc(view: View, flow: Flow) -> str:
    """Return the congestion control of a ghost's flow at the moment shown."""
    ghost, shift = view.ghost, view.shift
    return ghost.state.cc_at(flow, view.t - shift) if ghost and shift is not None else ""


def flow_traces(
    view: View, trace: Callable[[Flow, Pen, float], Trace | None]
) -> list[ShiftedTrace]:
    """Return the traces that ``trace`` makes of the ghost's flows."""
    ghost, shift = view.ghost, view.shift
    if ghost is None or shift is None:
        return []
    found = []
    for flow in _flows(view, ghost, shift):
        pen = Pen(
            flow_ink(view, flow.name),
            "sparse",
            glyph=flow_glyph(view, flow.name),
            lane=(flow_number(view, flow.name) * 5 + 2) % 12,
            ascii=view.glyphs.ghost,
            under=True,
        )
        if (drawn := trace(flow, pen, _interval(ghost.state))) is not None:
            found.append(ShiftedTrace(drawn, shift, ghost.first, ghost.last))
    return found


def variables(view: View) -> dict[str, list[Series]]:
    """Return series of the ghost's own values in the window, the selected flow's first."""
    ghost, shift = view.ghost, view.shift
    found: dict[str, list[Series]] = {}
    if ghost is None or shift is None:
        return found
    left = max(view.playhead.left - shift, ghost.first)
    right = min(view.playhead.right - shift, ghost.last)
    ticks = [ghost.state.sweeps.at_or_after(t) for t in (left, right)]
    for flow in reversed(_flows(view, ghost, shift)):
        for name, series in flow.own.items():
            if series.extremes(*ticks) is not None:
                found.setdefault(name, []).append(series)
    return found


def marks(view: View) -> tuple[float, ...]:
    """Return the moments of the ghost's commands, shifted to the session's time."""
    ghost, shift = view.ghost, view.shift
    if ghost is None or shift is None:
        return ()
    left = max(view.playhead.left - shift, ghost.first)
    right = min(view.playhead.right - shift, ghost.last)
    return tuple(
        each.t + shift for each in ghost.state.log if each.is_mark and left <= each.t <= right
    )


def pings(view: View, factor: float) -> list[ShiftedTrace]:
    """Return the traces of replies to the ghost's pings, times a factor."""
    ghost, shift = view.ghost, view.shift
    if ghost is None or shift is None:
        return []
    pen = Pen(view.ghost_ink("ping"), "signs", glyph=view.glyphs.answer, under=True)
    return [
        ShiftedTrace(DotTrace(ping.rtt_us, pen, factor), shift, ghost.first, ghost.last)
        for ping in ghost.state.of(Ping).values()
    ]


def queue(view: View, field: str, factor: float) -> list[ShiftedTrace]:
    """Return one of ``QUEUE_SERIES`` of the ghost's queue as a trace, times a factor."""
    ghost, shift = view.ghost, view.shift
    if ghost is None or shift is None or (found := _queue(view, ghost)) is None:
        return []
    pen = Pen(view.ghost_ink("queue"), "sparse", ascii=view.glyphs.ghost, under=True)
    trace = SeriesTrace(found.series[field], pen, factor, _interval(ghost.state))
    return [ShiftedTrace(trace, shift, ghost.first, ghost.last)]


def values(
    view: View, value: Callable[[Flow, float], float | None], write: Callable[[float], str]
) -> list[Run]:
    """Return ``value`` of the ghost's flows at the moment shown, formatted by ``write``."""
    runs, t = [], view.t - (view.shift or 0.0)
    for flow, _ in sorted(view.ghosts(), key=lambda pair: pair[0].name != view.selected):
        if (number := value(flow, t)) is not None:
            sign = view.glyphs.ghost + flow_glyph(view, flow.name)
            runs.append((f" {sign} {write(number)}", view.ink("muted")))
    return runs


def queue_value(view: View, field: str) -> float | None:
    """Return one of ``QUEUE_SERIES`` of the ghost's queue at the moment shown, as a number."""
    ghost, shift = view.ghost, view.shift
    if ghost is None or shift is None or (found := _queue(view, ghost)) is None:
        return None
    t = view.t - shift
    if not ghost.first <= t <= ghost.last:
        return None
    return found.series[field].at(ghost.state.sweeps.before_or_at(t))


def legend(view: View, width: int) -> list[Run]:
    """Return the header's text about the ghost; empty if there is none."""
    sample = view.glyphs.ghost * 3
    if view.reading:
        return [(f"  {sample} reading {view.reading}", view.ink("muted"))]
    if view.ghost is None:
        return []
    waiting = view.shift is None and view.state.ready_at is not None
    name = view.ghost.name if width >= _WIDE else view.ghost.name.removesuffix(".ccplay")
    what = view.ghost.repeats or "action"
    waits = f", waits for the next {what}" if waiting else ""
    return [
        (f"  {sample} ", view.ghost_ink("text")),
        (f"ghost: {name}{waits} ", view.ink("muted")),
    ]


def _flows(view: View, ghost: Ghost, shift: float) -> list[Flow]:
    """Return the ghost's flows to draw: those in the window, the selected one last."""
    left, right = view.playhead.left - shift, view.playhead.right - shift
    found = [
        each
        for each in ghost.state.flows.values()
        if each.started < min(right, ghost.last)
        and (each.ended is None or each.ended > max(left, ghost.first))
    ]
    chosen = [each for each in found if each.name == view.selected]
    if len(found) > _CROWD and chosen:
        return chosen
    return sorted(found, key=lambda each: each.name == view.selected)


def _queue(view: View, ghost: Ghost) -> Queue | None:
    """Return the ghost's queue of the same name, else that at the same index."""
    if view.link in ghost.state.queues:
        return ghost.state.queues[view.link]
    hello = ghost.state.hello
    link = view.observed_in(hello.network if hello else None)
    return ghost.state.queues.get(link or "")


def _interval(state: LabState) -> float:
    return 1 / state.hello.sample_hz if state.hello else 0.02

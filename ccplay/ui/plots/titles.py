"""The title lines of the plots: what is drawn, and its values at the playhead."""

from __future__ import annotations

from collections.abc import Callable

from ccplay.model import variables
from ccplay.state.base_rtt import base_rtt
from ccplay.ui.cells.sheet import Row, Run, length
from ccplay.ui.plots import ghost_plots, theory
from ccplay.ui.plots import variable_choice as own
from ccplay.ui.plots.pictures import counts_bytes
from ccplay.ui.plots.scale import whole
from ccplay.ui.view import View

Title = tuple[Row, Row]

_NARROW = 30
_SHORT = {"segments": "seg", "packets": "pkt"}


def cwnd(view: View, width: int) -> Title:
    """Say what the first plot shows."""
    left = _left(view, "cwnd", "segments", width)
    flow = view.state.flows.get(view.selected or "")
    values = _values(view, "cwnd", 1.0)
    values[1:1] = theory.values(view, width)
    values += ghost_plots.flow_values(view, "cwnd")
    if flow is not None and (ssthresh := flow.series["ssthresh"].at(view.tick)) is not None:
        word = "ssthresh " if width >= 36 else view.glyphs.dotted
        values.append((f" {word}{whole(ssthresh)}", view.ink("ssthresh")))
    return left, _fitting(values, width - length(left) - 1)


def queue(view: View, width: int) -> Title:
    """Say what the second plot shows."""
    in_bytes = counts_bytes(view)
    left = _left(view, "queue", "kB" if in_bytes else "packets", width)
    right: list[Run] = []
    if view.queue is not None:
        series, tick = view.queue.series, view.tick
        for name, ink, word in (("drops", "drop", "drop"), ("ecn_marks", "mark", "mark")):
            if count := series[name].at(tick):
                sign = view.glyphs.drop if name == "drops" else view.glyphs.mark
                text = f"{sign} {count:.0f} {word}s" if width >= 36 else f"{sign}{count:.0f}"
                right.append((f"{text} ", view.ink(ink)))
        value = series["backlog" if in_bytes else "qlen"].at(tick)
        if value is not None:
            number = f"{value / 1e3:.1f}" if in_bytes else f"{value:.0f}"
            right.append((f" {number}", f"bold {view.ink('queue')}"))
    right += ghost_plots.queue_value(view, in_bytes=in_bytes)
    return left, _fitting(right, width - length(left) - 1)


def rtt(view: View, width: int) -> Title:
    """Say what the third plot shows."""
    left = _left(view, "RTT", "ms", width)
    values = _values(view, "srtt_us", 1e-3)
    values += ghost_plots.flow_values(view, "srtt_us", 1e-3)
    for ping in view.pings():
        answer = ping.rtt_us.at(ping.rtt_us.timeline.before_or_at(view.t))
        if answer is not None:
            values.append((f" ping {answer / 1e3:.0f}", view.ink("ping")))
    base = [ms for t, ms in base_rtt(view.state, view.network) if t <= view.t]
    if base and base[-1] is not None and view.running():
        values.append((f" base {base[-1]:.0f}", view.ink("base_rtt")))
    return left, _fitting(values, width - length(left) - 1)


def variable(view: View, name: str, width: int) -> Title:
    """Say which variable of algorithms the third plot shows."""
    what, (unit, factor) = variables.variable(name), own.axis(view, name)
    left = [
        (what.title, f"bold {view.ink('text')}"),
        (f" {unit}".rstrip(), view.ink("muted")),
    ]
    values = _values(view, name, factor, what.write, own=True)
    values += ghost_plots.flow_values(view, name, factor, what.write, own=True)
    return left, _fitting(values, width - length(left) - 1)


def third(view: View, width: int) -> Title:
    """Say what the third plot shows: round-trip times, or a variable of algorithms."""
    name = own.shown(view)
    return rtt(view, width) if name is None else variable(view, name, width)


def _left(view: View, name: str, unit: str, width: int) -> list[Run]:
    # What else there is to tell needs the room.
    if view.ghost and width < _NARROW:
        unit = _SHORT.get(unit, unit)
    if view.theory and name == "cwnd":
        unit = _SHORT[unit] if width >= _NARROW else ""
    if width >= _NARROW and name != "queue" and _exact(view, width):
        unit += " per ACK"
    return [(name, f"bold {view.ink('text')}"), (f" {unit}".rstrip(), view.ink("muted"))]


def _exact(view: View, width: int) -> bool:
    """Say whether the plot shows more of the selected flow than its samples."""
    flow = view.state.flows.get(view.selected or "")
    dot = view.playhead.width / (2 * width)
    return bool(flow and flow.trace and dot < view.interval and flow.trace.covers(view.t))


def _values(
    view: View,
    field: str,
    factor: float,
    write: Callable[[float], str] = whole,
    *,
    own: bool = False,
) -> list[Run]:
    """Return the value of each running flow, the selected one first."""
    runs: list[Run] = []
    flows = sorted(view.running(), key=lambda flow: flow.name != view.selected)
    for flow in flows:
        series = (flow.own if own else flow.series).get(field)
        if series is not None and (value := series.at(view.tick)) is not None:
            bold = "bold " if flow.name == view.selected else ""
            text = f" {view.flow_mark(flow.name)} {write(value * factor)}"
            runs.append((text, bold + view.flow_ink(flow.name)))
    return runs


def _fitting(runs: list[Run], width: int) -> list[Run]:
    kept: list[Run] = []
    for run in runs:
        if length(kept) + len(run[0]) <= width:
            kept.append(run)
    return kept


TITLES: dict[str, Callable[[View, int], Title]] = {"cwnd": cwnd, "queue": queue, "rtt": third}

"""Theory in the cwnd plot: CUBIC's W(t) and Reno's line for the selected flow, and their names."""

from __future__ import annotations

from ccplay.analysis.theory import Theory
from ccplay.state.lab_state import Flow
from ccplay.state.series import Series
from ccplay.ui.cells.sheet import Run
from ccplay.ui.plots.traces import Pen, SeriesTrace
from ccplay.ui.view import View

_WIDE = 36
"""Smallest width in columns of a title with room for values of theory."""


class Overlay:
    """The theory of each flow so far, and whether it is drawn."""

    def __init__(self) -> None:
        self.shown = False
        self._theories: dict[str, Theory] = {}

    def of(self, flow: Flow | None) -> Theory | None:
        """Return the theory of a flow up to the newest measurement; None if off or for MPTCP."""
        if not self.shown or flow is None or flow.mptcp:
            return None
        theory = self._theories.get(flow.name)
        if theory is None or theory.flow is not flow:
            theory = self._theories[flow.name] = Theory(flow)
        theory.follow()
        return theory


def traces(view: View) -> list[SeriesTrace]:
    """Return both lines, dashed so that measured values stay visible; the axis ignores them."""
    return [
        SeriesTrace(
            series,
            Pen(ink, "dashed", glyph=name[0], lane=lane, ascii=name[0]),
            interval=view.interval,
            scaled=False,
        )
        for (name, series, ink), lane in zip(_lines(view), (2, 7), strict=False)
    ]


def values(view: View, width: int) -> list[Run]:
    """Return the lines' names, with their values at the moment shown if there is room."""
    runs = []
    for name, series, ink in _lines(view):
        value = series.at(view.tick)
        number = f" {value:.0f}" if value is not None and width >= _WIDE else ""
        runs.append((f" {name}{number}", ink))
    return runs


def lack(view: View) -> str:
    """Return the reason why no line is drawn; empty if there is one."""
    flow = view.state.flows.get(view.selected or "")
    if flow is None:
        return "No flow is selected: select one with ↑↓ to see theory."
    if flow.mptcp:
        return f"Theory applies to a single cwnd: select a subflow of flow {flow.name} with ↑↓."
    cc = view.state.cc_at(flow, view.t)
    if cc.startswith("bbr"):
        return f"Flow {flow.name} runs BBR, which follows neither W(t) nor Reno's line."
    if view.theory is None or not _is_seen(view, view.theory):
        switches = sum(t <= view.t for t, _ in flow.cc_changes) - 1
        since = f"since it switched to {cc}" if switches > 0 else "yet"
        reduced = f"cwnd of flow {flow.name} has not been reduced {since}"
        return f"{reduced}; theory starts at its first reduction."
    return ""


def _is_seen(view: View, theory: Theory) -> bool:
    """Return whether the window contains any part of the theory."""
    timeline, head = theory.reno.timeline, view.playhead
    ticks = (timeline.at_or_after(t) for t in (head.left, head.until))
    return theory.reno.extremes(*ticks) is not None


def _lines(view: View) -> list[tuple[str, Series, str]]:
    """Return name, values and colour of each line."""
    theory = view.theory
    if theory is None:
        return []
    return [
        ("W(t)", theory.cubic, view.ink("ping")),
        ("Reno", theory.reno, view.ink("base_rtt")),
    ]

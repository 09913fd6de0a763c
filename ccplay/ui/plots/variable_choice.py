"""Which variable of algorithms the right-hand plot shows in the place of RTT."""

from __future__ import annotations

from ccplay.model.variables import variable
from ccplay.state.lab_state import Flow
from ccplay.state.series import Series
from ccplay.ui.plots import ghost_plots
from ccplay.ui.view import View

BPF = ".bpf"


def shown(view: View) -> str | None:
    """Return the variable that was chosen; None, which is RTT, where the window has none of it."""
    return view.variable if view.variable and _tellers(view, view.variable) else None


def choices(view: View) -> list[str | None]:
    """Return what there is to choose from: RTT, then what algorithms tell.

    The selected flow's come first, then what only the ghost tells.
    """
    flow = view.state.flows.get(view.selected or "")
    told = [name for name in flow.own if _tells(view, flow, name)] if flow else []
    return [None, *dict.fromkeys([*told, *ghost_plots.variables(view)])]


def axis(view: View, name: str) -> tuple[str, float]:
    """Return the unit that a variable is drawn in, and the factor to it."""
    known = [series.extremes(series.first, series.end) for series in _tellers(view, name)]
    return variable(name).axis(max(found[1] for found in known if found))


def silence(view: View) -> str:
    """Say why there is nothing to choose, and what to do."""
    flow = view.state.flows.get(view.selected or "")
    if flow is None:
        return "no flow is selected"
    cc = view.state.cc_at(flow, view.t)
    hello = view.state.hello
    offered = hello.capabilities.congestion_controls if hello else []
    if any(each.name == cc + BPF and each.available for each in offered):
        return f"{cc} of the kernel tells no values of its own; {cc}{BPF} does"
    return f"{cc or flow.kind} tells no values of its own"


def _tellers(view: View, name: str) -> list[Series]:
    """Return the variable's series of all flows that tell it within the window, ghosts last."""
    flows = [flow.own[name] for flow in view.state.flows.values() if _tells(view, flow, name)]
    return flows + ghost_plots.variables(view).get(name, [])


def _tells(view: View, flow: Flow, name: str) -> bool:
    if (series := flow.own.get(name)) is None:
        return False
    timeline = series.timeline
    start, end = (timeline.at_or_after(t) for t in (view.playhead.left, view.playhead.until))
    return series.extremes(start, end) is not None

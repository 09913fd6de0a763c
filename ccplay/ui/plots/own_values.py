"""The plots of own values of algorithms and disciplines; a chosen one replaces RTT."""

from __future__ import annotations

from ccplay.model.variables import variable
from ccplay.plots.plot import of_variable
from ccplay.state.lab_state import Flow
from ccplay.state.series import Series
from ccplay.ui.plots import ghost_plots
from ccplay.ui.plots.pane import Pane
from ccplay.ui.plots.subjects import link_queues
from ccplay.ui.view import View

BPF = ".bpf"


def pane(view: View, name: str) -> Pane:
    """Return the plot of a variable for all flows and queues of the shown link that have it."""
    known = [series.extremes(series.first, series.end) for series in _series(view, name)]
    peak = max((found[1] for found in known if found), default=0.0)
    return Pane(of_variable(variable(name)), peak)


def shown(view: View) -> str | None:
    """Return the chosen variable; None, which stands for RTT, if the window has no value of it."""
    return view.variable if view.variable and _series(view, view.variable) else None


def choices(view: View) -> list[str | None]:
    """Return the choices: None for RTT, then the own values of algorithms and disciplines.

    Values of the selected flow are first, then those of the shown queue, then those that only the
    ghost has. What an algorithm or discipline reports no more, since it was replaced, comes last.
    """
    flow = view.state.flows.get(view.selected or "")
    own = [*(flow.own.items() if flow else ())]
    own += [each for queue in link_queues(view) for each in queue.own.items()]
    inside = [(name, series) for name, series in own if _in_window(view, series)]
    now = [name for name, series in inside if series.at(view.tick) is not None]
    before = [name for name, _ in inside]
    return [None, *dict.fromkeys([*now, *before, *ghost_plots.variables(view)])]


def silence(view: View) -> str:
    """Return the reason why no own value can be chosen, and the remedy if there is one."""
    flow = view.state.flows.get(view.selected or "")
    if flow is None:
        return "no flow is selected"
    cc = view.state.cc_at(flow, view.t)
    hello = view.state.hello
    offered = hello.capabilities.congestion_controls if hello else []
    if any(each.name == cc + BPF and each.available for each in offered):
        return f"the kernel's {cc} reports no variables; {cc}{BPF} does"
    return f"{cc or flow.kind} reports no variables"


def _series(view: View, name: str) -> list[Series]:
    """Return the variable's series with a value in the window, the ghost's last."""
    flows = [flow.own[name] for flow in view.state.flows.values() if _has_value(view, flow, name)]
    queues = [queue.own[name] for queue in link_queues(view) if name in queue.own]
    shown = [each for each in queues if _in_window(view, each)]
    return flows + shown + ghost_plots.variables(view).get(name, [])


def _has_value(view: View, flow: Flow, name: str) -> bool:
    series = flow.own.get(name)
    return series is not None and _in_window(view, series)


def _in_window(view: View, series: Series) -> bool:
    """Return whether the window contains a value of a series."""
    timeline = series.timeline
    start, end = (timeline.at_or_after(t) for t in (view.playhead.left, view.playhead.until))
    return series.extremes(start, end) is not None

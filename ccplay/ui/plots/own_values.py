"""The plots of values that algorithms and disciplines report of themselves; one replaces RTT."""

from __future__ import annotations

from ccplay.model.variables import variable
from ccplay.state.lab_state import Flow, Queue
from ccplay.state.series import Series
from ccplay.ui.cells.sheet import Run
from ccplay.ui.plots import flow_traces, ghost_plots
from ccplay.ui.plots.plot import Plot
from ccplay.ui.plots.traces import Pen, SeriesTrace
from ccplay.ui.view import View

BPF = ".bpf"

_LEAST = {"ms": 2.0, "segments": 8.0}
_LEAST_FRACTION = 0.1
"""Axes never end below these."""


def plot(view: View, name: str) -> Plot:
    """Return the plot of a variable, of all flows and queues of the shown link that have it."""
    what, (unit, factor) = variable(name), axis(view, name)

    def traces(view: View) -> list[SeriesTrace]:
        known = {each: view.state.flows[each].own.get(name) for each in flow_traces.names(view)}
        traces = [
            SeriesTrace(series, flow_traces.pen(view, each), factor, view.interval)
            for each, series in known.items()
            if series is not None
        ]
        for at, queue in enumerate(_queues(view, name)):
            letter = _class(queue)[:1]
            pen = Pen(view.ink("queue"), mark=letter, lane=at * 5 % 12, ascii=letter or "#")
            traces.append(SeriesTrace(queue.own[name], pen, factor, view.interval))
        return traces

    def value(flow: Flow) -> float | None:
        known = flow.own[name].at(view.tick) if name in flow.own else None
        return None if known is None else known * factor

    def numbers(view: View, width: int) -> list[Run]:
        del width
        runs = flow_traces.values(view, value, what.write)
        for queue in _queues(view, name):
            if (number := queue.own[name].at(view.tick)) is not None:
                text = f"{_class(queue)} {what.write(number * factor)}".lstrip()
                runs.append((f" {text}", f"bold {view.ink('queue')}"))
        return runs + ghost_plots.flow_values(view, name, factor, what.write, own=True)

    return Plot(
        name=name,
        title=what.title,
        unit=lambda _: unit,
        help=f"{what.words}, as {what.algorithm or 'the algorithm'} itself reports it",
        traces=traces,
        numbers=numbers,
        ghost=lambda view: ghost_plots.flows(view, name, factor, own=True),
        least=_LEAST_FRACTION if what.one else _LEAST.get(unit, 1.0),
    )


def shown(view: View) -> str | None:
    """Return the variable that was chosen; None, which is RTT, where the window has none of it."""
    return view.variable if view.variable and _tellers(view, view.variable) else None


def choices(view: View) -> list[str | None]:
    """Return what there is to choose from: RTT, then what algorithms and disciplines report.

    The selected flow's come first, then the shown queue's, then what only the ghost has.
    """
    flow = view.state.flows.get(view.selected or "")
    told = [name for name in flow.own if _tells(view, flow, name)] if flow else []
    told += [
        name
        for queue in _queues(view)
        for name, series in queue.own.items()
        if _in_window(view, series)
    ]
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
    """Return the variable's series that have a value in the window, ghosts' last."""
    flows = [flow.own[name] for flow in view.state.flows.values() if _tells(view, flow, name)]
    queues = [queue.own[name] for queue in _queues(view, name)]
    shown = [each for each in queues if _in_window(view, each)]
    return flows + shown + ghost_plots.variables(view).get(name, [])


def _queues(view: View, name: str = "") -> list[Queue]:
    """Return the queues of the shown link, classes included; those with one variable."""
    queues = view.state.queues.values()
    own = [each for each in queues if each.link.partition(" ")[0] == view.link]
    return [each for each in own if not name or name in each.own]


def _class(queue: Queue) -> str:
    """Return the class that a queue is of; empty for the link's own."""
    return queue.link.partition(" ")[2]


def _tells(view: View, flow: Flow, name: str) -> bool:
    series = flow.own.get(name)
    return series is not None and _in_window(view, series)


def _in_window(view: View, series: Series) -> bool:
    """Whether the window has any value of a series."""
    timeline = series.timeline
    start, end = (timeline.at_or_after(t) for t in (view.playhead.left, view.playhead.until))
    return series.extremes(start, end) is not None

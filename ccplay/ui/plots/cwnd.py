"""The plot of congestion windows, with ssthresh and theory over the selected flow."""

from __future__ import annotations

from ccplay.analysis.trust import credible
from ccplay.ui.cells.sheet import Run
from ccplay.ui.plots import flow_traces, ghost_plots, theory
from ccplay.ui.plots.plot import WIDE, Plot
from ccplay.ui.plots.scale import whole
from ccplay.ui.plots.traces import Pen, SeriesTrace, Trace
from ccplay.ui.view import View

_CROWD = 3
"""With more flows than this only the selected one shows its ssthresh."""


def _traces(view: View) -> list[Trace]:
    names = flow_traces.names(view)
    traces: list[Trace] = []
    for name in names:
        if len(names) <= _CROWD or name == view.selected:
            flow = view.state.flows[name]
            sampled = SeriesTrace(
                flow.series["ssthresh"],
                Pen(view.ink("ssthresh"), "dotted", ascii=view.glyphs.dotted),
                interval=view.interval,
                scaled=False,
                most=credible("ssthresh"),
            )
            traces.append(flow_traces.traced(sampled, flow, "ssthresh"))
    return [*traces, *flow_traces.traces(view, "cwnd"), *theory.traces(view)]


def _numbers(view: View, width: int) -> list[Run]:
    runs = flow_traces.sampled_values(view, "cwnd")
    runs[1:1] = theory.values(view, width)
    runs += ghost_plots.flow_values(view, "cwnd")
    flow = view.state.flows.get(view.selected or "")
    if flow is not None and (ssthresh := flow.series["ssthresh"].at(view.tick)) is not None:
        word = "ssthresh " if width >= WIDE else view.glyphs.dotted
        runs.append((f" {word}{whole(ssthresh)}", view.ink("ssthresh")))
    return runs


CWND = Plot(
    name="cwnd",
    title="cwnd",
    unit=lambda _: "segments",
    help="segments that a flow may have in flight, unacknowledged",
    traces=_traces,
    numbers=_numbers,
    ghost=lambda view: ghost_plots.flows(view, "cwnd"),
    missing=("flow", "f"),
    least=8.0,
    series="cwnd",
)

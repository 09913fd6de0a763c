"""The plot of round-trip times: each flow's, those of pings, and the base RTT."""

from __future__ import annotations

from ccplay.state.lab_state import Ping
from ccplay.ui.cells.sheet import Run
from ccplay.ui.plots import flow_traces, ghost_plots
from ccplay.ui.plots.plot import Plot
from ccplay.ui.plots.traces import DotTrace, Pen, StepTrace, Trace
from ccplay.ui.view import View

_MS = 1e-3
"""Of a microsecond."""


def _traces(view: View) -> list[Trace]:
    traces: list[Trace] = [
        DotTrace(ping.rtt_us, Pen(view.ink("ping"), "dots", ascii=":"), _MS)
        for ping in view.state.of(Ping).values()
        if ping.started < view.playhead.until
    ]
    traces += flow_traces.traces(view, "srtt_us", _MS)
    base = tuple(each for each in view.base_rtt if each[0] <= view.playhead.until)
    if traces and base:
        traces.insert(0, StepTrace(base, Pen(view.ink("base_rtt"), "dotted", ascii="-")))
    return traces


def _numbers(view: View, width: int) -> list[Run]:
    del width
    runs = flow_traces.sampled_values(view, "srtt_us", _MS)
    runs += ghost_plots.flow_values(view, "srtt_us", _MS)
    for ping in view.pings():
        answer = ping.rtt_us.at(ping.rtt_us.timeline.before_or_at(view.t))
        if answer is not None:
            runs.append((f" ping {answer * _MS:.0f}", view.ink("ping")))
    base = [ms for t, ms in view.base_rtt if t <= view.t]
    if base and base[-1] is not None and view.running():
        runs.append((f" base {base[-1]:.0f}", view.ink("base_rtt")))
    return runs


RTT = Plot(
    name="rtt",
    title="RTT",
    unit=lambda _: "ms",
    help="each flow's smoothed round trip, and ping's from outside",
    traces=_traces,
    numbers=_numbers,
    ghost=lambda view: [
        *ghost_plots.pings(view),
        *ghost_plots.flows(view, "srtt_us", _MS),
    ],
    missing=("ping", "p"),
    least=2.0,
    series="srtt_us",
)

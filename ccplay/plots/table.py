"""All plots, in the order of a report's figure."""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from ccplay.errors import UsageError
from ccplay.model.variables import CAPACITY, Rate, Variable, variable
from ccplay.plots import levels
from ccplay.traffic import TRAFFIC, VARIABLES
from ccplay.traffic.plot import Count, Line, Plot, Setting, Summary

_FLOW, _QUEUE = VARIABLES["flow"], VARIABLES["queue"]
_SOJOURNS = {
    "queue_sojourn_p99_us": "p99",
    "queue_sojourn_p95_us": "p95",
    "queue_sojourn_p50_us": "median",
}
"""Variables of a queue in software with their descriptions; titles begin with the last one's
value."""

CWND = Plot(
    name="cwnd",
    title="cwnd",
    full="congestion window (cwnd)",
    help="segments that a flow may have in flight",
    lines=(Line(_FLOW["cwnd"]),),
    companions=(Line(_FLOW["ssthresh"], ink="ssthresh"),),
    least=8.0,
    missing=("flow", "flow"),
    apart="flow",
    height_in=1.05,
    reported=True,
)
QUEUE = Plot(
    name="queue",
    title="queue",
    help="packets waiting in front of the observed link; a line shows the limit",
    lines=(Line(_QUEUE["qlen"], "area", ink="queue", adds_up=True),),
    in_bytes=Line(_QUEUE["backlog"], "area", ink="queue", adds_up=True),
    settings=(
        Setting("queue_limit", "limit", levels.limits, near=True),
        Setting("mark", "ECN marks from here on", levels.thresholds, near=True),
    ),
    counts=(Count(_QUEUE["drops"], "drop", "drops"), Count(_QUEUE["ecn_marks"], "mark", "marks")),
    least=8.0,
    apart="queue",
    height_in=1.05,
    reported=True,
)
SOJOURN = Plot(
    name="sojourn",
    title="sojourn",
    about="sojourn time of packets",
    help="how long packets wait in a discipline in software: median, p95, p99 of the last second",
    lines=tuple(Line(replace(variable(name), words=words)) for name, words in _SOJOURNS.items()),
    least=2.0,
    missing=("queue in software", "queue"),
    height_in=0.8,
    reported=True,
)
RTT = Plot(
    name="rtt",
    title="RTT",
    about="round-trip time",
    help="smoothed RTT of each flow, and the RTT that other traffic measures",
    lines=(Line(_FLOW["srtt_us"]),),
    settings=(Setting("base_rtt", "links' delay", levels.base_rtts, short="base"),),
    least=2.0,
    height_in=1.15,
    reported=True,
)
GOODPUT = Plot(
    name="throughput",
    title="goodput",
    help="acknowledged payload, mean of 1 s; a moving link's capacity; Jain's index, rate used",
    lines=(
        Line(CAPACITY, "area", ink="queue"),
        Line(
            Variable(
                "goodput",
                "goodput",
                "bps",
                "flow",
                scale="Mbit/s",
                combined="sum",
                rate=Rate("bytes_acked"),
            ),
            adds_up=True,
        ),
    ),
    whole=Setting("queue_limit", "link's rate", levels.rates),
    summaries=(Summary("Jain", "J", levels.jain), Summary("used", "u", levels.used)),
    least=0.1,
    missing=("flow", "flow"),
    height_in=1.15,
    reported=True,
)
TRANSFER = Plot(
    name="transfer",
    title="transfer",
    about="transfer per {interval}",
    help="payload acknowledged in each interval",
    lines=(
        Line(
            Variable(
                "transfer",
                "transfer",
                "bytes",
                "flow",
                scale="kB",
                combined="sum",
                rate=Rate("bytes_acked"),
            ),
            "bars",
        ),
    ),
    on_screen=False,
    reported=True,
)
ACKED = Plot(
    name="acked",
    title="acknowledged",
    about="acknowledged bytes",
    help="payload acknowledged since the flow began",
    lines=(Line(_FLOW["bytes_acked"], "total"),),
    least=0.1,
    missing=("flow", "flow"),
    height_in=1.25,
    reported=True,
)
PACING_RATE = Plot(
    name="pacing-rate",
    title="pacing rate",
    help="pacing rate of each flow; 0 if the flow is not paced",
    lines=(Line(_FLOW["pacing_rate"]),),
    least=0.1,
    missing=("flow", "flow"),
)
UNACKED = Plot(
    name="unacked",
    title="unacked",
    about="unacknowledged segments",
    help="segments that each flow has sent and no ACK has covered yet",
    lines=(Line(_FLOW["unacked"]),),
    least=8.0,
    missing=("flow", "flow"),
)


def _with_lines(plot: Plot) -> Plot:
    """Return a plot with the lines that kinds of traffic add to it, below its own.

    An empty one asks for traffic of the first such kind.
    """
    kinds = [kind for kind in TRAFFIC if plot.name in kind.lines]
    added = (kind.lines[plot.name] for kind in kinds)
    missing = (kinds[0].word, kinds[0].name) if kinds else plot.missing
    return replace(plot, lines=(*added, *plot.lines), missing=missing)


PLOTS: dict[str, Plot] = {
    plot.name: _with_lines(plot)
    for plot in (
        CWND,
        UNACKED,
        QUEUE,
        SOJOURN,
        *(plot for kind in TRAFFIC for plot in kind.plots),
        RTT,
        GOODPUT,
        PACING_RATE,
        TRANSFER,
        ACKED,
    )
}
"""Plots by name; ``of_variable`` makes those of own values."""


def reported(names: Collection[str] = ()) -> list[Plot]:
    """Return the plots that a report draws by default, and those with these names.

    Raises ``UsageError`` for a name that no plot has.
    """
    if unknown := [name for name in names if name not in PLOTS]:
        offered = ", ".join(plot.name for plot in PLOTS.values() if not plot.reported)
        raise UsageError(f"there is no plot {', '.join(unknown)}; a report can draw {offered}")
    return [plot for plot in PLOTS.values() if plot.reported or plot.name in names]

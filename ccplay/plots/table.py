"""All plots, in the order of a report's figure."""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from ccplay.errors import UsageError
from ccplay.model.variables import (
    DELAY,
    LOSS,
    RECEIVED,
    VARIABLES,
    Rate,
    Variable,
    variable,
)
from ccplay.plots import derived, plot
from ccplay.plots.plot import Count, Line, Plot, Setting, Summary

_FLOW, _QUEUE, _PING = VARIABLES["flow"], VARIABLES["queue"], VARIABLES["ping"]
_SOJOURNS = {
    "queue_sojourn_p99_us": "p99",
    "queue_sojourn_p95_us": "p95",
    "queue_sojourn_p50_us": "median",
}
"""Variables of a queue in software with their descriptions; titles begin with the last one's
value."""
_NO_UDP = ("cross traffic", "udp")
_NO_MONITOR = ("cross traffic that is monitored", "udp")

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
        Setting("queue_limit", "limit", plot.limits, near=True),
        Setting("mark", "ECN marks from here on", plot.thresholds, near=True),
    ),
    counts=(
        Count(_QUEUE["drops"], "drop", "drops"),
        Count(_QUEUE["ecn_marks"], "mark", "marks"),
    ),
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
UDP = Plot(
    name="udp",
    title="UDP",
    about="cross traffic",
    help="rate of cross traffic that arrives, over the last second; a line shows what is sent",
    lines=(Line(RECEIVED, "area"),),
    settings=(Setting("queue_limit", "sent", plot.sent_rates, short="sent"),),
    least=0.1,
    missing=_NO_UDP,
    height_in=0.65,
    reported=True,
)
UDP_LOSS = Plot(
    name="udp-loss",
    title="UDP loss",
    help="share of cross traffic's packets that were lost, over the last second",
    lines=(Line(LOSS),),
    missing=_NO_UDP,
    height_in=0.65,
)
UDP_DELAY = Plot(
    name="udp-delay",
    title="UDP delay",
    help="mean one-way delay of cross traffic, over the last second",
    lines=(Line(DELAY),),
    missing=_NO_MONITOR,
    height_in=0.65,
)
RTT = Plot(
    name="rtt",
    title="RTT",
    about="round-trip time",
    help="smoothed RTT of each flow, and the RTT of pings",
    lines=(Line(_PING["rtt_us"], "dots", ink="ping"), Line(_FLOW["srtt_us"])),
    settings=(Setting("base_rtt", "links' delay", plot.base_rtts, short="base"),),
    least=2.0,
    missing=("ping", "ping"),
    height_in=1.15,
    reported=True,
)
GOODPUT = Plot(
    name="throughput",
    title="goodput",
    help="acknowledged payload, mean of the last second; Jain's index, share of rate used",
    lines=(
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
    whole=Setting("queue_limit", "link's rate", plot.rates),
    summaries=(Summary("Jain", "J", derived.jain), Summary("used", "u", derived.utilisation)),
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

PLOTS: dict[str, Plot] = {
    plot.name: plot
    for plot in (
        CWND,
        UNACKED,
        QUEUE,
        SOJOURN,
        UDP,
        UDP_LOSS,
        UDP_DELAY,
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
        raise UsageError(f"no plot {', '.join(unknown)}; a report draws on request: {offered}")
    return [plot for plot in PLOTS.values() if plot.reported or plot.name in names]

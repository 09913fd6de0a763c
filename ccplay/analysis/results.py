"""The shape of a result, which ``ccplay run --json`` prints.

Its keys are stable: new ones may be added, none is removed or changes its meaning within a
``format``. Unknown values are null, never NaN.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ccplay.analysis.sharing import Reaction
from ccplay.analysis.statistics import MachineEffect, Statistic
from ccplay.analysis.trust import HealthResult
from ccplay.model.columns import MILLISECONDS, PACKETS, SHARE, SIZE, Column, ResultTable
from ccplay.scenario.values import Published
from ccplay.state.lab_state import LabState
from ccplay.traffic import CaseIdentity, TrafficResults

# --- the checkpoint of a race: bytes of every flow when the first of a fixed size is done ---------


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """All flows at the moment of one sweep, so that their metrics can be compared."""

    t: float
    """Seconds since the start of the stream."""
    elapsed_s: float
    """Seconds since the first flow of a fixed size opened its connection."""
    first: str
    """Name of the flow that is done."""
    bytes: dict[str, int]
    """Acknowledged payload in bytes by flow; flows of a fixed size come first, in the file's
    order."""
    ratio: float | None
    """Bytes of the first over those of the second flow, if exactly two have a fixed size."""


def checkpoint(state: LabState, sizes: Mapping[str, int] | None = None) -> Checkpoint | None:
    """Return the checkpoint of a session; None if no flow of a fixed size is done yet.

    ``sizes`` are the flows of a fixed size in the order for the ratio; by default those that the
    session has started, in the order of its scenario.
    """
    if (finish := state.finish) is None:
        return None
    fixed = list(fixed_sizes(state) if sizes is None else sizes)
    found = finish.bytes
    names = [name for name in fixed if name in found]
    pair = [found.get(name, 0) for name in fixed]
    started = min(state.flows[name].started for name in names or [finish.first])
    return Checkpoint(
        t=round(finish.t, 6),
        elapsed_s=round(finish.t - started, 6),
        first=finish.first,
        bytes={name: found[name] for name in dict.fromkeys((*names, *found))},
        ratio=round(pair[0] / pair[1], 6) if len(pair) == 2 and pair[1] else None,
    )


def fixed_sizes(state: LabState) -> dict[str, int]:
    """Return the flows of a fixed size with their bytes.

    They are in the order of the scenario, although repeats may start them in another; flows started
    by hand follow.
    """
    found = state.sizes
    build = state.hello.build if state.hello else None
    scripted = [name for name in (build.reserved if build else ()) if name in found]
    return {name: found[name] for name in (*scripted, *found)}


# --- the shape of a result, which ``ccplay run --json`` prints ------------------------------------

FORMAT = 1
"""Version of the result's shape."""


class QueueResult(msgspec.Struct, frozen=True, kw_only=True):
    """The queue of one direction of a link, over the sweeps from the first traffic to the last."""

    link: str
    kind: str
    """Discipline at the start; ``kinds`` lists all that were used."""
    kinds: list[str]
    qlen_p50: float | None
    """Packets waiting, median over sweeps."""
    qlen_p99: float | None
    qlen_max: float | None
    qlen_mean: float | None = None
    backlog_p50: float | None
    """Bytes waiting, median over sweeps."""
    backlog_p99: float | None
    backlog_mean: float | None = None
    delay_p50_ms: float | None = None
    """Queueing delay in ms, backlog over rate, median over sweeps."""
    delay_p95_ms: float | None = None
    delay_p99_ms: float | None = None
    sojourn_p50_ms: float | None = None
    """Median sojourn time in ms of packets in a discipline in software, to some 6 %."""
    sojourn_p95_ms: float | None = None
    sojourn_p99_ms: float | None = None
    utilisation: float | None = None
    """Share of the link's rate that was used; of its capacity while it moved."""
    self_inflicted_delay_ms: float | None = None
    """95th percentile in ms of the time that packets waited for a link that moves, as mahimahi's
    mm-throughput-graph reports it; a sender that knew the link would cause none (Sprout)."""
    drops: int
    """Packets dropped by all disciplines of the run together."""
    loss: float | None = None
    """Share of arriving packets that were dropped."""
    marks: int | None
    """Packets marked with CE; null if the discipline does not mark."""
    bytes: int
    """Bytes that left the queue, headers included."""

    @property
    def where(self) -> str:
        """Link in print: ``r → h2``."""
        return self.link.replace("->", " → ")

    @property
    def disciplines(self) -> str:
        """Disciplines in the order of their use: ``pfifo → bfifo``."""
        return " → ".join(self.kinds)


QUEUES = ResultTable(
    "Queues",
    (
        Column("queue", ("where",)),
        Column("kind", ("disciplines",)),
        Column(
            "length",
            ("qlen_p50", "qlen_p99", "qlen_max"),
            PACKETS,
            ("p50", "p99", "max"),
            short="packets",
        ),
        Column("backlog", ("backlog_p50", "backlog_p99"), SIZE, ("p50", "p99")),
        Column(
            "delay",
            ("delay_p50_ms", "delay_p95_ms", "delay_p99_ms"),
            MILLISECONDS,
            ("p50", "p95", "p99"),
            brief=(),
        ),
        Column(
            "sojourn",
            ("sojourn_p50_ms", "sojourn_p95_ms", "sojourn_p99_ms"),
            MILLISECONDS,
            ("p50", "p95", "p99"),
            brief=(),
        ),
        Column("utilisation", ("utilisation",), SHARE, brief=()),
        Column("self-inflicted", ("self_inflicted_delay_ms",), MILLISECONDS, ("p95",), brief=()),
        Column("drops", ("drops",), PACKETS),
        Column("ECN marks", ("marks",), PACKETS, short="marks"),
    ),
)


class InterfaceResult(msgspec.Struct, frozen=True, kw_only=True):
    """Counters of an interface from the start until all traffic had ended."""

    id: str
    """Name of the interface, such as ``r-eth1``."""
    node: str
    link: str
    """Direction in which packets leave."""
    sent: int
    """Packets sent."""
    sent_bytes: int
    """Bytes sent, Ethernet headers included."""
    received: int
    received_bytes: int
    dropped: int
    """Packets dropped by the interface's queue, which do not count as sent."""
    lost: int | None
    """Sent packets that the link's loss setting dropped; null if not counted."""

    @property
    def where(self) -> str:
        """Link in print: ``r → h2``."""
        return self.link.replace("->", " → ")


INTERFACES = ResultTable(
    "Interfaces",
    (
        Column("node", ("node",)),
        Column("link", ("where",)),
        Column("sent", ("sent",), PACKETS),
        Column("sent", ("sent_bytes",), SIZE, note="bytes"),
        Column("received", ("received",), PACKETS),
        Column("received", ("received_bytes",), SIZE, note="bytes"),
        Column("dropped", ("dropped",), PACKETS, note="by the queue"),
        Column("lost", ("lost",), PACKETS, note="on purpose"),
    ),
    lambda counted: (counted,) if counted.sent or counted.received else (),
    in_brief=False,
)


class DirectionResult(msgspec.Struct, frozen=True, kw_only=True):
    """All long-lived flows from one host to another together."""

    id: str
    """Source and destination: ``h1->h2``."""
    goodput_bps: float
    """Sum of the flows' goodput in bits per second."""
    goodput_mean_bps: float
    """Mean of the flows' goodput in bits per second."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """An expectation of the scenario, and whether it held."""

    metric: str = msgspec.field(name="figure")
    text: str
    """Expectation as written in the file."""
    why: str
    value: float | None
    """Measured value; null if there was none."""
    ok: bool


class CaseResult(TrafficResults, frozen=True, kw_only=True):
    """Results of one run of a case."""

    queues: list[QueueResult]
    interfaces: list[InterfaceResult] = msgspec.field(default_factory=list)
    """Counters of the interfaces; empty if the lab died."""
    directions: list[DirectionResult] = msgspec.field(default_factory=list)
    """Traffic by source and destination; empty if all flows have the same."""
    checkpoint: Checkpoint | None = None
    """State of the race when the first flow of a fixed size was done; null if none was."""
    jain: float | None = None
    """Jain's fairness index of the flows' goodput while all of them ran; 1 if all are equal."""
    converged_s: float | None = None
    """Seconds from the last flow's start until the flows first shared fairly; null if they never
    did."""
    starvation: float | None = None
    """Largest share of seconds in which one flow had less than a tenth of an equal share of the
    goodput of all; null for fewer than two flows."""
    loss_synchronisation: float | None = None
    """Share of the flows that lose packets in one congestion event, mean over all events: 1 if all
    lose together."""
    rpm: float | None = None
    """Round trips per minute under load, after draft-ietf-ippm-responsiveness, by pings and
    srtt."""
    reactions: list[Reaction] = msgspec.field(default_factory=list)
    """How each long-lived flow reacted to others and to its path."""
    goodput_bps: float | None = None
    """Sum of the goodput of all long-lived flows in bits per second; null without any."""
    fct_mean_s: float | None = None
    """Mean completion time in seconds of the flows of a fixed size; null if one was not done, or
    there is none."""
    fct_max_s: float | None = None
    """Seconds from the first start of the flows of a fixed size until the last one was done; null
    if one was not done, or there is none."""
    checks: list[Check] = msgspec.field(default_factory=list)
    health: HealthResult
    errors: list[str]
    """Refused commands, traffic that died, and steps that never took effect."""


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """The lab's machine, which may explain a difference between two results."""

    name: str = ""
    """Name of the machine if several made the runs."""
    kernel: str
    cpus: int
    python: str
    ccplay: str
    privilege: str
    delay_engines: list[str]
    """Delay engines used by links of the run."""
    offloads: bool
    """Whether any link had TSO, GSO or GRO on."""
    sample_hz: float


class CaseStatistics(CaseIdentity, frozen=True, kw_only=True):
    """Statistics over the repeats of one case."""

    runs: int
    """Runs completed without errors; no others are counted."""
    untrustworthy: int = 0
    """Number of runs that could not be trusted even after repetition."""
    metrics: dict[str, Statistic] = msgspec.field(name="figures")
    """Statistics by the path of the metric, such as ``checkpoint.ratio``."""
    reported: list[str] = msgspec.field(default_factory=list)
    """Metrics to show first: those of the scenario, or the default ones."""
    published: list[Published] = msgspec.field(default_factory=list)


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a whole experiment."""

    format: int = FORMAT
    scenario: str
    """Name of the scenario file without its ending."""
    title: str
    machine: Machine | None
    """Machine of the lab; null if no lab started."""
    cases: list[CaseResult]
    """Results of all runs; repeats of a case have the same name."""
    statistics: list[CaseStatistics] = []
    """Statistics over the runs, one for each case."""
    discarded: list[CaseResult] = []
    """Attempts that could not be trusted and were repeated."""
    machines: list[Machine] = []
    """Machines that made runs, by name, if there were several."""
    machine_effects: list[MachineEffect] = []
    """Machines' means of the metrics shown first; empty if one machine made all runs."""

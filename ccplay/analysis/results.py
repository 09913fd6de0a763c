"""The shape of a result: what ``ccplay run --json`` prints.

Its keys are stable: new ones may be added, none is removed or changes its meaning within a
``format``. Unknown values are null, never NaN.
"""

from __future__ import annotations

import msgspec

from ccplay.analysis.checkpoint import Checkpoint
from ccplay.analysis.machines import MachineEffect
from ccplay.analysis.statistics import Statistic
from ccplay.analysis.trust import HealthResult
from ccplay.state.columns import (
    MILLISECONDS,
    PACKETS,
    SHARE,
    SIZE,
    Column,
    Table,
)
from ccplay.state.kinds import TrafficResults

FORMAT = 1
"""Version of the result's shape."""


class QueueResult(msgspec.Struct, frozen=True, kw_only=True):
    """The queue of one direction of a link, over the sweeps from the first traffic to the last."""

    link: str
    kind: str
    """The discipline at the start; ``kinds`` has all that followed one another."""
    kinds: list[str]
    qlen_p50: float | None
    """Packets waiting."""
    qlen_p99: float | None
    qlen_max: float | None
    qlen_mean: float | None = None
    backlog_p50: float | None
    """Bytes waiting."""
    backlog_p99: float | None
    backlog_mean: float | None = None
    delay_p50_ms: float | None = None
    """Queueing delay: backlog over rate."""
    delay_p95_ms: float | None = None
    delay_p99_ms: float | None = None
    sojourn_p50_ms: float | None = None
    """Sojourn time of each packet in a discipline in software, to some 6 %."""
    sojourn_p95_ms: float | None = None
    sojourn_p99_ms: float | None = None
    utilisation: float | None = None
    """Share of the link's rate that was used."""
    drops: int
    """Packets, all disciplines together."""
    loss: float | None = None
    """Share of arriving packets that were dropped."""
    marks: int | None
    """Packets marked with CE; null if the discipline does not mark."""
    bytes: int
    """Bytes that left the queue, headers included."""

    @property
    def where(self) -> str:
        """Its link on paper: ``r → h2``."""
        return self.link.replace("->", " → ")

    @property
    def disciplines(self) -> str:
        """Those that followed one another: ``pfifo → bfifo``."""
        return " → ".join(self.kinds)


QUEUES = Table(
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
        Column("drops", ("drops",), PACKETS),
        Column("ECN marks", ("marks",), PACKETS, short="marks"),
    ),
)


class InterfaceResult(msgspec.Struct, frozen=True, kw_only=True):
    """Counters of an interface, from the beginning until all traffic had ended."""

    id: str
    """Name of the interface, such as ``r-eth1``."""
    node: str
    link: str
    """The direction that packets leave on."""
    sent: int
    """Packets."""
    sent_bytes: int
    """Ethernet headers included."""
    received: int
    received_bytes: int
    dropped: int
    """Packets dropped by its queue, which do not count as sent."""
    lost: int | None
    """Sent packets that its link lost on purpose; null if not counted."""

    @property
    def where(self) -> str:
        """Its link on paper: ``r → h2``."""
        return self.link.replace("->", " → ")


INTERFACES = Table(
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
    """All long-lived flows of one direction together, from a host to another."""

    id: str
    """``h1->h2``."""
    goodput_bps: float
    """The sum of theirs."""
    goodput_mean_bps: float
    """Their mean."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """An expectation of the scenario, and whether it held."""

    metric: str = msgspec.field(name="figure")
    text: str
    """What was expected, as the file has it."""
    why: str
    value: float | None
    """Measured value; null if there was none."""
    ok: bool


class CaseResult(TrafficResults, frozen=True, kw_only=True):
    """Results of one run of a case."""

    queues: list[QueueResult]
    interfaces: list[InterfaceResult] = msgspec.field(default_factory=list)
    """Health of the lab; empty if it died."""
    directions: list[DirectionResult] = msgspec.field(default_factory=list)
    """Traffic by the hosts at both ends; empty where all flows have the same ends."""
    checkpoint: Checkpoint | None = None
    """State of the race when the first flow of a fixed size was done; null where none was."""
    jain: float | None = None
    """Fairness index of the flows' goodput while all of them ran; see ``fairness``."""
    converged_s: float | None = None
    """Seconds from the last flow's start until the flows first shared fairly; null if they never
    did."""
    goodput_bps: float | None = None
    """Sum of the goodput of all long-lived flows; null where there is none."""
    fct_mean_s: float | None = None
    """Over all flows of a fixed size; null where one was not done, or there is none."""
    fct_max_s: float | None = None
    """Seconds from the first start of these flows until the last one was done; null as above."""
    checks: list[Check] = msgspec.field(default_factory=list)
    health: HealthResult
    errors: list[str]
    """Refused commands, traffic that died, and steps that never took effect."""


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """Machine of the lab, which may explain a difference between two results."""

    name: str = ""
    """Name of the machine, where several machines made the runs."""
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


class PublishedResult(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody else measured of a metric."""

    metric: str = msgspec.field(name="figure")
    values: list[float]
    note: str
    source: str = ""
    """Source, as in the scenario."""


class CaseStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """The repeats of one case together."""

    name: str
    parameters: dict[str, str | int | float | bool] = {}
    runs: int
    """Runs completed without errors; no others are counted."""
    untrustworthy: int = 0
    """Number of them that could not be trusted, even after repeating."""
    metrics: dict[str, Statistic] = msgspec.field(name="figures")
    """Statistics by the metric's place in a run's object, such as ``checkpoint.ratio``."""
    reported: list[str] = []
    """Metrics to show first: those of the scenario, or the usual ones."""
    published: list[PublishedResult] = []


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """A whole experiment."""

    format: int = FORMAT
    scenario: str
    """The file's name without its ending."""
    title: str
    machine: Machine | None
    """Null if no lab started."""
    cases: list[CaseResult]
    """Results of the runs, one for each; with repeats, several have one name."""
    statistics: list[CaseStatistics] = []
    """Statistics over the runs, one for each case."""
    discarded: list[CaseResult] = []
    """Attempts that could not be trusted and were repeated."""
    machines: list[Machine] = []
    """All that made runs, by name, where several did."""
    machine_effects: list[MachineEffect] = []
    """Differences between machines in the metrics to show first; empty where one machine made all
    runs."""

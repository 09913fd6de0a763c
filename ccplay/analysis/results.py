"""The shape of a result: what ``ccplay run --json`` prints.

Its keys are stable: new ones may come, none goes or changes its meaning while ``format`` stays.
What is not known is null, never NaN.
"""

from __future__ import annotations

import msgspec

from ccplay.analysis.checkpoint import Checkpoint
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
    """Queueing delay, backlog over rate: how long a byte that came then had to wait."""
    delay_p95_ms: float | None = None
    delay_p99_ms: float | None = None
    utilisation: float | None = None
    """Share of the link's rate that was used."""
    drops: int
    """Packets, all disciplines together."""
    loss: float | None = None
    """Share of the packets that came which were dropped."""
    marks: int | None
    """Packets marked with ECN's CE; null where the discipline does not mark."""
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
        Column("utilisation", ("utilisation",), SHARE, brief=()),
        Column("drops", ("drops",), PACKETS),
        Column("ECN marks", ("marks",), PACKETS, short="marks"),
    ),
)


class InterfaceResult(msgspec.Struct, frozen=True, kw_only=True):
    """What an interface has counted, from the network's beginning until all traffic had ended."""

    id: str
    """Its name: ``r-eth1``."""
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
    """Packets that its queue did not take or threw away; they are not among those sent."""
    lost: int | None
    """Packets sent that its link lost on purpose; null where nobody counts them."""

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


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """An expectation of the scenario, and whether it held."""

    figure: str
    text: str
    """What was expected, as the file has it."""
    why: str
    value: float | None
    """What was measured; null where nothing was."""
    ok: bool


class CaseResult(TrafficResults, frozen=True, kw_only=True):
    """What one run of a case measured."""

    queues: list[QueueResult]
    interfaces: list[InterfaceResult] = msgspec.field(default_factory=list)
    """Empty where the lab did not come to its end."""
    checkpoint: Checkpoint | None = None
    """When the first flow of a fixed size was done; null where none was."""
    jain: float | None = None
    """Fairness index of the flows' goodput while all of them ran; see ``fairness``."""
    converged_s: float | None = None
    """From the last flow's start until they first shared fairly; null where they never did."""
    checks: list[Check] = msgspec.field(default_factory=list)
    health: HealthResult
    errors: list[str]
    """What the lab refused, what died, what never came."""


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """Where the lab ran: what explains a difference between two results."""

    kernel: str
    cpus: int
    python: str
    ccplay: str
    privilege: str
    delay_engines: list[str]
    """Those that links of the run used."""
    offloads: bool
    """Whether any link had TSO, GSO or GRO on."""
    sample_hz: float


class PublishedResult(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody else measured of a metric."""

    figure: str
    values: list[float]
    note: str
    source: str = ""
    """Who measured it, and where it can be read, as the scenario has it."""


class CaseStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """The repeats of one case together."""

    name: str
    parameters: dict[str, str | int | float | bool] = {}
    runs: int
    """Those that came to their end and in which nothing failed; no others are counted."""
    untrustworthy: int = 0
    """How many of them had a lab that could not keep time, even when they were done again."""
    figures: dict[str, Statistic]
    """By the metric's place in a run's object, such as ``checkpoint.ratio``."""
    reported: list[str] = []
    """Those to show first: the scenario's own, or where it names none the usual ones."""
    published: list[PublishedResult] = []


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """A whole experiment."""

    format: int = FORMAT
    scenario: str
    """The file's name without its ending."""
    title: str
    machine: Machine | None
    """Null where no lab came to life."""
    cases: list[CaseResult]
    """One a run: with repeats, several have one name."""
    statistics: list[CaseStatistics] = []
    """One a case."""
    discarded: list[CaseResult] = []
    """Attempts whose emulation could not be trusted, and which were done again."""

"""The shape of a result: what ``ccplay run --json`` prints.

Its keys are stable: new ones may come, none goes or changes its meaning while ``format`` stays.
What is not known is null, never NaN.
"""

from __future__ import annotations

import msgspec

from ccplay.analysis.checkpoint import Checkpoint
from ccplay.analysis.statistics import Statistic
from ccplay.analysis.trust import HealthResult
from ccplay.state.short_flows import ShortFlowsResult

FORMAT = 1
"""Version of the result's shape."""


class Switch(msgspec.Struct, frozen=True):
    """A running flow took another congestion control."""

    t: float
    """Seconds since the start of the stream."""
    cc: str


class Misbehaviour(msgspec.Struct, frozen=True):
    """What a congestion control did that was no good to its flow."""

    t: float
    """Seconds since the start of the stream; it had lasted for some by then."""
    until: float | None
    """Null where it lasted until the flow ended."""
    cc: str
    wrong: str
    """Such as ``keeps cwnd at 1``."""


class FlowResult(msgspec.Struct, frozen=True, kw_only=True):
    """A long-lived flow, its parallel streams together.

    cwnd and srtt percentiles are over all sweeps in which a stream was sampled.
    """

    id: str
    cc: str
    """The algorithm that it started with; ``switches`` has later ones."""
    switches: list[Switch]
    src: str
    dst: str
    streams: int
    started_s: float
    """Seconds since the start of the stream."""
    goodput_bps: float | None
    """Payload acknowledged by the receiver, in bits, over ``duration_s``."""
    bytes: int
    """Payload acknowledged."""
    duration_s: float
    fct_s: float | None = None
    """Flow completion time: from its first to its last byte; null where it had no fixed size, or
    was not done."""
    retransmits: int
    """Segments sent again."""
    loss: float | None = None
    """Share of its segments that were sent again."""
    tx_bps: float | None = None
    """Payload sent, what was sent again included, in bits, over ``duration_s``."""
    ecn: bool = False
    """Both ends agreed on ECN."""
    cwnd_p50: float | None
    """Segments."""
    cwnd_p99: float | None
    cwnd_max: float | None
    slow_start_s: float | None = None
    """From its start until slow start was left: by a loss, a mark or HyStart; null if never."""
    slow_start_cwnd: float | None = None
    """The cwnd that slow start had reached then, in segments."""
    srtt_p50_ms: float | None
    srtt_p95_ms: float | None
    srtt_p99_ms: float | None
    srtt_mean_ms: float | None = None
    """Mean over all sweeps: there and back."""
    min_rtt_ms: float | None
    """The least RTT that the kernel has measured."""
    misbehaved: list[Misbehaviour] = []
    """What its algorithms did that was no good; of parallel streams, what any of them had."""
    delay_mean_ms: float | None = None
    """One way, from the sending host's IP to the receiving one's, over every packet that arrived;
    null where the flow was not monitored, as what follows."""
    delay_min_ms: float | None = None
    delay_max_ms: float | None = None
    rx_bps: float | None = None
    """Payload that arrived, what came twice included, in bits, over ``duration_s``."""
    packets: int | None = None
    """Sent until the newest that arrived, each copy counted; those without payload are not."""
    packet_loss: float | None = None
    """Share of those that did not arrive."""
    error: str | None
    """Why it died, where nobody asked for it."""


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


class PingResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a ping measured. Times are over the answers that came."""

    id: str
    src: str
    dst: str
    sent: int
    lost: int
    min_ms: float | None
    p50_ms: float | None
    p95_ms: float | None
    max_ms: float | None
    error: str | None


class DownloadResult(msgspec.Struct, frozen=True, kw_only=True):
    """A web page fetched with wget."""

    id: str
    src: str
    dst: str
    bytes: int
    """Bytes that arrived."""
    total: int
    """Bytes asked for."""
    seconds: float | None
    """wget's own clock; null where it did not finish."""
    rate_bps: float | None
    """``bytes`` in bits over ``seconds``."""
    cwnd_max: float | None
    """The web server's, in segments."""
    error: str | None


class UdpResult(msgspec.Struct, frozen=True, kw_only=True):
    """Cross traffic: what iperf3 counted at both of its ends."""

    id: str
    src: str
    dst: str
    packet_bytes: int
    """Payload of each packet."""
    started_s: float
    """Seconds since the start of the stream."""
    duration_s: float | None
    """How long it sent; null where it has not ended, as everything that is known at its end."""
    sent: int | None
    """Packets."""
    received: int | None
    """Packets; the receiver may leave the last one or two unread."""
    tx_bps: float | None
    """Payload sent, in bits, over ``duration_s``."""
    rx_bps: float | None
    """Payload received, in bits, over ``duration_s``."""
    loss: float | None
    """Share of the packets sent that were not received, but for those under way at the end."""
    jitter_ms: float | None
    """The receiver's, smoothed as in RFC 3550, at the end."""
    delay_mean_ms: float | None = None
    """One way, over every packet that arrived; null where it was not monitored, as what follows."""
    delay_min_ms: float | None = None
    delay_max_ms: float | None = None
    error: str | None


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


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """An expectation of the scenario, and whether it held."""

    figure: str
    text: str
    """What was expected, as the file has it."""
    why: str
    value: float | None
    """What was measured; null where nothing was."""
    ok: bool


class CaseResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one run of a case measured."""

    name: str
    parameters: dict[str, str | int | float | bool] = {}
    """Where in the file's matrix the case lies, by axis."""
    repeat: int = 1
    attempt: int = 1
    """More than 1 where earlier attempts could not be trusted; see ``Result.discarded``."""
    recording: str | None = None
    """Where its stream is kept, seen from the result's own file."""
    duration_s: float
    """From the moment at which the network stood to the last event."""
    interrupted: bool
    flows: list[FlowResult]
    queues: list[QueueResult]
    pings: list[PingResult]
    downloads: list[DownloadResult]
    udp: list[UdpResult] = []
    short_flows: list[ShortFlowsResult] = []
    interfaces: list[InterfaceResult] = []
    """Empty where the lab did not come to its end."""
    checkpoint: Checkpoint | None = None
    """When the first flow of a fixed size was done; null where none was."""
    jain: float | None = None
    """Fairness index of the flows' goodput while all of them ran; see ``fairness``."""
    converged_s: float | None = None
    """From the last flow's start until they first shared fairly; null where they never did."""
    checks: list[Check] = []
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
    """What somebody else measured of a figure."""

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
    """By the figure's place in a run's object, such as ``checkpoint.ratio``."""
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

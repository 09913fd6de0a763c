"""All events of a lab; measurements are in ``samples``."""

from __future__ import annotations

from typing import Annotated, ClassVar, Generic

import msgspec

from ccplay.model.base import (
    FEW,
    AnyCommand_co,
    AnyStart_co,
    ConnectionName,
    Count,
    Duration,
    Event,
    Moment,
    WallTime,
)
from ccplay.model.commands import Build
from ccplay.model.network import Network
from ccplay.model.samples import CaStateChanged, Sweep, Sweeps, TraceSamples
from ccplay.model.values import Capabilities, LinkSetting


class Hello(Event, Generic[AnyStart_co], frozen=True):
    """The first event of every stream and so the first line of every recording."""

    format: Count
    """Version of the stream's format."""
    version: str
    """Version of ccplay."""
    wall_time: WallTime
    """Unix time at ``t`` = 0."""
    sample_hz: Annotated[float, msgspec.Meta(ge=1e-3, le=1e6)]
    capabilities: Capabilities
    network: Network
    build: Build[AnyStart_co] | None = None
    """The requested network; None in older recordings."""
    starts_together: bool = False
    """Whether the lab accepts ``StartTogether``; labs of 0.1 do not."""
    title: Annotated[str, msgspec.Meta(max_length=500)] = ""
    """Title of the scenario; a recorder adds it, a lab leaves it empty."""


class Building(Event, frozen=True):
    """Progress of building the network: ``done`` of ``total`` steps, with ``step`` under way."""

    step: str
    done: int
    total: int


class Ready(Event, frozen=True):
    """The network is ready and the lab accepts commands."""


class LinkChanged(Event, frozen=True):
    """The settings of one direction of a link, as read back from the kernel."""

    link: str
    setting: LinkSetting
    offloads: bool
    """Whether TSO, GSO and GRO are on, so that packets in the queue may be up to 64 KB."""
    delay_engine: str
    """Engine of the delay: ``netem``, ``delay line``, or ``none`` without added delay, loss or
    jitter."""


class HostChanged(Event, frozen=True):
    """The default congestion control of a host's new sockets, at first and after each change."""

    host: str
    cc: str


class Misbehaved(Event, frozen=True):
    """A flow's congestion control has misbehaved for some seconds, or has ceased to misbehave."""

    flow: str
    """Name of the connection: ``flow/2`` is stream 2."""
    cc: str
    wrong: str = ""
    """Misbehaviour, such as ``keeps cwnd at 1``; empty if it ended, or the algorithm or its program
    changed."""


class FlowPath(Event, frozen=True):
    """The path, one of several, that packets take from now on, according to the kernel's routes.

    It is sent at the start of traffic, and when a command or a cable that goes down or up changes
    the path; never for hosts with only one path between them. For short flows it is sent for each
    path when the first transfer takes it.
    """

    flow: ConnectionName
    """Name of the connection, or of other traffic: ``flow/2`` is stream 2."""
    links: Annotated[list[str], FEW]
    """Names of the links from the sender to the receiver; empty if there is no path at present."""
    pinned: bool = False
    """Whether a command chose the path rather than the hash."""
    back: Annotated[list[str], FEW] = []
    """Names of the links from the receiver to the sender, which ACKs take.

    Empty if they are unknown, and for traffic without ACKs."""


class InterfaceCounters(Event, frozen=True):
    """Counters of each interface since the network was built: one array per field.

    Sent once, when all traffic has ended.
    """

    interface: list[str]
    node: list[str]
    link: list[str]
    """Name of the directed link that begins at the interface."""
    sent: list[Count]
    """Packets sent."""
    sent_bytes: list[Count]
    received: list[Count]
    received_bytes: list[Count]
    dropped: list[Count]
    """Packets dropped by the interface's queue, which do not count as sent."""
    lost: list[Count | None]
    """Sent packets that the link's loss setting dropped; None if the kernel does not count them."""
    sojourn_us: dict[str, list[Duration]] = {}
    """Median, 95th and 99th percentile and maximum of sojourn times in µs, by link; only for
    packets in disciplines in software."""

    COLUMNS: ClassVar[tuple[str, ...]] = (
        *("interface", "node", "link", "sent", "sent_bytes"),
        *("received", "received_bytes", "dropped", "lost"),
    )
    """Fields with a value for each interface."""


class SojournTimes(Event, frozen=True):
    """Sojourn times of the packets that left a discipline in software since the last such event.

    Sent each second for every link on which packets left.
    """

    link: str
    kind: str
    """Kind of the discipline: ``codel.py``."""
    upto_us: Annotated[list[Count], FEW]
    """Upper bounds of classes of times in microseconds, ascending. The width of a class is at most
    an eighth of its times; classes without packets are left out."""
    packets: Annotated[list[Count], FEW]
    """Number of packets in each class."""


class CaptureStarted(Event, frozen=True):
    """Packets of a link are being written to a file."""

    capture: str
    link: str
    """Name of the directed link with the packets that are captured as they leave."""
    path: str
    """Path of the file, with ``HOST:`` in front if the lab runs on another machine."""


class CaptureEnded(Event, frozen=True):
    """A capture has ended, and its file is complete."""

    capture: str
    path: str
    packets: int
    bytes: int
    """Length of the file in bytes."""
    dropped: int
    """Number of packets dropped by the kernel."""
    full: bool = False
    """Whether the file has reached its size limit."""
    error: str | None = None
    """Reason for the end, if neither the size limit nor a command caused it."""


class TraceStarted(Event, frozen=True):
    """Every segment that returns to the sender of a flow or download is traced from now on."""

    flow: str


class TraceEnded(Event, frozen=True):
    """A trace has ended, with its flow or by a command."""

    flow: str
    segments: Count
    """Number of traced segments."""


class TraceLost(Event, frozen=True):
    """Segments missing from traces, because they came too fast or the kernel skipped BPF."""

    segments: Count
    """Number of missing segments, all traces together."""


MOST_LATE_S = 0.5
"""Largest acceptable lateness of a step in seconds; an idle machine takes 0.03 s for a step, and
starts prepared traffic 0.002 s late."""


class Applied(Event, Generic[AnyCommand_co], frozen=True):
    """A command has taken effect. Its names are filled in, so that it can be repeated."""

    command: AnyCommand_co
    took_s: float = 0.0
    """Seconds until the command took effect, such as the start of iperf3 or wget."""
    due: Moment | None = None
    """Moment in the timeline; None if the command is not from one, or in older recordings."""
    renewed: bool = False
    """Whether the cause was a saved file of an algorithm or a discipline, which was reloaded."""

    @property
    def late_s(self) -> float:
        """Seconds between a step's moment and its effect; 0 if it is not a step of a timeline."""
        return 0.0 if self.due is None else self.t - self.due


class Failed(Event, Generic[AnyCommand_co], frozen=True):
    """A command was refused, with the reason and the remedy."""

    command: AnyCommand_co | None
    message: str
    due: Moment | None = None
    """Moment at which ``StartTogether`` should have started the traffic; None without one."""


class Health(Event, frozen=True):
    """The lab's own timing over the last second."""

    ticks: int
    """Number of sweeps made."""
    missed: int
    """Number of sweeps missed because an earlier one was late."""
    late_p50_us: float
    """Lateness of sweeps in µs, median."""
    late_p99_us: float
    sweep_p50_us: float
    """Duration of sweeps in µs, median."""
    lab_cpu: float
    """Number of cores used by the lab process, its delay line and its disciplines in software."""
    host_cpu: float
    """Share of all cores in use, 0 to 1, without programs of lower priority than the lab."""
    steal: float
    """Share of all cores taken by the hypervisor, 0 to 1."""
    delay_late_p50_us: float | None = None
    """Lateness in µs of packets released by the delay line or by disciplines in software, median,
    the greater of the two; None if no such packet waited recently."""
    delay_late_p99_us: float | None = None
    events_dropped: int = 0
    """Number of events dropped because they were not read in time."""
    rate_accuracy: float | None = None
    """Bytes that left a bottleneck that was never empty, as a share of what its rate allows.

    The worst link over the last second, or over the seconds in which 100 full frames are sent; None
    if no queue lasted that long, or a discipline has its own rate."""


class Log(Event, frozen=True):
    """A message for people: ``level`` is ``info``, ``warning`` or ``error``."""

    level: str
    text: str
    spoils: bool = False
    """Whether the message means that this run's measurements can't be trusted."""


class Ended(Event, frozen=True):
    """The last event of a lab that ends in an orderly way."""

    reason: str


EVENTS: tuple[type[Event], ...] = (
    Hello,
    Building,
    Ready,
    LinkChanged,
    HostChanged,
    Misbehaved,
    FlowPath,
    InterfaceCounters,
    SojournTimes,
    CaptureStarted,
    CaptureEnded,
    TraceStarted,
    TraceEnded,
    TraceLost,
    TraceSamples,
    CaStateChanged,
    Sweep,
    Sweeps,
    Applied,
    Failed,
    Health,
    Log,
    Ended,
)
"""All events other than those of each kind of traffic."""

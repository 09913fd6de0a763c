"""All events of a lab; measurements are in ``samples``."""

from __future__ import annotations

from typing import Annotated, ClassVar, TypeAlias

import msgspec

from ccplay.model.base import FEW, ConnectionName, Count, Duration, Event, Moment, WallTime
from ccplay.model.commands import AnyCommand, Build
from ccplay.model.network import Network
from ccplay.model.samples import CaStateChanged, Sweep, Sweeps, TraceSamples
from ccplay.model.traffic_events import TrafficEvent
from ccplay.model.values import Capabilities, LinkSetting


class Hello(Event, frozen=True):
    """The first event of every stream and so the first line of every recording."""

    format: Count
    """Version of the stream's format; see ``wire.FORMAT``."""
    version: str
    """Version of ccplay."""
    wall_time: WallTime
    """Unix time at ``t`` = 0."""
    sample_hz: Annotated[float, msgspec.Meta(ge=1e-3, le=1e6)]
    capabilities: Capabilities
    network: Network
    build: Build | None = None
    """The requested network; None in older recordings."""
    starts_together: bool = False
    """Whether the lab takes ``StartTogether``; labs of 0.1 do not."""
    title: Annotated[str, msgspec.Meta(max_length=500)] = ""
    """Title of the scenario; a recorder adds it, a lab leaves it empty."""


class Building(Event, frozen=True):
    """Progress of building the network: ``done`` of ``total`` steps, ``step`` is current."""

    step: str
    done: int
    total: int


class Ready(Event, frozen=True):
    """The network is ready and the lab accepts commands."""


class LinkChanged(Event, frozen=True):
    """The settings of a direction of a link, read back from the kernel."""

    link: str
    setting: LinkSetting
    offloads: bool
    """TSO, GSO and GRO are on, so packets in the queue may be up to 64 KB."""
    delay_engine: str
    """``netem``, ``delay line`` or, without any added delay, loss or jitter, ``none``."""


class HostChanged(Event, frozen=True):
    """The default congestion control of a host's new sockets."""

    host: str
    cc: str


class Misbehaved(Event, frozen=True):
    """A flow's congestion control has misbehaved for some seconds, or has stopped."""

    flow: str
    """The connection: ``flow/2`` is stream 2."""
    cc: str
    wrong: str = ""
    """The misbehaviour, such as ``keeps cwnd at 1``; empty: it stopped, or the program changed."""


class FlowPath(Event, frozen=True):
    """Which of several paths packets take from now on, as the kernel's routes say.

    It comes with the start of traffic, and again where a command or a cable that goes down or up
    changes it. None comes between hosts that have one path only. Of short flows one comes for each
    path that a transfer is the first to take.
    """

    flow: ConnectionName
    """The connection, or other traffic: ``flow/2`` is stream 2."""
    links: Annotated[list[str], FEW]
    """Names of the links from its sender to its receiver; empty where there is no path now."""
    pinned: bool = False
    """Whether a command chose it, not the hash."""
    back: Annotated[list[str], FEW] = []
    """Names of the links from its receiver to its sender, by which ACKs return.

    Empty where they are not known, and for traffic that gets none.
    """


class InterfaceCounters(Event, frozen=True):
    """Counters of each interface since it was created: one array for each field.

    Sent once, when all traffic has ended.
    """

    interface: list[str]
    node: list[str]
    link: list[str]
    """The direction that packets leave on."""
    sent: list[Count]
    """Packets."""
    sent_bytes: list[Count]
    received: list[Count]
    received_bytes: list[Count]
    dropped: list[Count]
    """Packets dropped by its queue, which do not count as sent."""
    lost: list[Count | None]
    """Sent packets that its link lost on purpose; None if the kernel does not count them."""
    sojourn_us: dict[str, list[Duration]] = {}
    """Median, 95th and 99th percentile and maximum of the packets' sojourn times, by link; only of
    packets that waited in a discipline in software."""

    COLUMNS: ClassVar[tuple[str, ...]] = (
        *("interface", "node", "link", "sent", "sent_bytes"),
        *("received", "received_bytes", "dropped", "lost"),
    )
    """Fields with a value for each interface."""


class SojournTimes(Event, frozen=True):
    """How long packets have waited that left a discipline in software since the last such event.

    Each second for each link where packets left one.
    """

    link: str
    kind: str
    """The discipline: ``codel.py``."""
    upto_us: Annotated[list[Count], FEW]
    """Upper bounds of classes of times in microseconds, ascending. A class is at most an eighth as
    wide as its times are long; those without packets are left out."""
    packets: Annotated[list[Count], FEW]
    """Packets of each class."""


class CaptureStarted(Event, frozen=True):
    """Packets of a link are being written to a file."""

    capture: str
    link: str
    """The direction whose packets are captured as they leave."""
    path: str
    """Path of the file, with ``HOST:`` in front if the lab runs on another machine."""


class CaptureEnded(Event, frozen=True):
    """A capture is over, and its file complete."""

    capture: str
    path: str
    packets: int
    bytes: int
    """Length of the file."""
    dropped: int
    """Packets that the kernel dropped."""
    full: bool = False
    """The file has reached its bound."""
    error: str | None = None
    """Reason for its end, if neither its bound nor a command ended it."""


class TraceStarted(Event, frozen=True):
    """From now on every segment that returns to the sender of a flow or download is traced."""

    flow: str


class TraceEnded(Event, frozen=True):
    """A trace has ended, with its flow or by a command."""

    flow: str
    segments: Count
    """Number of traced segments."""


class TraceLost(Event, frozen=True):
    """Segments that traces missed: too fast to read, or the kernel ran no BPF."""

    segments: Count
    """Number of missed segments, all traces together."""


MOST_LATE_S = 0.5
"""Seconds of lateness beyond which the timeline that ran is not the one in the file. An idle
machine takes 0.03 s to carry out a step; traffic is prepared beforehand and is 0.002 s late."""


class Applied(Event, frozen=True):
    """A command took effect. Its names are filled in, so that it can be played again."""

    command: AnyCommand
    took_s: float = 0.0
    """Seconds until it took effect: iperf3 and wget have to start first."""
    due: Moment | None = None
    """Moment in the timeline; None if it is not from one, or in older recordings."""
    renewed: bool = False
    """Whether it was caused by saving the file of an algorithm, which was reloaded."""

    @property
    def late_s(self) -> float:
        """Seconds after its moment at which it took effect; 0 if it is no step of a timeline."""
        return 0.0 if self.due is None else self.t - self.due


class Failed(Event, frozen=True):
    """A command was refused, with the reason and the remedy."""

    command: AnyCommand | None
    message: str
    due: Moment | None = None
    """Moment at which the timeline wanted it, where it was to start together with others."""


class Health(Event, frozen=True):
    """The lab's own timing over the last second."""

    ticks: int
    """Sweeps made."""
    missed: int
    """Sweeps missed because an earlier one was late."""
    late_p50_us: float
    """Lateness of sweeps."""
    late_p99_us: float
    sweep_p50_us: float
    """Duration of sweeps."""
    lab_cpu: float
    """CPU of the lab process and its delay line, in cores."""
    host_cpu: float
    """Share of all cores in use, 0 to 1; what programs of a lower priority use is not counted."""
    steal: float
    """Share of all cores taken by the hypervisor, 0 to 1."""
    delay_late_p50_us: float | None = None
    """Lateness of packets released by the delay line; None with netem."""
    delay_late_p99_us: float | None = None
    events_dropped: int = 0
    """Events dropped because they were not read in time."""
    rate_accuracy: float | None = None
    """Bytes that left a never-empty bottleneck, as a share of what its rate allows.

    The worst link of the second, or of as many seconds as it takes to send 100 full frames;
    None if no queue lasted that long, or a discipline has its own rate.
    """


class Log(Event, frozen=True):
    """A message for people: ``level`` is ``info``, ``warning`` or ``error``."""

    level: str
    text: str
    spoils: bool = False
    """Whether measurements of this run can't be trusted because of it."""


class Ended(Event, frozen=True):
    """The last event of an orderly end."""

    reason: str


AnyEvent: TypeAlias = (
    TrafficEvent
    | Hello
    | Building
    | Ready
    | LinkChanged
    | HostChanged
    | Misbehaved
    | FlowPath
    | InterfaceCounters
    | SojournTimes
    | CaptureStarted
    | CaptureEnded
    | TraceStarted
    | TraceEnded
    | TraceLost
    | TraceSamples
    | CaStateChanged
    | Sweep
    | Sweeps
    | Applied
    | Failed
    | Health
    | Log
    | Ended
)

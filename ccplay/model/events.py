"""Everything that a lab tells of; what it measures is in ``samples``."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

from ccplay.model.base import FEW, Count, Event, Moment, Name, WallTime
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
    """ccplay's own version."""
    wall_time: WallTime
    """Unix time at ``t`` = 0."""
    sample_hz: Annotated[float, msgspec.Meta(ge=1e-3, le=1e6)]
    capabilities: Capabilities
    network: Network
    build: Build | None = None
    """What was asked for; None in recordings made before it was kept."""
    title: Annotated[str, msgspec.Meta(max_length=500)] = ""
    """What was run, in its scenario's words; a recorder adds it, a lab leaves it empty."""


class Building(Event, frozen=True):
    """Progress while the network builds: ``done`` of ``total`` steps, ``step`` under way."""

    step: str
    done: int
    total: int


class Ready(Event, frozen=True):
    """The network stands and commands are taken."""


class LinkChanged(Event, frozen=True):
    """What a direction of a link does now, read back from the kernel."""

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
    """For some seconds by now a flow's congestion control has done it no good, or no more."""

    flow: str
    """The connection: ``flow/2`` is stream 2."""
    cc: str
    wrong: str = ""
    """What it does, such as ``keeps cwnd at 1``; empty: not any more, or not this program."""


class FlowPath(Event, frozen=True):
    """Which of several paths a connection's packets take from now on, as the kernel's routes say.

    It comes with the flow's start, and again where a cable that goes down or up changes it. None
    comes between hosts that have one path only.
    """

    flow: Name
    """The connection: ``flow/2`` is stream 2."""
    links: Annotated[list[str], FEW]
    """Names of the links from its sender to its receiver; empty where there is no path now."""


class InterfaceCounters(Event, frozen=True):
    """What each interface of the network has done since it was made: one array a field.

    It comes once, when all traffic has ended.
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
    """Packets that its queue did not take or threw away, which are not among those sent."""
    lost: list[Count | None]
    """Packets sent that its link lost on purpose; None where the kernel does not count them."""


class CaptureStarted(Event, frozen=True):
    """Packets of a link are being written to a file."""

    capture: str
    link: str
    """The direction whose packets are taken as they leave."""
    path: str
    """Where the file is; with ``HOST:`` in front where the lab runs on another machine."""


class CaptureEnded(Event, frozen=True):
    """A capture is over, and its file complete."""

    capture: str
    path: str
    packets: int
    bytes: int
    """Length of the file."""
    dropped: int
    """Packets that the kernel could not keep for it."""
    full: bool = False
    """The file has reached its bound."""
    error: str | None = None
    """Why it ended when neither its bound nor anybody asked for it."""


class TraceStarted(Event, frozen=True):
    """From now on every segment that comes to the sender of a flow or download is told of."""

    flow: str


class TraceEnded(Event, frozen=True):
    """A trace is over: the flow has ended, or somebody asked for it."""

    flow: str
    segments: Count
    """Of how many it told."""


class TraceLost(Event, frozen=True):
    """Segments of traced flows were not told of: too fast to read, or the kernel ran no BPF."""

    segments: Count
    """How many are missing, of all traces together."""


MOST_LATE_S = 0.5
"""An idle machine takes 0.03 s to carry out a step, and 0.05 s more for each flow that starts at
the same moment. Beyond this the timeline that ran is not the one in the file."""


class Applied(Event, frozen=True):
    """A command took effect. Its names are filled in, so that it can be played again."""

    command: AnyCommand
    took_s: float = 0.0
    """How long that took: iperf3 and wget start first, and then it has taken effect."""
    due: Moment | None = None
    """When the timeline wanted it; None where no timeline did, or in older recordings."""
    renewed: bool = False
    """Nobody asked: the file of the algorithm that it names was saved, and runs as it is now."""

    @property
    def late_s(self) -> float:
        """How long after its moment it took effect; 0 where it is no step of a timeline."""
        return 0.0 if self.due is None else self.t - self.due


class Failed(Event, frozen=True):
    """A command was refused, with the reason and what to do."""

    command: AnyCommand | None
    message: str


class Health(Event, frozen=True):
    """How well the lab itself keeps time, over the second before."""

    ticks: int
    """Sweeps made."""
    missed: int
    """Sweeps that fell out because an earlier one was late."""
    late_p50_us: float
    """How late a sweep began."""
    late_p99_us: float
    sweep_p50_us: float
    """How long a sweep took."""
    lab_cpu: float
    """CPU of the lab process and its delay line, in cores."""
    host_cpu: float
    """How much of all cores was in use, 0 to 1."""
    steal: float
    """How much of all cores the hypervisor took away, 0 to 1."""
    delay_late_p50_us: float | None = None
    """How late the delay line released packets; None where netem does it."""
    delay_late_p99_us: float | None = None
    events_dropped: int = 0
    """Events lost because nobody read them in time."""
    rate_accuracy: float | None = None
    """What left a bottleneck while its queue was never empty over what its rate allows.

    The worst link of the second, or of as many seconds as it takes to send 100 full frames;
    None where no queue stood so long, or a discipline has a rate of its own.
    """


class Log(Event, frozen=True):
    """Something worth telling a person: ``level`` is ``info``, ``warning`` or ``error``."""

    level: str
    text: str
    spoils: bool = False
    """What was measured in this run can't be trusted because of it."""


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

"""All commands to a lab."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from ccplay.model import settings
from ccplay.model.base import FEW, MANY, Command, Moment, Name
from ccplay.model.network import BOTTLENECK, Topology
from ccplay.model.quantities import FREQUENCY, OCTETS, SIZE, Field
from ccplay.model.texts import LINE, NAME, NAMES
from ccplay.model.traffic_commands import StartTraffic, StopTraffic
from ccplay.model.values import LinkSetting, Qdisc, TrafficClass


class Build(Command, frozen=True):
    """The first command of every lab: the network to build."""

    topology: Topology = Topology()
    links: Annotated[dict[str, LinkSetting], FEW] = {}
    """Settings by the name of a link, of a direction, or ``bottleneck``; later entries override
    earlier ones."""
    congestion_controls: Annotated[dict[str, str], FEW] = {}
    """Default algorithm of new sockets by host; a missing host has ``cubic``."""
    sample_hz: Annotated[
        float,
        Field(
            FREQUENCY,
            'How often sockets and queues are read, "10 Hz" to "200 Hz"; 50 Hz by default',
            *(10, 200),
            key="sampling",
        ),
    ] = 50.0
    seed: int = 1
    """Seed of random loss and jitter."""
    reserved: Annotated[list[str], MANY] = []
    """Names of traffic that a script will start, in the order of its file.

    The lab assigns these names to no other traffic."""
    traces: bool = False
    """Whether the script traces flows, which the lab then prepares in advance."""
    first: Annotated[list[StartTraffic], FEW] = []
    """Starts that a script makes as soon as the network is ready; prepared before ``Ready``."""
    soon: Annotated[list[StartTogether], FEW] = []
    """Starts that a script makes shortly after ``Ready``, prepared before it; ``at`` is in seconds
    since ``Ready``."""
    prepared: Annotated[list[str], MANY] = []
    """Congestion controls named by a script; built and loaded before ``Ready``."""
    label: str = ""
    """Name of the files that the lab writes; if empty, they are named after the current time."""
    algorithms: Annotated[dict[str, str], FEW] = {}
    """SHA-256 of the sources of the user's own congestion controls by name; empty if unknown.

    The files themselves are named on the lab's command line."""
    disciplines: Annotated[dict[str, str], FEW] = {}
    """SHA-256 of the sources of the user's own queue disciplines by name; empty if unknown."""


class StartTogether(Command, frozen=True):
    """Prepare traffic, and start all of it at one moment of the lab's clock.

    The lab answers each of the commands, in order, as if it had been sent alone, with ``due`` set.
    Only a session sends this command; scenarios can't contain it.
    """

    at: Moment
    """Moment of the start; if it has passed, the traffic starts once all of it is prepared."""
    commands: Annotated[list[StartTraffic], MANY]


class SetCongestionControl(Command, frozen=True):
    """Switch a running flow or the default of a host's new sockets; exactly one must be named."""

    cc: Annotated[str, settings.CC]
    flow: Annotated[str | None, settings.FLOW] = None
    host: Annotated[
        str | None, Field(NAME, "The host whose default for new connections changes")
    ] = None


class SetPath(Command, frozen=True):
    """Move running traffic to another of several paths, without ``via`` to the next one."""

    traffic: Annotated[str, Field(NAME, "The name of a flow, a download, UDP or short flows")]
    via: Annotated[
        Annotated[list[str], FEW] | None,
        Field(NAMES, "Nodes that its packets pass; if empty, the routers' hash chooses"),
    ] = None


class SetQdisc(Command, frozen=True):
    """Replace the queue in front of a link while traffic flows; the rate stays."""

    qdisc: Qdisc
    link: Annotated[str, settings.LINK] = BOTTLENECK
    traffic_class: Annotated[
        str | None, Field(NAME, "The class whose queue is replaced", key="class")
    ] = None


class SetClasses(Command, frozen=True):
    """Put several queues in front of a link, each with a share of its rate.

    An empty list restores the single queue. The new queues are empty; packets in the old ones are
    lost.
    """

    classes: Annotated[list[TrafficClass], FEW]
    link: Annotated[str, settings.LINK] = BOTTLENECK


class SetLink(Command, frozen=True):
    """Change the settings of a link, or take it down; the queue stays."""

    link: Annotated[str, settings.LINK] = BOTTLENECK
    rate: Annotated[int | None, settings.LINK_RATE] = None
    delay_us: Annotated[int | None, settings.DELAY] = None
    jitter_us: Annotated[int | None, settings.JITTER] = None
    loss: Annotated[float | None, settings.LOSS] = None
    mark: Annotated[int | None, settings.MARK] = None
    down: Annotated[bool | None, settings.DOWN] = None
    distribution: Annotated[str | None, settings.DISTRIBUTION] = None
    gemodel: Annotated[Annotated[list[float], FEW] | None, settings.BURST_LOSS] = None
    reorder: Annotated[float | None, settings.REORDER] = None
    duplicate: Annotated[float | None, settings.DUPLICATE] = None
    corrupt: Annotated[float | None, settings.CORRUPT] = None


class StartCapture(Command, frozen=True):
    """Write the packets of a link, in both directions, to a pcapng file.

    Packets of ``link`` are captured as they leave, after the queue; those of the other direction as
    they arrive, before any delay. If ``link`` names both directions, the capture is at the end with
    an observed queue, else at a router.
    """

    link: Annotated[str, settings.LINK] = BOTTLENECK
    capture: Annotated[str | None, settings.CAPTURE] = None
    """Name of the capture; None takes the next free one: ``c1``, ``c2`` …"""
    snaplen: Annotated[
        int,
        Field(
            *(OCTETS, "Bytes kept of each packet", 64, 65_535),
            label="per packet",
            hint="128 B cover all headers",
        ),
    ] = 128
    max_bytes: Annotated[
        int,
        Field(
            SIZE,
            "Largest size of the file",
            *(10_000, 1_000_000_000),
            key="size",
            label="file up to",
            hint="pcapng, in the folder of the lab",
        ),
    ] = 50_000_000


class StopCapture(Command, frozen=True):
    """End a capture."""

    capture: Annotated[str, settings.CAPTURE]


class TraceFlow(Command, frozen=True):
    """Trace every segment that returns to the sender of a flow or download, until it ends.

    The lab then sends ``TraceSamples`` and ``CaStateChanged`` for each of its connections.
    """

    flow: Annotated[str, settings.FLOW]


class UntraceFlow(Command, frozen=True):
    """End a trace; sampling continues."""

    flow: Annotated[str, settings.FLOW]


class Mark(Command, frozen=True):
    """Put a mark on the time axis."""

    text: Annotated[str, Field(LINE, "Text of a mark on the time axis")]
    at: Moment | None = None
    """Moment of the mark; None stands for the moment at which the command takes effect."""
    name: Name | None = None
    """Name of the mark; None takes the next free one: ``m1``, ``m2`` …"""


class ChangeMark(Command, frozen=True):
    """Change the text of a mark, or move it to another moment; None keeps either."""

    name: Name
    text: str | None = None
    at: Moment | None = None


class RemoveMark(Command, frozen=True):
    """Remove a mark from the time axis."""

    name: Name


AnyCommand: TypeAlias = (
    Build
    | StartTraffic
    | StopTraffic
    | SetCongestionControl
    | SetPath
    | SetQdisc
    | SetClasses
    | SetLink
    | StartCapture
    | StopCapture
    | TraceFlow
    | UntraceFlow
    | Mark
    | ChangeMark
    | RemoveMark
)

Order: TypeAlias = AnyCommand | StartTogether
"""Any command that a session sends to a lab."""

"""Everything that a lab can be asked to do."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from ccplay.model import settings
from ccplay.model.base import FEW, MANY, Command, Moment, Name
from ccplay.model.fields import Field
from ccplay.model.network import BOTTLENECK, Topology
from ccplay.model.quantities import (
    FREQUENCY,
    OCTETS,
    SIZE,
)
from ccplay.model.texts import LINE, NAME
from ccplay.model.traffic_commands import StartTraffic, StopTraffic
from ccplay.model.values import LinkSetting, Qdisc, TrafficClass


class Build(Command, frozen=True):
    """The first command of every lab: the network to build."""

    topology: Topology = Topology()
    links: Annotated[dict[str, LinkSetting], FEW] = {}
    """By name of a link, of a direction, or ``bottleneck``; later entries win."""
    congestion_controls: Annotated[dict[str, str], FEW] = {}
    """Default algorithm of new sockets by host; ``cubic`` where nothing is said."""
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
    """For random loss and jitter."""
    reserved: Annotated[list[str], MANY] = []
    """Names of traffic that a script is going to start, in the order of its file.

    The lab gives them to nothing else.
    """
    traces: bool = False
    """Whether flows are going to be traced, for which the lab then gets ready beforehand."""
    label: str = ""
    """What files that the lab writes are called; empty: after the moment."""
    algorithms: Annotated[dict[str, str], FEW] = {}
    """The user's own congestion controls by name: the SHA-256 of each source, empty: not known.

    The files themselves are named on the lab's command line.
    """


class SetCongestionControl(Command, frozen=True):
    """Switch a running flow, or the default of a host's new sockets; exactly one is named."""

    cc: Annotated[str, settings.CC]
    flow: Annotated[str | None, settings.FLOW] = None
    host: Annotated[str | None, Field(NAME, "The host whose new connections change")] = None


class SetQdisc(Command, frozen=True):
    """Replace the queue in front of a link while traffic flows; the rate stays."""

    qdisc: Qdisc
    link: Annotated[str, settings.LINK] = BOTTLENECK
    traffic_class: Annotated[str | None, Field(NAME, "Which class's queue", key="class")] = None


class SetClasses(Command, frozen=True):
    """Put several queues in front of a link, each with a share of its rate, or one again.

    The queues begin empty, and what waited in front of the link is lost.
    """

    classes: Annotated[list[TrafficClass], FEW]
    link: Annotated[str, settings.LINK] = BOTTLENECK


class SetLink(Command, frozen=True):
    """Change rate, delay, jitter, loss or marking of a link, or take it down; the queue stays."""

    link: Annotated[str, settings.LINK] = BOTTLENECK
    rate: Annotated[int | None, settings.LINK_RATE] = None
    delay_us: Annotated[int | None, settings.DELAY] = None
    jitter_us: Annotated[int | None, settings.JITTER] = None
    loss: Annotated[float | None, settings.LOSS] = None
    mark: Annotated[int | None, settings.MARK] = None
    down: Annotated[bool | None, settings.DOWN] = None


class StartCapture(Command, frozen=True):
    """Write the packets of a link, both ways, to a pcapng file where the lab's user wants them.

    They are taken where the packets of ``link`` leave, after the queue, and those of the other
    direction where they come in, before any delay. Both directions of a link are taken at the
    bottleneck's queue, or else at the router.
    """

    link: Annotated[str, settings.LINK] = BOTTLENECK
    capture: Annotated[str | None, settings.CAPTURE] = None
    """Its name; None takes the next free one: ``c1``, ``c2`` …"""
    snaplen: Annotated[
        int,
        Field(
            *(OCTETS, "Bytes kept of each packet", 64, 65_535),
            label="per packet",
            hint="128 B hold all headers",
        ),
    ] = 128
    max_bytes: Annotated[
        int,
        Field(
            SIZE,
            "The file ends before it would be longer",
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
    """Tell of every segment that comes back to the sender of a flow or download, until it ends.

    ``TraceSamples`` and ``CaStateChanged`` of each of its connections follow.
    """

    flow: Annotated[str, settings.FLOW]


class UntraceFlow(Command, frozen=True):
    """End that; sampling goes on."""

    flow: Annotated[str, settings.FLOW]


class Mark(Command, frozen=True):
    """Put a remark on the time axis."""

    text: Annotated[str, Field(LINE, "A remark on the time axis")]
    at: Moment | None = None
    """The moment that it is about; None: the one at which it takes effect."""
    name: Name | None = None
    """None takes the next free one: ``m1``, ``m2`` …"""


class ChangeMark(Command, frozen=True):
    """Let a mark say something else, or move it to another moment; None leaves either as it is."""

    name: Name
    text: str | None = None
    at: Moment | None = None


class RemoveMark(Command, frozen=True):
    """Take a mark off the time axis."""

    name: Name


AnyCommand: TypeAlias = (
    Build
    | StartTraffic
    | StopTraffic
    | SetCongestionControl
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

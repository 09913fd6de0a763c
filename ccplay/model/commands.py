"""Everything that a lab can be asked to do."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec

from ccplay.model.base import FEW, MANY, Command, Moment, Name
from ccplay.model.network import BOTTLENECK, Topology
from ccplay.model.values import LinkSetting, Qdisc, TrafficClass


class Build(Command, frozen=True):
    """The first command of every lab: the network to build."""

    topology: Topology = Topology()
    links: Annotated[dict[str, LinkSetting], FEW] = {}
    """By name of a link, of a direction, or ``bottleneck``; later entries win."""
    congestion_controls: Annotated[dict[str, str], FEW] = {}
    """Default algorithm of new sockets by host; ``cubic`` where nothing is said."""
    sample_hz: float = 50.0
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


class StartFlow(Command, frozen=True):
    """Start a long-lived iperf3 transfer from ``src`` to ``dst``."""

    flow: str | None = None
    """Its name; None takes the next free number."""
    src: str | None = None
    """The sending host; None takes the first sender."""
    dst: str | None = None
    """The receiving host; None takes the one opposite ``src``."""
    cc: str | None = None
    """The congestion control; None takes the sending host's default."""
    streams: int = 1
    """Parallel connections."""
    bytes: int | None = None
    """Stop after so many bytes of payload."""
    duration_s: float | None = None
    """Stop after so long."""
    ecn: bool = False
    """Ask for ECN as its connections open (RFC 3168); some algorithms ask by themselves."""
    monitor: bool = False
    """Follow each of its packets from host to host: one-way delay, what arrives, what is lost."""


class StopFlow(Command, frozen=True):
    """End a flow."""

    flow: str


class StartDownload(Command, frozen=True):
    """Fetch ``bytes`` from a web server on ``src`` with wget on ``dst``."""

    download: str | None = None
    src: str | None = None
    dst: str | None = None
    cc: str | None = None
    bytes: int = 177_669


class StopDownload(Command, frozen=True):
    """Break a download off."""

    download: str


class StartPing(Command, frozen=True):
    """Ping ``dst`` from ``src``."""

    ping: str | None = None
    src: str | None = None
    dst: str | None = None
    interval_s: float = 0.2
    count: int | None = None


class StopPing(Command, frozen=True):
    """End a ping."""

    ping: str


class StartUdp(Command, frozen=True):
    """Send UDP packets from ``src`` to ``dst`` at a constant rate: cross traffic."""

    udp: str | None = None
    """Its name; None takes the next free one: ``u1``, ``u2`` …"""
    src: str | None = None
    dst: str | None = None
    rate_bps: int = 1_000_000
    """Bits of payload a second."""
    packet_bytes: int = 1024
    """Payload of each packet; more than fits the links' MTU goes in fragments."""
    duration_s: float | None = None
    """Stop after so long."""
    monitor: bool = False
    """As of a flow."""


class StopUdp(Command, frozen=True):
    """End cross traffic."""

    udp: str


class StartShortFlows(Command, frozen=True):
    """Start TCP transfers that arrive at random, each over a connection of its own."""

    short_flows: str | None = None
    """What all of them together are called; None takes the next free name: ``x1``, ``x2`` …"""
    src: str | None = None
    dst: str | None = None
    cc: str | None = None
    rate_bps: int = 2_000_000
    """The mean load: bits of payload a second of what arrives."""
    bytes: int = 100_000
    """Mean payload of a transfer."""
    sizes: Annotated[
        Literal["fixed", "pareto"],
        msgspec.Meta(description="Sizes: all fixed, or heavy-tailed (bounded Pareto, shape 1.2)"),
    ] = "pareto"
    seed: Annotated[
        int, msgspec.Meta(ge=0, le=1_000_000, description="The same seed gives the same transfers")
    ] = 1
    """Of the moments and sizes of transfers."""
    duration_s: float | None = None
    """No transfer starts later than so long after the first could."""
    count: int | None = None
    """How many transfers start; None is no limit."""


class StopShortFlows(Command, frozen=True):
    """End short flows; transfers under way are broken off."""

    short_flows: str


class SetCongestionControl(Command, frozen=True):
    """Switch a running flow, or the default of a host's new sockets; exactly one is named."""

    cc: str
    flow: str | None = None
    host: str | None = None


class SetQdisc(Command, frozen=True):
    """Replace the queue in front of a link while traffic flows; the rate stays."""

    qdisc: Qdisc
    link: str = BOTTLENECK
    traffic_class: str | None = None
    """Whose queue, where the link has classes."""


class SetClasses(Command, frozen=True):
    """Put several queues in front of a link, each with a share of its rate, or one again.

    The queues begin empty, and what waited in front of the link is lost.
    """

    classes: Annotated[list[TrafficClass], FEW]
    link: str = BOTTLENECK


class SetLink(Command, frozen=True):
    """Change rate, delay, jitter, loss or marking of a link; the queue stays."""

    link: str = BOTTLENECK
    rate: int | None = None
    delay_us: int | None = None
    jitter_us: int | None = None
    loss: float | None = None
    mark: int | None = None


class StartCapture(Command, frozen=True):
    """Write the packets of a link, both ways, to a pcapng file where the lab's user wants them.

    They are taken where the packets of ``link`` leave, after the queue, and those of the other
    direction where they come in, before any delay. Both directions of a link are taken at the
    bottleneck's queue, or else at the router.
    """

    link: str = BOTTLENECK
    capture: str | None = None
    """Its name; None takes the next free one: ``c1``, ``c2`` …"""
    snaplen: int = 128
    """Bytes kept of each packet: all headers, and little more."""
    max_bytes: int = 50_000_000
    """The file ends before it would be longer."""


class StopCapture(Command, frozen=True):
    """End a capture."""

    capture: str


class TraceFlow(Command, frozen=True):
    """Tell of every segment that comes back to the sender of a flow or download, until it ends.

    ``TraceSamples`` and ``CaStateChanged`` of each of its connections follow.
    """

    flow: str


class UntraceFlow(Command, frozen=True):
    """End that; sampling goes on."""

    flow: str


class Mark(Command, frozen=True):
    """Put a remark on the time axis."""

    text: str
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


StartTraffic: TypeAlias = StartFlow | StartDownload | StartPing | StartUdp | StartShortFlows
StopTraffic: TypeAlias = StopFlow | StopDownload | StopPing | StopUdp | StopShortFlows

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

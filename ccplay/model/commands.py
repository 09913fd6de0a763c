"""Everything that a lab can be asked to do."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, TypeAlias

from ccplay.model import settings
from ccplay.model.base import FEW, MANY, Command, Moment, Name
from ccplay.model.fields import Field
from ccplay.model.network import BOTTLENECK, Topology
from ccplay.model.quantities import (
    FLAG,
    FREQUENCY,
    INTERVAL,
    OCTETS,
    PACKET_SIZE,
    RATE,
    SIZE,
    WHOLE,
)
from ccplay.model.texts import LINE, NAME, choice
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


class StartFlow(Command, frozen=True):
    """Start a long-lived iperf3 transfer from ``src`` to ``dst``."""

    flow: Annotated[str | None, settings.FLOW] = None
    """Its name; None takes the next free number."""
    src: Annotated[str | None, settings.SRC] = None
    """The sending host; None takes the first sender."""
    dst: Annotated[str | None, settings.DST] = None
    """The receiving host; None takes the one opposite ``src``."""
    cc: Annotated[str | None, settings.CC] = None
    """The congestion control; None takes the sending host's default."""
    streams: Annotated[
        int,
        # 128 is iperf3's own limit.
        Field(
            *(WHOLE, "Parallel connections", 1, 128), label="streams", hint="parallel connections"
        ),
    ] = 1
    bytes: Annotated[int | None, settings.PAYLOAD] = None
    duration_s: Annotated[
        float | None, replace(settings.DURATION, label="or after", unset="no limit")
    ] = None
    ecn: Annotated[
        bool,
        Field(
            FLAG, "Ask for ECN, so that queues that can mark its packets instead of dropping them"
        ),
    ] = False
    """Some algorithms ask for it by themselves (RFC 3168)."""
    monitor: Annotated[bool, settings.MONITOR] = False


class StopFlow(Command, frozen=True):
    """End a flow."""

    flow: Annotated[str, settings.FLOW]


class StartDownload(Command, frozen=True):
    """Fetch ``bytes`` from a web server on ``src`` with wget on ``dst``."""

    download: Annotated[str | None, settings.DOWNLOAD] = None
    src: Annotated[str | None, settings.SRC] = None
    dst: Annotated[str | None, settings.DST] = None
    cc: Annotated[str | None, settings.CC] = None
    bytes: Annotated[
        int, replace(settings.PAYLOAD, label="size", hint="50 MB, 178 kB", unset="")
    ] = 177_669


class StopDownload(Command, frozen=True):
    """Break a download off."""

    download: Annotated[str, settings.DOWNLOAD]


class StartPing(Command, frozen=True):
    """Ping ``dst`` from ``src``."""

    ping: Annotated[str | None, settings.PING] = None
    src: Annotated[str | None, settings.SRC] = None
    dst: Annotated[str | None, settings.DST] = None
    interval_s: Annotated[
        float,
        Field(
            INTERVAL,
            "Time between two pings, 200 ms by default",
            # ping(8) itself refuses much less, and faster ones cost more than they show.
            *(0.01, 60),
            key="interval",
            label="every",
            hint="200 ms, 1 s",
        ),
    ] = 0.2
    count: Annotated[
        int | None,
        Field(
            *(WHOLE, "How many pings", 1, 1_000_000),
            label="how many",
            hint="pings",
            unset="until stopped",
        ),
    ] = None


class StopPing(Command, frozen=True):
    """End a ping."""

    ping: Annotated[str, settings.PING]


class StartUdp(Command, frozen=True):
    """Send UDP packets from ``src`` to ``dst`` at a constant rate: cross traffic."""

    udp: Annotated[str | None, settings.UDP] = None
    """Its name; None takes the next free one: ``u1``, ``u2`` …"""
    src: Annotated[str | None, settings.SRC] = None
    dst: Annotated[str | None, settings.DST] = None
    rate_bps: Annotated[
        int,
        Field(
            RATE,
            "How fast it sends payload",
            *(1_000, 1_000_000_000),
            key="rate",
            label="rate",
            hint="of payload: 1 kbit/s to 1 Gbit/s",
        ),
    ] = 1_000_000
    packet_bytes: Annotated[
        int,
        Field(
            PACKET_SIZE,
            "Payload of each packet, 1024 bytes by default",
            # iperf3 numbers its packets in the first 16, and IPv4 carries no more than 65507.
            *(16, 65_507),
            key="packet",
            label="packets of",
            hint="payload: 16 to 65507 bytes",
        ),
    ] = 1024
    """More than fits the links' MTU goes in fragments."""
    duration_s: Annotated[float | None, settings.DURATION] = None
    monitor: Annotated[bool, settings.MONITOR] = False


class StopUdp(Command, frozen=True):
    """End cross traffic."""

    udp: Annotated[str, settings.UDP]


class StartShortFlows(Command, frozen=True):
    """Start TCP transfers that arrive at random, each over a connection of its own."""

    short_flows: Annotated[str | None, settings.SHORT_FLOWS] = None
    """What all of them together are called; None takes the next free name: ``x1``, ``x2`` …"""
    src: Annotated[str | None, settings.SRC] = None
    dst: Annotated[str | None, settings.DST] = None
    cc: Annotated[str | None, settings.CC] = None
    rate_bps: Annotated[
        int,
        Field(
            RATE,
            "The mean load: payload of what arrives",
            *(1_000, 1_000_000_000),
            key="rate",
        ),
    ] = 2_000_000
    bytes: Annotated[int, Field(SIZE, "Mean payload of a transfer", 1_000, 1_000_000_000)] = 100_000
    sizes: Annotated[
        str,
        Field(
            choice("distribution of sizes", ("fixed", "pareto")),
            "Sizes: all fixed, or heavy-tailed (bounded Pareto, shape 1.2)",
        ),
    ] = "pareto"
    seed: Annotated[int, Field(WHOLE, "The same seed gives the same transfers", 0, 1_000_000)] = 1
    """Of the moments and sizes of transfers."""
    duration_s: Annotated[
        float | None,
        replace(settings.DURATION, meaning="No transfer starts later than so long after the first"),
    ] = None
    count: Annotated[
        int | None, Field(WHOLE, "How many transfers start", 1, 1_000_000, unset="no limit")
    ] = None


class StopShortFlows(Command, frozen=True):
    """End short flows; transfers under way are broken off."""

    short_flows: Annotated[str, settings.SHORT_FLOWS]


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
    """Change rate, delay, jitter, loss or marking of a link; the queue stays."""

    link: Annotated[str, settings.LINK] = BOTTLENECK
    rate: Annotated[int | None, settings.LINK_RATE] = None
    delay_us: Annotated[int | None, settings.DELAY] = None
    jitter_us: Annotated[int | None, settings.JITTER] = None
    loss: Annotated[float | None, settings.LOSS] = None
    mark: Annotated[int | None, settings.MARK] = None


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

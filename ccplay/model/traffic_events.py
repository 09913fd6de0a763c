"""Events of traffic: what starts, samples and ends each kind of it."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

from ccplay.model.base import MANY, ConnectionName, Count, Duration, Event, Name
from ccplay.model.values import Monitored


class FlowStarted(Event, frozen=True):
    """A flow has sent its first data. Stream 2 samples as ``flow/2`` and so on."""

    flow: Name
    src: str
    dst: str
    cc: str
    port: int
    """The receiver's TCP port."""
    streams: Annotated[int, msgspec.Meta(ge=1, le=128)] = 1
    """Number of parallel connections, at most as many as iperf3 can have."""
    ecn: bool = False
    """Whether both ends have agreed on ECN: a queue that can marks packets rather than drop
    them."""
    mptcp: bool = False
    """Whether it is one MPTCP connection: ``flow`` samples as a whole, and its subflows by their
    names."""


class SubflowStarted(Event, frozen=True):
    """A subflow of an MPTCP connection is open; it samples under its own name."""

    flow: Name
    subflow: ConnectionName
    """The flow, and a number in the order in which they were planned: ``1/2``."""
    src: str
    """IPv4 address."""
    dst: str
    sport: int
    """The source port; the receiver's is the flow's."""


class SubflowEnded(Event, frozen=True):
    """A subflow is gone while its flow continues: the kernel gave it up, or was asked to."""

    flow: Name
    subflow: ConnectionName


class FlowEnded(Event, frozen=True):
    """A flow is over. ``error`` says why when nobody asked for it."""

    flow: str
    bytes: int
    """Payload acknowledged, all streams together."""
    duration_s: float
    retransmits: int
    """Segments."""
    sent: Count = 0
    """Payload sent, what was sent again included; 0 in recordings made before it was told."""
    error: str | None = None
    monitored: Monitored | None = None
    """What monitors saw of its packets; None where it was not asked for or is not available."""


class DownloadStarted(Event, frozen=True):
    """wget has been started under ``cc``; its TCP samples travel under ``download``."""

    download: Name
    src: str
    dst: str
    bytes: int
    cc: str = ""


class DownloadProgress(Event, frozen=True):
    """How many bytes of a download have arrived."""

    download: str
    bytes: int


class DownloadEnded(Event, frozen=True):
    """A download is over after ``duration_s`` of wget's own clock."""

    download: str
    bytes: int
    duration_s: float
    error: str | None = None


class PingStarted(Event, frozen=True):
    """ping(8) runs."""

    ping: Name
    src: str
    dst: str
    interval_s: float


class PingSample(Event, frozen=True):
    """One answer to a ping, or None for one that did not come back."""

    ping: str
    seq: int
    rtt_us: Duration | None


class PingEnded(Event, frozen=True):
    """A ping is over."""

    ping: str
    sent: int
    lost: int
    error: str | None = None


class UdpStarted(Event, frozen=True):
    """The first packets of cross traffic are being sent."""

    udp: str
    src: str
    dst: str
    rate_bps: int
    packet_bytes: int
    port: int
    """The receiver's UDP port."""


class UdpSample(Event, frozen=True):
    """What has become of cross traffic by now, several times a second.

    The monitor has counted it, or else the receiver, which knows no delays.
    """

    udp: str
    monitored: Monitored


class UdpEnded(Event, frozen=True):
    """Cross traffic is over."""

    udp: str
    sent: int
    """Packets, as the sender counted them."""
    received: int
    """Packets, as the receiver counted them; it may leave the last one or two unread."""
    jitter_us: Duration | None
    """The receiver's, smoothed as in RFC 3550; None where it could not tell."""
    duration_s: float
    """Seconds for which the sender sent."""
    under_way: Count = 0
    """Packets sent after the newest that was received, where the lab ended before they arrived."""
    error: str | None = None
    monitored: Monitored | None = None
    """What monitors saw of its packets; None as for a flow."""


class ShortFlowsStarted(Event, frozen=True):
    """Both programs of short flows run, and transfers arrive from now on."""

    short_flows: Name
    src: str
    dst: str
    cc: str
    rate_bps: Count
    """The mean load, as it was asked for."""
    port: int
    """The receiver's TCP port."""


class ShortFlowsProgress(Event, frozen=True):
    """What has become of transfers since the last such event: one array a field."""

    short_flows: str
    started: Count
    """Number of transfers that have started by now."""
    failed: Count
    """Number of transfers that have broken off by now."""
    bytes: Annotated[list[Count], MANY]
    """Payload of each that finished since."""
    fct_us: Annotated[list[Duration], MANY]
    """Microseconds from each transfer's SYN until the receiver had read its last byte."""
    path: Annotated[list[Count], MANY] = []
    """Path of each transfer that finished since: the index of a ``FlowPath`` event of these short
    flows. Empty where there is one path."""


class ShortFlowsEnded(Event, frozen=True):
    """Short flows are over. Transfers that neither finished nor failed were broken off."""

    short_flows: str
    error: str | None = None


TrafficEvent: TypeAlias = (
    FlowStarted
    | SubflowStarted
    | SubflowEnded
    | FlowEnded
    | DownloadStarted
    | DownloadProgress
    | DownloadEnded
    | PingStarted
    | PingSample
    | PingEnded
    | UdpStarted
    | UdpSample
    | UdpEnded
    | ShortFlowsStarted
    | ShortFlowsProgress
    | ShortFlowsEnded
)

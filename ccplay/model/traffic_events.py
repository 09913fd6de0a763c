"""Events of traffic: the start, samples and end of each kind."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

from ccplay.model.base import MANY, ConnectionName, Count, Duration, Event, Name
from ccplay.model.values import Monitored


class FlowStarted(Event, frozen=True):
    """A flow has sent its first data. Its stream 2 is sampled as ``flow/2``, and so on."""

    flow: Name
    src: str
    dst: str
    cc: str
    port: int
    """TCP port of the receiver."""
    streams: Annotated[int, msgspec.Meta(ge=1, le=128)] = 1
    """Number of parallel connections, up to iperf3's limit."""
    ecn: bool = False
    """Whether both ends have agreed on ECN, so that queues may mark packets rather than drop
    them."""
    mptcp: bool = False
    """Whether the flow is one MPTCP connection, sampled as a whole under the name of the flow; each
    subflow is sampled under its own name."""


class SubflowStarted(Event, frozen=True):
    """A subflow of an MPTCP connection is open; it is sampled under its own name."""

    flow: Name
    subflow: ConnectionName
    """Name of the subflow, ``1/2``: the flow, and a number in the order in which ccplay requested
    or found its subflows."""
    src: str
    """IPv4 address of the sender."""
    dst: str
    sport: int
    """TCP port of the sender; the receiver's is the flow's."""


class SubflowEnded(Event, frozen=True):
    """A subflow has ended while its flow continues: the kernel closed it, perhaps on request."""

    flow: Name
    subflow: ConnectionName


class FlowEnded(Event, frozen=True):
    """A flow has ended. ``error`` is the reason if nobody requested the end."""

    flow: str
    bytes: int
    """Acknowledged payload in bytes, all streams together."""
    duration_s: float
    retransmits: int
    """Number of retransmitted segments."""
    sent: Count = 0
    """Payload sent in bytes, retransmissions included; 0 in older recordings, which lack it."""
    error: str | None = None
    monitored: Monitored | None = None
    """Monitors' counts of the flow's packets; None if not requested or unavailable."""


class DownloadStarted(Event, frozen=True):
    """wget has started; its connection uses ``cc`` and is sampled under the download's name."""

    download: Name
    src: str
    dst: str
    bytes: int
    cc: str = ""


class DownloadProgress(Event, frozen=True):
    """The bytes of a download that have arrived so far."""

    download: str
    bytes: int


class DownloadEnded(Event, frozen=True):
    """A download has ended after ``duration_s`` seconds by wget's own clock."""

    download: str
    bytes: int
    duration_s: float
    error: str | None = None


class PingStarted(Event, frozen=True):
    """ping(8) has started."""

    ping: Name
    src: str
    dst: str
    interval_s: float


class PingSample(Event, frozen=True):
    """One reply to a ping; ``rtt_us`` is None for a request without a reply."""

    ping: str
    seq: int
    rtt_us: Duration | None


class PingEnded(Event, frozen=True):
    """A ping has ended."""

    ping: str
    sent: int
    lost: int
    error: str | None = None


class UdpStarted(Event, frozen=True):
    """Cross traffic has begun to send packets."""

    udp: str
    src: str
    dst: str
    rate_bps: int
    packet_bytes: int
    port: int
    """UDP port of the receiver."""


class UdpSample(Event, frozen=True):
    """Counts of cross traffic so far, several times a second.

    They come from the monitor, or without one from the receiver, which can't measure delays.
    """

    udp: str
    monitored: Monitored


class UdpEnded(Event, frozen=True):
    """Cross traffic has ended."""

    udp: str
    sent: int
    """Packets sent, counted by the sender."""
    received: int
    """Packets received, counted by the receiver, which may leave the last one or two unread."""
    jitter_us: Duration | None
    """Jitter in µs measured by the receiver, smoothed as in RFC 3550; None if it is unknown."""
    duration_s: float
    """Seconds for which packets were sent."""
    under_way: Count = 0
    """Packets sent after the newest one received, if the lab ended before they arrived."""
    error: str | None = None
    monitored: Monitored | None = None
    """Monitors' counts of the packets; None if not requested or unavailable."""


class ShortFlowsStarted(Event, frozen=True):
    """Both programs of short flows are running; transfers arrive from now on."""

    short_flows: Name
    src: str
    dst: str
    cc: str
    rate_bps: Count
    """Mean load as requested, in bits per second."""
    port: int
    """TCP port of the receiver."""


class ShortFlowsProgress(Event, frozen=True):
    """The outcome of transfers since the last such event: one array per field."""

    short_flows: str
    started: Count
    """Number of transfers started so far."""
    failed: Count
    """Number of transfers aborted so far."""
    bytes: Annotated[list[Count], MANY]
    """Payload in bytes of each transfer that has finished since the last event."""
    fct_us: Annotated[list[Duration], MANY]
    """Microseconds from each finished transfer's SYN until the receiver had read its last byte."""
    path: Annotated[list[Count], MANY] = []
    """Path of each transfer that finished since the last event: the index of a ``FlowPath`` event
    of these short flows. Empty if there is only one path."""


class ShortFlowsEnded(Event, frozen=True):
    """Short flows have ended. Transfers that neither finished nor failed were aborted."""

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

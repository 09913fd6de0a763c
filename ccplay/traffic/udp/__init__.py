"""Cross traffic by UDP at a constant rate, which no congestion control slows down."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec.structs import replace

from ccplay.model import settings
from ccplay.model.base import (
    Count,
    Duration,
    StartRoutedTraffic,
    StopTraffic,
    TrafficEnded,
    TrafficSample,
    TrafficStarted,
)
from ccplay.model.columns import (
    BYTES,
    MILLISECONDS,
    PACKETS,
    SHARE,
    Column,
    ResultTable,
    milliseconds,
    rate_bps,
)
from ccplay.model.columns import RATE as RATE_COLUMN
from ccplay.model.events import Applied
from ccplay.model.quantities import PACKET_SIZE, RATE, Field
from ccplay.model.texts import NAME
from ccplay.model.values import Monitored
from ccplay.model.variables import DELAY, LOSS, RECEIVED
from ccplay.model.wording import describe_loss
from ccplay.traffic import monitored
from ccplay.traffic.base import Form, Samples, TrafficKind, TrafficState
from ccplay.traffic.monitored import PACKETS_TABLE, CountedTraffic, MonitoredResult, delays
from ccplay.traffic.plot import Changes, Setting
from ccplay.traffic.routes import ROUTES, routes
from ccplay.units import format_part, format_rate, format_ratio, format_time_us

_NAME = Field(NAME, "The name of the cross traffic")


class StartUdp(StartRoutedTraffic, frozen=True):
    """Send UDP packets from ``src`` to ``dst`` at a constant rate: cross traffic."""

    WORD = "UDP"

    udp: Annotated[str | None, _NAME] = None
    """Name of the UDP traffic; None takes the next free one: ``u1``, ``u2`` …"""
    rate_bps: Annotated[
        int,
        Field(
            RATE,
            "Rate of payload",
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
            # iperf3 numbers its packets in the first 16 bytes; UDP over IPv4 carries 65507 at most.
            *(16, 65_507),
            key="packet",
            label="packets of",
            hint="payload: 16 to 65507 bytes",
        ),
    ] = 1024
    """Payload of each packet in bytes; one that exceeds the links' MTU is fragmented."""
    duration_s: Annotated[float | None, settings.DURATION] = None
    monitor: Annotated[bool, settings.MONITOR] = False
    bidir: Annotated[bool, settings.BIDIR] = False
    """Whether data flow both ways, as with iperf3's ``--bidir`` and iperf's ``-d``; the lab answers
    with two commands."""

    def detail(self) -> str:
        """Return what the event log shows of the start, apart from its path."""
        return format_rate(self.rate_bps)


class StopUdp(StopTraffic, frozen=True):
    """End cross traffic."""

    WORD = "UDP"

    udp: Annotated[str, _NAME]


class UdpStarted(TrafficStarted, frozen=True):
    """Cross traffic has begun to send packets."""

    udp: str
    rate_bps: int
    packet_bytes: int
    port: int
    """UDP port of the receiver."""


class UdpSample(TrafficSample, frozen=True):
    """Counts of cross traffic so far, several times a second.

    They come from the monitor, or without one from the receiver, which can't measure delays.
    """

    udp: str
    monitored: Monitored


class UdpEnded(TrafficEnded, frozen=True):
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
    monitored: Monitored | None = None
    """Monitors' counts of the packets; None if not requested or unavailable."""


class Udp(CountedTraffic, kw_only=True):
    """Cross traffic with the counts of its packets."""

    WORD = "UDP"

    kind: str = "udp"
    packet_bytes: int
    under_way: int = 0
    """Number of packets that were in flight at the end, whose fate is unknown."""
    jitter_us: float | None = None
    stopped: float | None = None
    """Moment at which the traffic was asked to end; its last packets may still be in flight."""

    @property
    def loss(self) -> float | None:
        """Share of packets that were lost; None if unknown for all."""
        known = self.sent - self.under_way
        return (known - self.received) / known if known > 0 else None

    @property
    def last_packet(self) -> float | None:
        """Moment of the last packet; None if more may follow.

        The end is reported later than the last packet is sent.
        """
        ends = [each for each in (self.stopped, self.ended) if each is not None]
        ends += [self.started + self.duration_s] if self.duration_s is not None else []
        return min(ends, default=None)

    def outcome(self) -> str:
        """Return what was sent, and the share that was lost."""
        return f"ended: {self.sent:,} sent, {describe_loss(self.loss, self.monitored)}"

    def lines(self, t: float) -> tuple[str, ...]:
        """Return the screen's text at ``t``: the rate sent, and what arrived."""
        if self.ended is not None and self.ended <= t:
            if self.error:
                return (f"UDP ended: {self.error}",)
            lost = describe_loss(self.loss, self.monitored)
            return (f"UDP: {self.sent:,} sent, {lost}", f"UDP {lost}", lost)
        if self.stopped is not None and self.stopped <= t:
            rest = "packets under way"
            return (f"UDP stopping, its last {rest}", f"UDP stopping, {rest}")
        rate, tick = format_rate(self.rate_bps), self.timeline.before_or_at(t)
        if tick < self.timeline.first:
            path = f"{self.src} → {self.dst}"
            return (
                f"UDP {rate} in {self.packet_bytes} byte packets, {path}",
                f"UDP {rate}, {path}",
            )
        received, loss, delay = (
            self.series[each.name].at(tick) for each in (RECEIVED, LOSS, DELAY)
        )
        if not received:
            return (f"UDP {rate}, nothing arrives",)
        part = f"UDP {format_part(received, self.rate_bps)}"
        short = format_rate(received).replace(" ", "").removesuffix("bit/s")
        lost = f"{format_ratio(loss or 0.0)} lost"
        if delay is None:
            return (f"{part}, {lost}", f"UDP {short}, {lost}", f"{short}, {lost}")
        lost += f", {format_time_us(delay)}"
        several = (f"{part}, {lost} one way", f"{part}, {lost}", f"UDP {short}, {lost}")
        return (*several, f"{short}, {lost}")


class UdpResult(MonitoredResult, frozen=True, kw_only=True):
    """The result of cross traffic: what iperf3 counted at both ends."""

    packet_bytes: int
    """Payload of each packet in bytes."""
    duration_s: float | None
    """Seconds for which packets were sent; null, like all values known at the end, before it."""
    sent: int | None
    """Number of packets sent."""
    received: int | None
    """Number of packets received; the receiver may leave the last one or two unread."""
    jitter_ms: float | None
    """Jitter in ms at the receiver, smoothed as in RFC 3550, at the end."""

    @property
    def packets(self) -> int | None:
        """Number of packets sent, to compare with the monitored ones."""
        return self.sent

    @property
    def packet_loss(self) -> float | None:
        """Share of packets that were lost."""
        return self.loss


def result(_: TrafficState, udp: Udp) -> UdpResult:
    """Return the counts at both ends."""
    counted = udp.ended is not None and udp.sent > 0
    seconds, size = udp.duration_s, udp.packet_bytes
    return UdpResult(
        **udp.identity(),
        packet_bytes=size,
        started_s=round(udp.started, 3),
        duration_s=None if seconds is None else round(seconds, 3),
        sent=udp.sent if counted else None,
        received=udp.received if counted else None,
        tx_bps=rate_bps(udp.sent * size, seconds or 0) if counted else None,
        rx_bps=rate_bps(udp.received * size, seconds or 0) if counted else None,
        loss=None if udp.loss is None else round(udp.loss, 6),
        jitter_ms=milliseconds(udp.jitter_us),
        **delays(udp.monitored),
        routes=routes(udp.paths),
    )


def _applied(state: TrafficState, event: Applied) -> None:
    if isinstance(event.command, StopUdp) and (udp := state.find(Udp, event.command.udp)):
        udp.stopped = event.t


def _sent_rates(scope: Any) -> Changes:
    """Return at each change the rate set for all cross traffic together, in bits per second."""
    steps: list[tuple[float, int]] = []
    for udp in scope.state.of(Udp).values():
        steps.append((udp.started, udp.rate_bps))
        if (end := udp.last_packet) is not None:
            steps.append((end, -udp.rate_bps))
    moments = sorted({t for t, _ in steps})
    sums = [sum(rate for t, rate in steps if t <= moment) for moment in moments]
    return tuple((t, float(rate) or None) for t, rate in zip(moments, sums, strict=True))


_VARIABLES = monitored.variables("udp")

_RATE, _LOSS, _DELAYS = monitored.plots(
    *("udp", "UDP", "cross traffic", "cross traffic's", _VARIABLES),
    about="cross traffic",
    help="rate of cross traffic that arrives, over the last second; a line shows what is sent",
    settings=(Setting("queue_limit", "sent", _sent_rates, short="sent"),),
)

KIND = TrafficKind(
    name="udp",
    form=Form(
        key="u",
        title="UDP cross traffic",
        about="packets at a constant rate, whatever happens",
        asks=("rate_bps", "packet_bytes", "src", "dst", "duration_s", "monitor", "bidir"),
        reads="received rate, loss and mean one-way delay, over the last second",
    ),
    plural="udp",
    prefix="u",
    start=StartUdp,
    stop=StopUdp,
    started=UdpStarted,
    ended=UdpEnded,
    samples=(UdpSample,),
    state=Udp,
    more={Applied: _applied},
    result=result,
    tables=(
        ResultTable(
            "Cross traffic",
            (
                Column("udp", ("id",)),
                Column("path", ("path",)),
                Column("packets of", ("packet_bytes",), BYTES, brief=()),
                Column("sent", ("sent",), PACKETS),
                Column("received", ("received",), PACKETS, brief=()),
                Column("lost", ("loss",), SHARE),
                Column("rate", ("tx_bps", "rx_bps"), RATE_COLUMN, ("sent", "received")),
                Column("jitter", ("jitter_ms",), MILLISECONDS),
            ),
        ),
        PACKETS_TABLE,
        ROUTES,
    ),
    metrics={"sent": "packets sent", "received": "packets received", **monitored.METRICS},
    needs=monitored.needing_monitor(),
    variables=_VARIABLES,
    plots=(_RATE, _LOSS, replace(_DELAYS, missing=("cross traffic that is monitored", "udp"))),
    limits=("duration_s",),
    limit_words="a duration",
    exported=Samples(
        UdpEnded,
        {
            "udp": ("udp", "text"),
            "sent": ("sent_packets", "whole"),
            "received": ("received_packets", "whole"),
            "under_way": ("under_way_packets", "whole"),
            "jitter_us": ("jitter_us", "real"),
            "duration_s": ("duration_s", "real"),
        },
        "packets sent and received by UDP cross traffic, at its end",
    ),
    offer="cross traffic by UDP",
    offer_detail=lambda c: f"{format_rate(c.rate_bps)} in {c.packet_bytes} byte packets",
)

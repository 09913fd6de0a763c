"""Cross traffic by UDP: its packets, its monitor's values, and its results."""

from __future__ import annotations

from collections import deque
from typing import ClassVar

import msgspec

from ccplay.model.columns import (
    BYTES,
    MILLISECONDS,
    MONITORED,
    PACKETS,
    RATE,
    SHARE,
    Column,
    Table,
    delays,
    milliseconds,
    rate_bps,
)
from ccplay.model.events import Applied, FlowPath
from ccplay.model.series import Series, Timeline
from ccplay.model.traffic_commands import StopUdp
from ccplay.model.traffic_events import UdpEnded, UdpSample, UdpStarted
from ccplay.model.values import Monitored
from ccplay.model.variables import UDP_VARIABLES
from ccplay.model.wording import describe_loss
from ccplay.state.routes import ROUTES, Route, routes
from ccplay.state.traffic import Handlers, TrafficState
from ccplay.units import format_part, format_rate, format_ratio, format_time_us

# --- rate, loss and delay of packets between two counts of a monitor ------------------------------

RECEIVED, LOSS, DELAY = (each.name for each in UDP_VARIABLES)
"""Names of the variables for the rate, the loss and the delay."""


def rates_between(
    before: Monitored | None, now: Monitored, seconds: float
) -> dict[str, float | None]:
    """Return the variables over the ``seconds`` since an earlier count, or since the first packet.

    None is unknown: nothing arrived, or no time has passed.
    """
    sent, received, size = now.sent, now.received, now.received_bytes
    delays_us = _delays_us(now)
    if before is not None:
        sent, received = sent - before.sent, received - before.received
        size, delays_us = size - before.received_bytes, delays_us - _delays_us(before)
    return {
        RECEIVED: size * 8 / seconds if seconds > 0 else None,
        # A reordered packet was counted as lost before.
        LOSS: max(1 - received / sent, 0.0) if sent > 0 else None,
        DELAY: delays_us / received if received > 0 and now.delay_mean_us is not None else None,
    }


def _delays_us(seen: Monitored) -> float:
    """Return the sum of all packets' delays in µs."""
    return (seen.delay_mean_us or 0.0) * seen.received


# --- cross traffic by UDP: its packets, its monitor's values, and its results ---------------------

_OVER_S = 0.95
"""Shortest time in seconds over which rates, loss and delay are averaged; counts arrive when the
machine has time for them."""


class Udp(msgspec.Struct):
    """Cross traffic with the counts of its packets."""

    kind: ClassVar[str] = "udp"
    name: str
    src: str
    dst: str
    rate_bps: int
    packet_bytes: int
    started: float
    sent: int = 0
    received: int = 0
    under_way: int = 0
    """Number of packets that were in flight at the end, whose fate is unknown."""
    jitter_us: float | None = None
    monitored: Monitored | None = None
    """Counts of packets so far; None if unknown."""
    counts: deque[tuple[float, Monitored]] = msgspec.field(default_factory=deque)
    """Latest counts with their moments, as far back as variables need them."""
    seen: dict[str, Series] = msgspec.field(default_factory=dict)
    """Variables over time, named as in ``monitor_rates.rates_between``; empty without counts."""
    received_bytes: Series = msgspec.field(default_factory=lambda: Series(Timeline()))
    """Payload in bytes that has arrived so far."""
    paths: list[FlowPath] = msgspec.field(default_factory=list)
    """Paths that the traffic took, oldest first; empty if there was only one."""
    stopped: float | None = None
    """Moment at which the traffic was asked to end; its last packets may still be in flight."""
    duration_s: float | None = None
    ended: float | None = None
    error: str | None = None

    @property
    def timeline(self) -> Timeline:
        """Moments at which packets were counted."""
        return self.received_bytes.timeline

    @property
    def loss(self) -> float | None:
        """Share of packets that were lost; None if unknown for all."""
        known = self.sent - self.under_way
        return (known - self.received) / known if known > 0 else None

    def learn(self, t: float, seen: Monitored) -> None:
        """Apply the counts of packets at ``t``."""
        counts = self.counts
        while len(counts) > 1 and counts[1][0] <= t - _OVER_S:
            counts.popleft()
        # Older than a second, or the first count: before that it had sent nothing.
        far = bool(counts) and counts[0][0] <= t - _OVER_S
        since, before = counts[0] if far else (self.started, None)
        news = rates_between(before, seen, t - since)
        tick = self.timeline.append(t)
        for name, value in news.items():
            self.seen.setdefault(name, Series(self.timeline)).put(tick, value)
        self.received_bytes.put(tick, seen.received_bytes)
        counts.append((t, seen))
        self.monitored = seen

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
        received, loss, delay = (self.seen[name].at(tick) for name in (RECEIVED, LOSS, DELAY))
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


class UdpResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of cross traffic: what iperf3 counted at both ends."""

    id: str
    src: str
    dst: str
    packet_bytes: int
    """Payload of each packet in bytes."""
    started_s: float
    """Seconds since the start of the stream."""
    duration_s: float | None
    """Seconds for which packets were sent; null, like all values known at the end, before it."""
    sent: int | None
    """Number of packets sent."""
    received: int | None
    """Number of packets received; the receiver may leave the last one or two unread."""
    tx_bps: float | None
    """Payload sent in bits per second over ``duration_s``."""
    rx_bps: float | None
    """Payload received in bits per second over ``duration_s``."""
    loss: float | None
    """Share of sent packets that were not received, except those in flight at the end."""
    jitter_ms: float | None
    """Jitter in ms at the receiver, smoothed as in RFC 3550, at the end."""
    delay_mean_ms: float | None = None
    """Mean one-way delay in ms of every packet that arrived; null, like the next fields, if not
    monitored."""
    delay_min_ms: float | None = None
    delay_max_ms: float | None = None
    routes: list[Route] = []
    """Paths that the traffic took, if there were several."""
    error: str | None

    @property
    def packets(self) -> int | None:
        """Number of packets sent, to compare with the monitored ones."""
        return self.sent

    @property
    def packet_loss(self) -> float | None:
        """Share of packets that were lost."""
        return self.loss

    @property
    def path(self) -> str:
        """Source and destination: ``h1 → h2``."""
        return f"{self.src} → {self.dst}"


TABLES = (
    Table(
        "Cross traffic",
        (
            Column("udp", ("id",)),
            Column("path", ("path",)),
            Column("packets of", ("packet_bytes",), BYTES, brief=()),
            Column("sent", ("sent",), PACKETS),
            Column("received", ("received",), PACKETS, brief=()),
            Column("lost", ("loss",), SHARE),
            Column("rate", ("tx_bps", "rx_bps"), RATE, ("sent", "received")),
            Column("jitter", ("jitter_ms",), MILLISECONDS),
        ),
    ),
    MONITORED,
    ROUTES,
)
METRICS = {
    "sent": "packets sent",
    "received": "packets received",
    "delay_mean_ms": "mean one-way delay",
    "delay_min_ms": "least one-way delay",
    "delay_max_ms": "greatest one-way delay",
}
"""Names of UDP's metrics."""


def result(_: TrafficState, udp: Udp) -> UdpResult:
    """Return the counts at both ends."""
    counted = udp.ended is not None and udp.sent > 0
    seconds, size = udp.duration_s, udp.packet_bytes
    return UdpResult(
        id=udp.name,
        src=udp.src,
        dst=udp.dst,
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
        error=udp.error,
    )


def _udp_started(state: TrafficState, event: UdpStarted) -> None:
    size = event.packet_bytes
    state.add(Udp(event.udp, event.src, event.dst, event.rate_bps, size, event.t))


def _udp_sample(state: TrafficState, event: UdpSample) -> None:
    if (udp := state.find(Udp, event.udp)) is not None:
        udp.learn(event.t, event.monitored)


def _udp_ended(state: TrafficState, event: UdpEnded) -> None:
    if (udp := state.find(Udp, event.udp)) is None:
        return
    udp.sent, udp.received, udp.under_way = event.sent, event.received, event.under_way
    udp.jitter_us, udp.monitored = event.jitter_us, event.monitored
    udp.duration_s, udp.ended, udp.error = event.duration_s, event.t, event.error
    if event.error:
        state.write(event.t, "error", f"UDP {event.udp} died: {event.error}")
    else:
        lost = describe_loss(udp.loss, udp.monitored)
        state.write(event.t, "traffic", f"UDP {event.udp} ended: {event.sent:,} sent, {lost}")


def _applied(state: TrafficState, event: Applied) -> None:
    if isinstance(event.command, StopUdp) and (udp := state.find(Udp, event.command.udp)):
        udp.stopped = event.t


HANDLERS: Handlers = {
    Applied: _applied,
    UdpStarted: _udp_started,
    UdpSample: _udp_sample,
    UdpEnded: _udp_ended,
}

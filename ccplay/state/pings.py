"""Pings: their replies over time, and their results."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from ccplay.model.columns import COUNT, MILLISECONDS, Column, Table, percentiles_ms
from ccplay.model.series import Series, Timeline
from ccplay.model.traffic_events import PingEnded, PingSample, PingStarted
from ccplay.state.traffic import Handlers, TrafficState


class Ping(msgspec.Struct):
    """A ping and its replies; a lost one is a missing value of ``rtt_us``."""

    kind: ClassVar[str] = "ping"
    name: str
    src: str
    dst: str
    started: float
    rtt_us: Series
    sent: int = 0
    lost: int = 0
    ended: float | None = None
    error: str | None = None

    def lines(self, t: float) -> tuple[str, ...]:
        """Return the screen's text at ``t``: the last reply and the range of all."""
        if self.ended is not None and self.ended <= t:
            return (f"ping ended: {self.error or f'{self.sent} sent, {self.lost} lost'}",)
        tick = self.rtt_us.timeline.before_or_at(t)
        if (found := self.rtt_us.extremes(0, tick + 1)) is None:
            return ("ping no answer yet",)
        least, most = (value / 1e3 for value in found)
        last = self.rtt_us.at(tick)
        now = "lost" if last is None else f"{last / 1e3:.1f} ms"
        return (
            f"ping {now:<10}min {least:.1f}  max {most:.1f}",
            f"ping {now:<10}{least:.0f} to {most:.0f}",
        )


class PingResult(msgspec.Struct, frozen=True, kw_only=True):
    """Results of a ping. Times are over the received replies."""

    id: str
    src: str
    dst: str
    sent: int
    lost: int
    min_ms: float | None
    p50_ms: float | None
    p95_ms: float | None
    max_ms: float | None
    error: str | None

    @property
    def path(self) -> str:
        """Source and destination: ``h1 → h2``."""
        return f"{self.src} → {self.dst}"


TABLES = (
    Table(
        "Pings",
        (
            Column("ping", ("id",)),
            Column("path", ("path",)),
            Column("sent", ("sent",), COUNT),
            Column("lost", ("lost",), COUNT),
            Column(
                "RTT",
                ("min_ms", "p50_ms", "p95_ms", "max_ms"),
                MILLISECONDS,
                ("min", "p50", "p95", "max"),
            ),
        ),
    ),
)
METRICS = {
    "sent": "pings sent",
    "lost": "pings lost",
    "min_ms": "minimum RTT",
    "p50_ms": "median RTT",
    "p95_ms": "95th percentile of RTT",
    "max_ms": "greatest RTT",
}
"""Names of a ping's metrics."""


def result(_: TrafficState, ping: Ping) -> PingResult:
    """Return the result of a ping so far."""
    least, p50, p95, most = percentiles_ms(ping.rtt_us.all(), 0, 50, 95, 100)
    return PingResult(
        id=ping.name,
        src=ping.src,
        dst=ping.dst,
        sent=ping.sent,
        lost=ping.lost,
        min_ms=least,
        p50_ms=p50,
        p95_ms=p95,
        max_ms=most,
        error=ping.error,
    )


def _ping_started(state: TrafficState, event: PingStarted) -> None:
    series = Series(Timeline())
    state.add(Ping(event.ping, event.src, event.dst, event.t, series))


def _ping_sample(state: TrafficState, event: PingSample) -> None:
    if (ping := state.find(Ping, event.ping)) is not None:
        ping.sent += 1
        ping.lost += event.rtt_us is None
        ping.rtt_us.put(ping.rtt_us.timeline.append(event.t), event.rtt_us)


def _ping_ended(state: TrafficState, event: PingEnded) -> None:
    if (ping := state.find(Ping, event.ping)) is not None:
        ping.sent, ping.lost = event.sent, event.lost
        ping.ended, ping.error = event.t, event.error
    if event.error:
        state.write(event.t, "error", f"ping {event.ping} died: {event.error}")
    else:
        text = f"ping {event.ping} ended: {event.sent} sent, {event.lost} lost"
        state.write(event.t, "traffic", text)


HANDLERS: Handlers = {
    PingStarted: _ping_started,
    PingSample: _ping_sample,
    PingEnded: _ping_ended,
}

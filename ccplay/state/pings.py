"""Pings: their answers over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ccplay.model.traffic_events import PingEnded, PingSample, PingStarted
from ccplay.state.series import Series, Timeline
from ccplay.state.traffic import Handlers, TrafficState


@dataclass(slots=True)
class Ping:
    """A ping and its answers; a lost one is a missing value of ``rtt_us``."""

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

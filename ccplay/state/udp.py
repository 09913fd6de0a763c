"""Cross traffic by UDP: what was sent, and what its monitor sees."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from ccplay.model.events import Applied
from ccplay.model.traffic_commands import StopUdp
from ccplay.model.traffic_events import UdpEnded, UdpSample, UdpStarted
from ccplay.model.values import Monitored
from ccplay.model.wording import describe_loss
from ccplay.state.monitor_rates import lately
from ccplay.state.series import Series, Timeline
from ccplay.state.traffic import Handlers, TrafficState


@dataclass(slots=True)
class Udp:
    """Cross traffic, and at its end what became of its packets."""

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
    """Packets of which nobody knows whether they would have arrived."""
    jitter_us: float | None = None
    monitored: Monitored | None = None
    """What has become of its packets so far; None where nobody knows."""
    timeline: Timeline = field(default_factory=Timeline)
    seen: dict[str, Series] = field(default_factory=dict)
    """What its monitor has seen over time, as ``monitored.lately`` has it; empty as above."""
    stopped: float | None = None
    """When it was told to end: the last of its packets may be under way."""
    duration_s: float | None = None
    ended: float | None = None
    error: str | None = None

    @property
    def loss(self) -> float | None:
        """The share of its packets that was lost; None where that of none is known."""
        known = self.sent - self.under_way
        return (known - self.received) / known if known > 0 else None

    def learn(self, t: float, seen: Monitored) -> None:
        """Take in what the monitor has seen by ``t``."""
        timeline = self.timeline
        since = timeline.time(timeline.end - 1) if timeline.end else self.started
        news = lately(self.monitored, seen, t - since)
        tick = timeline.append(t)
        for name, value in news.items():
            self.seen.setdefault(name, Series(timeline)).put(tick, value)
        self.monitored = seen


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

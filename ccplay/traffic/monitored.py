"""Traffic whose packets are counted: rate, loss and one-way delay between two counts."""

from __future__ import annotations

from collections import deque
from typing import Any

import msgspec
from msgspec.structs import replace

from ccplay.model.columns import (
    MILLISECONDS,
    PACKETS,
    RATE,
    SHARE,
    Column,
    ResultTable,
    milliseconds,
)
from ccplay.model.series import Series, Timeline
from ccplay.model.values import Monitored
from ccplay.model.variables import DELAY, LOSS, MONITORED, RECEIVED, Variable
from ccplay.traffic.base import Traffic, TrafficResult
from ccplay.traffic.plot import Line, Plot
from ccplay.traffic.routes import Route

_OVER_S = 0.95
"""Shortest time in seconds over which rates, loss and delay are averaged; counts arrive when the
machine has time for them."""

BYTES_RECEIVED = "received_bytes"
"""Name of the series with the bytes that have arrived so far."""

METRICS = {
    "delay_mean_ms": "mean one-way delay",
    "delay_min_ms": "least one-way delay",
    "delay_max_ms": "greatest one-way delay",
}
"""Names of the metrics of monitored packets."""


def needing_monitor(*metrics: str) -> dict[str, tuple[str, str]]:
    """Return what metrics need that only a monitor measures, as ``TrafficKind.needs``."""
    return dict.fromkeys((*METRICS, *metrics), ("monitor", "only monitor = true measures it"))


def variables(kind: str) -> tuple[Variable, ...]:
    """Return the variables of a kind of traffic whose packets are counted."""
    return tuple(replace(each, subject=kind) for each in MONITORED.values())


def plots(
    kind: str, word: str, lacking: str, of: str, own: tuple[Variable, ...], **rate: Any
) -> tuple[Plot, ...]:
    """Return the plots of the variables ``own`` of a kind: rate, loss and one-way delay.

    ``lacking`` names the traffic that an empty plot lacks, ``of`` its packets in a sentence, and
    ``rate`` has further values of the first plot.
    """
    received, loss, delay = own
    missing = (lacking, kind)
    return (
        Plot(
            name=kind,
            title=word,
            lines=(Line(received, "area" if rate.get("settings") else "line"),),
            least=0.1,
            missing=missing,
            height_in=0.65,
            reported=True,
            **rate,
        ),
        Plot(
            name=f"{kind}-loss",
            title=f"{word} loss",
            help=f"share of {of} packets that were lost, over the last second",
            lines=(Line(loss),),
            missing=missing,
            height_in=0.65,
        ),
        Plot(
            name=f"{kind}-delay",
            title=f"{word} delay",
            help=f"mean one-way delay of {of} packets, over the last second",
            lines=(Line(delay),),
            missing=missing,
            height_in=0.65,
        ),
    )


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
        RECEIVED.name: size * 8 / seconds if seconds > 0 else None,
        # A reordered packet was counted as lost before.
        LOSS.name: max(1 - received / sent, 0.0) if sent > 0 else None,
        DELAY.name: delays_us / received
        if received > 0 and now.delay_mean_us is not None
        else None,
    }


def _delays_us(seen: Monitored) -> float:
    """Return the sum of all packets' delays in µs."""
    return (seen.delay_mean_us or 0.0) * seen.received


class CountedTraffic(Traffic, kw_only=True):
    """Traffic whose packets are counted while it runs."""

    rate_bps: int = 0
    """Rate of payload that the sender was told to keep; 0 if it adapts its rate."""
    sent: int = 0
    """Packets sent, known at the end."""
    received: int = 0
    duration_s: float | None = None
    """Seconds for which packets were sent; None before the end."""
    monitored: Monitored | None = None
    """Counts of packets so far; None if unknown."""
    counts: deque[tuple[float, Monitored]] = msgspec.field(default_factory=deque)
    """Latest counts with their moments, as far back as variables need them."""
    timeline: Timeline = msgspec.field(default_factory=Timeline)
    """Moments at which packets were counted."""

    @property
    def received_bytes(self) -> Series:
        """Bytes that have arrived so far."""
        return self.series.setdefault(BYTES_RECEIVED, Series(self.timeline))

    def measure(self, event: Any) -> None:
        """Apply the counts of packets in an event."""
        t, seen = event.t, event.monitored
        counts = self.counts
        while len(counts) > 1 and counts[1][0] <= t - _OVER_S:
            counts.popleft()
        # Older than a second, or the first count: before that it had sent nothing.
        far = bool(counts) and counts[0][0] <= t - _OVER_S
        since, before = counts[0] if far else (self.started, None)
        tick = self.timeline.append(t)
        for name, value in rates_between(before, seen, t - since).items():
            self.series.setdefault(name, Series(self.timeline)).put(tick, value)
        self.received_bytes.put(tick, seen.received_bytes)
        counts.append((t, seen))
        self.monitored = seen


class MonitoredResult(TrafficResult, frozen=True, kw_only=True):
    """The result of traffic whose packets may be monitored from host to host."""

    started_s: float
    """Seconds since the start of the stream."""
    tx_bps: float | None = None
    """Payload sent in bits per second over the duration."""
    rx_bps: float | None = None
    """Payload received in bits per second over the duration."""
    loss: float | None = None
    """Share of what was sent that was lost."""
    delay_mean_ms: float | None = None
    """Mean one-way delay in ms of every packet that arrived; null, like the next fields, if not
    monitored."""
    delay_min_ms: float | None = None
    delay_max_ms: float | None = None
    routes: list[Route] = []
    """Paths that the traffic took, if there were several."""


def delays(seen: Monitored | None) -> dict[str, Any]:
    """Return the one-way delays of monitored traffic by their names in results."""
    if seen is None:
        return {}
    return {
        "delay_mean_ms": milliseconds(seen.delay_mean_us),
        "delay_min_ms": milliseconds(seen.delay_min_us),
        "delay_max_ms": milliseconds(seen.delay_max_us),
    }


DELAY_COLUMN = Column(
    "one-way delay",
    ("delay_mean_ms", "delay_min_ms", "delay_max_ms"),
    MILLISECONDS,
    ("mean", "min", "max"),
    short="delay",
)

PACKETS_TABLE = ResultTable(
    "Packets, from host to host",
    (
        Column("traffic", ("id",), short="packets of"),
        Column("path", ("path",)),
        Column("rate", ("tx_bps", "rx_bps"), RATE, ("sent", "received"), short="rate"),
        Column("sent", ("packets",), PACKETS, brief=()),
        Column("lost", ("packet_loss",), SHARE),
        DELAY_COLUMN,
    ),
    lambda result: () if result.delay_mean_ms is None else (result,),
)
"""Columns of packets that a monitor followed, for all kinds of traffic."""

"""Video calls: 25 frames a second each way over UDP, whose senders adapt their rate (RFC 8698)."""

from __future__ import annotations

from typing import Annotated

from msgspec.structs import replace

from ccplay.model import settings
from ccplay.model.base import (
    Count,
    Duration,
    Name,
    StartRoutedTraffic,
    StopTraffic,
    TrafficEnded,
    TrafficSample,
    TrafficStarted,
)
from ccplay.model.columns import COUNT, SECONDS, SHARE, Column, ResultTable, rate_bps
from ccplay.model.columns import RATE as RATE_COLUMN
from ccplay.model.quantities import RATE, Field
from ccplay.model.texts import NAME
from ccplay.model.values import Monitored
from ccplay.model.variables import DELAY, LOSS, RECEIVED
from ccplay.traffic import monitored
from ccplay.traffic.base import Form, Samples, TrafficKind, TrafficState
from ccplay.traffic.monitored import CountedTraffic, MonitoredResult, delays
from ccplay.traffic.routes import ROUTES, routes
from ccplay.units import format_rate, format_ratio, format_time_us

_NAME = Field(NAME, "The name of the video call")


class StartCall(StartRoutedTraffic, frozen=True):
    """Start a video call between ``src`` and ``dst``: video flows both ways."""

    WORD = "call"

    call: Annotated[str | None, _NAME] = None
    """Name of the direction from ``src`` to ``dst``; None takes the next free one: ``v1``, ``v2``
    …"""
    rate_bps: Annotated[
        int,
        Field(
            RATE,
            "Highest rate in each direction, 1.5 Mbit/s by default",
            *(150_000, 100_000_000),
            key="rate",
            label="rate up to",
            hint="150 kbit/s to 100 Mbit/s, each way",
        ),
    ] = 1_500_000
    duration_s: Annotated[float | None, settings.DURATION] = None
    bidir: Annotated[bool, settings.BIDIR] = True
    """Whether video flows both ways; the lab answers with a command for each direction."""

    def detail(self) -> str:
        """Return what the event log shows of the start, apart from its path."""
        return f"up to {format_rate(self.rate_bps)}"


class StopCall(StopTraffic, frozen=True):
    """End one direction of a video call."""

    WORD = "call"

    call: Annotated[str, _NAME]


class CallStarted(TrafficStarted, frozen=True):
    """One direction of a video call has begun."""

    call: Name
    rate_bps: Count
    """Greatest rate in bits per second."""


class CallSample(TrafficSample, frozen=True):
    """What has become of one direction so far, as the receiver reports it."""

    call: str
    monitored: Monitored
    """Counts of packets."""
    freezes: Count
    """Number of freezes: times between two shown frames of at least 190 ms."""
    frozen_us: Count
    """Microseconds of all freezes together."""
    rate_bps: Count
    """Rate in bits per second at which the sender sends now."""


class CallEnded(TrafficEnded, frozen=True):
    """One direction of a video call has ended."""

    call: str
    sent: Count
    """Packets sent, counted by the sender."""
    duration_s: Duration


class Call(CountedTraffic, kw_only=True):
    """One direction of a video call."""

    kind: str = "call"
    freezes: int = 0
    frozen_us: int = 0

    def measure(self, event: CallSample) -> None:
        """Apply the counts of packets and freezes."""
        super().measure(event)
        self.freezes, self.frozen_us = event.freezes, event.frozen_us

    def outcome(self) -> str:
        """Return the number of freezes."""
        return f"ended: {self.freezes} freezes"

    def lines(self, t: float) -> tuple[str, ...]:
        """Return the screen's text at ``t``: rate, loss, delay and freezes."""
        if self.ended is not None and self.ended <= t:
            return (f"call ended: {self.error}" if self.error else f"call {self.outcome()}",)
        tick = self.timeline.before_or_at(t)
        if tick < self.timeline.first:
            return (f"call {self.src} → {self.dst}", "call")
        rate, loss, delay = (self.series[each.name].at(tick) for each in (RECEIVED, LOSS, DELAY))
        if not rate:
            return ("call, nothing arrives",)
        text = f"call {format_rate(rate)}"
        lost = f"{format_ratio(loss or 0.0)} lost"
        late = "" if delay is None else f", {format_time_us(delay)}"
        frozen = f", {self.freezes} freezes" if self.freezes else ""
        return (f"{text}, {lost}{late}{frozen}", f"{text}, {lost}{late}", f"{text}, {lost}", text)


class CallResult(MonitoredResult, frozen=True, kw_only=True):
    """The result of one direction of a video call."""

    duration_s: float | None
    """Seconds for which frames were sent; null before the end."""
    rate_bps: float | None
    """Mean rate at which video arrived, in bits per second; null before the end."""
    freezes: int
    """Number of times between two shown frames of at least 190 ms."""
    frozen_s: float
    """Seconds of all freezes together."""


def _result(state: TrafficState, call: Call) -> CallResult:
    seen, seconds = call.monitored, call.duration_s
    known = seconds if seconds is not None else state.now - call.started
    return CallResult(
        **call.identity(),
        started_s=round(call.started, 3),
        duration_s=None if seconds is None else round(seconds, 3),
        rate_bps=None if seen is None else rate_bps(seen.received_bytes, known),
        loss=None if seen is None or not seen.sent else round(1 - seen.received / seen.sent, 6),
        freezes=call.freezes,
        frozen_s=round(call.frozen_us / 1e6, 3),
        **delays(seen),
        routes=routes(call.paths),
    )


_VARIABLES = monitored.variables("call")

_RATE, _LOSS, _DELAYS = monitored.plots(
    *("call", "call", "video call", "a call's", _VARIABLES),
    about="video that arrives",
    help="rate of video that arrives of each call, over the last second",
)

KIND = TrafficKind(
    name="call",
    form=Form(
        key="C",
        title="Video call",
        about="video both ways; its rate adapts to the path",
        asks=("rate_bps", "src", "dst", "duration_s", "bidir"),
    ),
    plural="calls",
    prefix="v",
    start=StartCall,
    stop=StopCall,
    started=CallStarted,
    ended=CallEnded,
    samples=(CallSample,),
    state=Call,
    result=_result,
    tables=(
        ResultTable(
            "Video calls",
            (
                Column("call", ("id",)),
                Column("path", ("path",)),
                Column("rate", ("rate_bps",), RATE_COLUMN),
                Column("lost", ("loss",), SHARE),
                Column("freezes", ("freezes",), COUNT),
                Column("frozen", ("frozen_s",), SECONDS),
                monitored.DELAY_COLUMN,
            ),
        ),
        ROUTES,
    ),
    metrics={"rate_bps": "video rate", "frozen_s": "frozen time", **monitored.METRICS},
    variables=_VARIABLES,
    plots=(_RATE, _LOSS, replace(_DELAYS, reported=True)),
    limits=("duration_s",),
    limit_words="a duration",
    exported=Samples(
        CallSample,
        {
            "call": ("call", "text"),
            "freezes": ("freezes", "whole"),
            "frozen_us": ("frozen_us", "whole"),
            "rate_bps": ("rate_bps", "whole"),
        },
        "freezes of a video call so far, and the rate of its sender",
    ),
    offer="video call",
    offer_detail=StartCall.detail,
)

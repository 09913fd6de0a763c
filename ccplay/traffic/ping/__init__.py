"""Pings and their replies over time, by ping(8) or by ccplay's own program."""

from __future__ import annotations

from typing import Annotated, Self

from ccplay.model import settings
from ccplay.model.algorithms import DEFAULT
from ccplay.model.base import (
    Duration,
    Name,
    StartTraffic,
    StopTraffic,
    TrafficEnded,
    TrafficSample,
    TrafficStarted,
)
from ccplay.model.columns import COUNT, MILLISECONDS, Column, ResultTable, percentiles_ms
from ccplay.model.quantities import INTERVAL, WHOLE, Field
from ccplay.model.series import Series, Timeline
from ccplay.model.texts import NAME, choice
from ccplay.model.variables import Variable, columns
from ccplay.traffic.base import (
    Form,
    Samples,
    Tool,
    Traffic,
    TrafficKind,
    TrafficResult,
    TrafficState,
)
from ccplay.traffic.plot import Line, Times

_NAME = Field(NAME, "The name of the ping")
_RTT = Variable("rtt_us", "RTT", "us", "ping", digits=0, combined="mean", kept=True, cells="real")

PING_PROTOCOLS = ("icmp", "udp")
"""Protocols of pings; the first is the default."""


class StartPing(StartTraffic, frozen=True):
    """Ping ``dst`` from ``src``."""

    WORD = "ping"

    ping: Annotated[str | None, _NAME] = None
    interval_s: Annotated[
        float,
        Field(
            INTERVAL,
            "Time between two pings, 200 ms by default",
            # ping(8) refuses much shorter intervals, and faster pings cost more than they reveal.
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
    protocol: Annotated[
        str,
        Field(
            choice("protocol", PING_PROTOCOLS),
            "The protocol: icmp (echo requests), or udp (datagrams that the receiver returns)",
        ),
    ] = PING_PROTOCOLS[0]
    dscp: Annotated[str, settings.DSCP] = DEFAULT

    def detail(self) -> str:
        """Return what the event log shows of the start, apart from its path."""
        over = "" if self.protocol == PING_PROTOCOLS[0] else self.protocol.upper()
        marked = "" if self.dscp == DEFAULT else self.dscp
        return ", ".join(filter(None, (over, marked)))


class StopPing(StopTraffic, frozen=True):
    """End a ping."""

    WORD = "ping"

    ping: Annotated[str, _NAME]


class PingStarted(TrafficStarted, frozen=True):
    """A ping has started."""

    ping: Name
    interval_s: float


class PingSample(TrafficSample, frozen=True):
    """One reply to a ping; ``rtt_us`` is None for a request without a reply."""

    ping: str
    seq: int
    rtt_us: Duration | None


class PingEnded(TrafficEnded, frozen=True):
    """A ping has ended."""

    ping: str
    sent: int
    lost: int


class Ping(Traffic, kw_only=True):
    """A ping and its replies; a lost one is a missing value of ``rtt_us``."""

    kind: str = "ping"
    sent: int = 0
    lost: int = 0

    @classmethod
    def begin(cls, event: PingStarted) -> Self:
        """Return a ping without replies."""
        ping = super().begin(event)
        ping.series[_RTT.name] = Series(Timeline())
        return ping

    def measure(self, event: PingSample) -> None:
        """Apply a reply, or its absence."""
        self.sent += 1
        self.lost += event.rtt_us is None
        rtt_us = self.series[_RTT.name]
        rtt_us.put(rtt_us.timeline.append(event.t), event.rtt_us)

    def outcome(self) -> str:
        """Return the number of pings sent and lost."""
        return f"ended: {self.sent} sent, {self.lost} lost"

    def lines(self, t: float) -> tuple[str, ...]:
        """Return the screen's text at ``t``: the last reply and the range of all."""
        if self.ended is not None and self.ended <= t:
            return (f"ping ended: {self.error}" if self.error else f"ping {self.outcome()}",)
        rtt_us = self.series["rtt_us"]
        tick = rtt_us.timeline.before_or_at(t)
        if (found := rtt_us.extremes(0, tick + 1)) is None:
            return ("ping no answer yet",)
        least, most = (value / 1e3 for value in found)
        last = rtt_us.at(tick)
        now = "lost" if last is None else f"{last / 1e3:.1f} ms"
        return (
            f"ping {now:<10}min {least:.1f}  max {most:.1f}",
            f"ping {now:<10}{least:.0f} to {most:.0f}",
        )


class PingResult(TrafficResult, frozen=True, kw_only=True):
    """Results of a ping. Times are over the received replies."""

    sent: int
    lost: int
    min_ms: float | None
    p50_ms: float | None
    p95_ms: float | None
    max_ms: float | None


TABLES = (
    ResultTable(
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
    least, p50, p95, most = percentiles_ms(ping.series["rtt_us"].all(), 0, 50, 95, 100)
    return PingResult(
        **ping.identity(),
        sent=ping.sent,
        lost=ping.lost,
        min_ms=least,
        p50_ms=p50,
        p95_ms=p95,
        max_ms=most,
    )


KIND = TrafficKind(
    name="ping",
    plural="pings",
    prefix="p",
    start=StartPing,
    stop=StopPing,
    started=PingStarted,
    ended=PingEnded,
    samples=(PingSample,),
    state=Ping,
    result=result,
    tables=TABLES,
    metrics=METRICS,
    metric="p50_ms",
    times=(
        Times(
            *("ping", "ping RTT (ms)", "share of pings", "All replies of all runs."),
            {"": lambda ping: ping.series[_RTT.name].all()},
        ),
    ),
    variables=(_RTT,),
    lines={"rtt": Line(_RTT, "dots", ink="ping")},
    tools=(Tool("ping", "iputils-ping", "measures the RTT"),),
    limits=("count",),
    limit_words="a count",
    fills=False,
    ink="ping",
    exported=Samples(
        PingSample,
        {"ping": ("ping", "text"), "seq": ("seq", "whole"), **columns((_RTT,))},
        "every reply; rtt_us is empty if none arrived",
    ),
    form=Form(
        key="p",
        title="Ping",
        about="the round trip time, several times a second",
        asks=("src", "dst", "interval_s", "count"),
        verb="ping",
    ),
    offer="ping",
)

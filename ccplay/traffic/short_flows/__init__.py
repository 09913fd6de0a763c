"""Short flows: transfers at random moments, and their completion times by size."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import partial
from statistics import fmean
from typing import Annotated

import msgspec
from msgspec.structs import replace

from ccplay.model import settings
from ccplay.model.base import (
    MANY,
    Count,
    Duration,
    Name,
    StartRoutedTraffic,
    StopTraffic,
    TrafficEnded,
    TrafficSample,
    TrafficStarted,
)
from ccplay.model.columns import MILLISECONDS, TEXT, Column, ResultTable, percentile, rate_bps
from ccplay.model.columns import RATE as RATE_COLUMN
from ccplay.model.network import MOST_PATHS
from ccplay.model.quantities import RATE, SIZE, WHOLE, Field
from ccplay.model.texts import NAME, choice
from ccplay.model.variables import Variable, columns
from ccplay.traffic.base import Form, Samples, Traffic, TrafficKind, TrafficResult, TrafficState
from ccplay.traffic.plot import Times
from ccplay.traffic.routes import ROUTES, Route, routes
from ccplay.units import format_rate, format_size

_NAME = Field(NAME, "The name of the short flows", key="short-flows")
_VARIABLES = (
    Variable("bytes", "size", "bytes", "short-flows", named="size_bytes"),
    Variable("fct_us", "completion time", "us", "short-flows", cells="real"),
)

SIZES = {"small": (0, 100_000), "medium": (100_000, 1_000_000), "large": (1_000_000, 1 << 60)}
"""Size classes of transfers in bytes: from the first number to below the second."""
SIZES_IN_WORDS = {"small": "below 100 kB", "medium": "100 kB to 1 MB", "large": "from 1 MB"}
"""Names of the size classes in print."""


class StartShortFlows(StartRoutedTraffic, frozen=True):
    """Start TCP transfers that arrive at random, each over a connection of its own."""

    WORD = "short flows"

    short_flows: Annotated[str | None, _NAME] = None
    """Name that all these short flows share; None takes the next free one: ``x1``, ``x2`` …"""
    cc: Annotated[str | None, settings.CC] = None
    rate_bps: Annotated[
        int,
        Field(
            RATE,
            "The mean load: payload of the transfers that start",
            *(1_000, 1_000_000_000),
            key="rate",
            label="load",
            hint="mean payload: 1 kbit/s to 1 Gbit/s",
        ),
    ] = 2_000_000
    bytes: Annotated[
        int,
        Field(
            *(SIZE, "Mean payload of a transfer", 1_000, 1_000_000_000),
            label="mean size",
            hint="of a transfer: 1 kB to 1 GB",
        ),
    ] = 100_000
    sizes: Annotated[
        str,
        Field(
            choice("distribution of sizes", ("fixed", "pareto")),
            "Sizes: all fixed, or heavy-tailed (bounded Pareto, shape 1.2)",
            label="sizes",
            choices={
                "pareto": "heavy-tailed; a few hold most of the bytes",
                "fixed": "each has the mean size",
            },
        ),
    ] = "pareto"
    seed: Annotated[
        int,
        Field(
            *(WHOLE, "The same seed gives the same transfers", 0, 1_000_000),
            label="seed",
            hint="the same gives the same transfers",
        ),
    ] = 1
    """Seed of the transfers' moments and sizes."""
    duration_s: Annotated[
        float | None,
        replace(
            settings.DURATION, meaning="How long transfers keep starting, from the first one on"
        ),
    ] = None
    count: Annotated[
        int | None,
        Field(
            *(WHOLE, "How many transfers start", 1, 1_000_000),
            label="or after",
            hint="transfers",
            unset="no limit",
        ),
    ] = None

    def detail(self) -> str:
        """Return what the event log shows of the start, apart from its path."""
        size = format_size(self.bytes)
        load = format_rate(self.rate_bps)
        return f"{load} of {size} ({self.sizes}), {self.cc or 'default'}"


class StopShortFlows(StopTraffic, frozen=True):
    """End short flows; unfinished transfers are aborted."""

    WORD = "short flows"

    short_flows: Annotated[str, _NAME]


class ShortFlowsStarted(TrafficStarted, frozen=True):
    """Both programs of short flows are running; transfers arrive from now on."""

    short_flows: Name
    cc: str
    rate_bps: Count
    """Mean load as requested, in bits per second."""
    port: int
    """TCP port of the receiver."""


class ShortFlowsProgress(TrafficSample, frozen=True):
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


class ShortFlowsEnded(TrafficEnded, frozen=True):
    """Short flows have ended. Transfers that neither finished nor failed were aborted."""

    short_flows: str


class ShortFlowsResult(TrafficResult, frozen=True, kw_only=True):
    """Short flows of one name. A flow completion time (FCT) begins with the SYN.

    It ends when the receiver has read the last byte. All metrics are over the transfers that
    finished; ``small`` are those below 100 kB, ``medium`` below 1 MB, ``large`` the others.
    """

    cc: str
    started_s: float
    """Seconds since the start of the stream."""
    load_bps: int
    """Mean load as requested, in bits per second."""
    started: int
    """Number of transfers started."""
    finished: int
    failed: int
    """Number of transfers whose connection failed."""
    under_way: int
    """Number of transfers that had not finished."""
    bytes: int
    """Payload in bytes of the finished transfers."""
    fct_mean_ms: float | None
    fct_p50_ms: float | None
    fct_p95_ms: float | None
    fct_p99_ms: float | None
    small_finished: int
    small_fct_mean_ms: float | None
    small_fct_p50_ms: float | None
    small_fct_p95_ms: float | None
    small_fct_p99_ms: float | None
    medium_finished: int
    medium_fct_mean_ms: float | None
    medium_fct_p50_ms: float | None
    medium_fct_p95_ms: float | None
    medium_fct_p99_ms: float | None
    large_finished: int
    large_fct_mean_ms: float | None
    large_fct_p50_ms: float | None
    large_fct_p95_ms: float | None
    large_fct_p99_ms: float | None
    duration_s: float | None = None
    """Seconds from the start of the first until all had ended."""
    goodput_bps: float | None = None
    """Payload of the finished transfers in bits per second over ``duration_s``."""
    small_goodput_bps: float | None = None
    medium_goodput_bps: float | None = None
    large_goodput_bps: float | None = None
    routes: list[Route] = []
    """Paths with the number of transfers that took each, if there were several."""


class SizeClass(msgspec.Struct, frozen=True):
    """A row of the table: all transfers, or those of a size class."""

    id: str
    sizes: str
    """Sizes in the class, such as ``below 100 kB``."""
    finished: str
    goodput_bps: float | None
    fct_mean_ms: float | None
    fct_p50_ms: float | None
    fct_p95_ms: float | None
    fct_p99_ms: float | None


_TIMES = ("fct_mean_ms", "fct_p50_ms", "fct_p95_ms", "fct_p99_ms")

_MEASURED = ("goodput_bps", *_TIMES)

_ORDERS = ("mean", "median", "95th percentile of", "99th percentile of")


def size_classes(result: ShortFlowsResult) -> list[SizeClass]:
    """Return a row for all transfers, and one for each size class that has any."""
    every = [getattr(result, each) for each in _MEASURED]
    done = f"{result.finished:,} of {result.started:,}"
    rows = [SizeClass(result.id, f"all, {result.path}", done, *every)]
    for name, words in SIZES_IN_WORDS.items():
        if count := getattr(result, f"{name}_finished"):
            own = [getattr(result, f"{name}_{each}") for each in _MEASURED]
            rows.append(SizeClass("", words, f"{count:,}", *own))
    return rows


TABLES = (
    ResultTable(
        "Short flows",
        (
            Column("short flows", ("id",)),
            Column("sizes", ("sizes",)),
            Column("done", ("finished",), TEXT),
            Column("goodput", ("goodput_bps",), RATE_COLUMN),
            Column(
                "flow completion time",
                _TIMES,
                MILLISECONDS,
                ("mean", "p50", "p95", "p99"),
                short="FCT",
                brief=(1, 2, 3),
            ),
        ),
        size_classes,
    ),
    ROUTES,
)

METRICS = {
    "load_bps": "load",
    "started": "transfers started",
    "finished": "transfers finished",
    "failed": "transfers failed",
    "under_way": "transfers under way",
    "bytes": "payload of finished transfers",
    **{
        f"{prefix}{field}": f"{order} FCT{words}"
        for prefix, words in (
            ("", ""),
            *((f"{name}_", f" {text}") for name, text in SIZES_IN_WORDS.items()),
        )
        for field, order in zip(_TIMES, _ORDERS, strict=True)
    },
    **{f"{name}_finished": f"transfers {text}" for name, text in SIZES_IN_WORDS.items()},
    **{f"{name}_goodput_bps": f"goodput {text}" for name, text in SIZES_IN_WORDS.items()},
}
"""Names of short flows' metrics."""


class ShortFlows(Traffic, kw_only=True):
    """Transfers that arrive at random, with the results of finished ones."""

    WORD = "short flows"
    MANY_PATHS = True

    kind: str = "short-flows"
    cc: str
    rate_bps: int
    """Mean load as requested, in bits per second."""
    moments: list[float] = msgspec.field(default_factory=list)
    """Moments of the reports; the lists below have the counts of each at the same index."""
    begun: list[int] = msgspec.field(default_factory=list)
    failed: list[int] = msgspec.field(default_factory=list)
    done: list[int] = msgspec.field(default_factory=list)
    sizes: list[int] = msgspec.field(default_factory=list)
    """Bytes of each finished transfer, in the order of their ends; ``fct_us`` has the completion
    times."""
    fct_us: list[float] = msgspec.field(default_factory=list)
    taken: list[int] = msgspec.field(default_factory=list)
    """Number of finished transfers on each of ``paths``, which are in the order of the first
    transfer on each."""

    def measure(self, event: ShortFlowsProgress) -> None:
        """Apply the outcome of transfers."""
        # A stranger's recording may have columns of any length.
        for size, took in zip(event.bytes, event.fct_us, strict=False):
            self.sizes.append(size)
            self.fct_us.append(took)
        for place in event.path:
            if place < MOST_PATHS:
                self.taken += [0] * (place + 1 - len(self.taken))
                self.taken[place] += 1
        self.moments.append(event.t)
        self.begun.append(event.started)
        self.failed.append(event.failed)
        self.done.append(len(self.sizes))

    def outcome(self) -> str:
        """Return how many transfers have finished."""
        return f"ended: {len(self.sizes):,} of {(self.begun or [0])[-1]:,} done"

    def lines(self, t: float) -> tuple[str, ...]:
        """Return the screen's texts at ``t``, the longest first."""
        if self.error and self.ended is not None and self.ended <= t:
            return (f"short flows ended: {self.error}",)
        at = bisect_right(self.moments, t) - 1
        if at < 0:
            return (f"short flows {self.src} → {self.dst}, none done yet", "short flows, none yet")
        done, begun = self.done[at], self.begun[at]
        way = begun - done - self.failed[at]
        found = [percentile(self.fct_us[:done], each) for each in (50, 99)]
        p50, p99 = (_ms(None if each is None else each / 1e3) for each in found)
        over = self.ended is not None and self.ended <= t
        count = f"{done} of {begun} done" if over else f"{done} done, {way} under way"
        return (
            f"short flows {count}, FCT p50 {p50}, p99 {p99}",
            f"short {count}, FCT {p50}, p99 {p99}",
            f"short {done}+{way}, FCT {p50}, p99 {p99}",
            f"short {done}+{way}, {p50}, {p99}",
            f"{done}+{way}, {p50}",
        )


def result(state: TrafficState, flows: ShortFlows) -> ShortFlowsResult:
    """Return the result of short flows so far."""
    begun, failed = (flows.begun or [0])[-1], (flows.failed or [0])[-1]
    done = list(zip(flows.sizes, flows.fct_us, strict=True))
    duration = (state.now if flows.ended is None else flows.ended) - flows.started
    metrics: dict[str, float | None] = _times("", flows.fct_us)
    for name, (low, high) in SIZES.items():
        within = [(size, took) for size, took in done if low <= size < high]
        metrics |= {
            f"{name}_finished": len(within),
            f"{name}_goodput_bps": rate_bps(sum(size for size, _ in within), duration),
            **_times(f"{name}_", [took for _, took in within]),
        }
    values = {
        **flows.identity(),
        "cc": flows.cc,
        "started_s": round(flows.started, 3),
        "load_bps": flows.rate_bps,
        "started": begun,
        "finished": len(done),
        "failed": failed,
        "under_way": max(begun - len(done) - failed, 0),
        "bytes": sum(flows.sizes),
        "duration_s": round(duration, 3),
        "goodput_bps": rate_bps(sum(flows.sizes), duration),
        "routes": routes(flows.paths, flows.taken),
    }
    return msgspec.convert(values | metrics, ShortFlowsResult)


def _fct_us(bounds: tuple[int, int], flows: ShortFlows) -> list[float]:
    """Return the completion times of the transfers of a size class, in µs."""
    low, high = bounds
    done = zip(flows.sizes, flows.fct_us, strict=True)
    return [us for size, us in done if low <= size < high]


def _times(prefix: str, fct_us: Sequence[float]) -> dict[str, float | None]:
    """Return mean and percentiles of completion times in milliseconds."""
    found = {f"p{each}": percentile(fct_us, each) for each in (50, 95, 99)}
    found["mean"] = fmean(fct_us) if fct_us else None
    return {
        f"{prefix}fct_{name}_ms": None if value is None else round(value / 1e3, 3)
        for name, value in found.items()
    }


def _ms(value: float | None) -> str:
    if value is None:
        return "–"
    if value >= 1000:
        return f"{value / 1000:.1f} s"
    return f"{value:.0f} ms" if value >= 100 else f"{value:.1f} ms"


KIND = TrafficKind(
    name="short-flows",
    plural="short-flows",
    prefix="x",
    start=StartShortFlows,
    stop=StopShortFlows,
    started=ShortFlowsStarted,
    ended=ShortFlowsEnded,
    samples=(ShortFlowsProgress,),
    state=ShortFlows,
    result=result,
    tables=TABLES,
    metrics=METRICS,
    times=(
        Times(
            "fct",
            "flow completion time (ms)",
            "share of transfers",
            "Every transfer of short flows that finished, of all runs, by its size.",
            {f"transfers {text}": partial(_fct_us, SIZES[n]) for n, text in SIZES_IN_WORDS.items()},
        ),
    ),
    variables=_VARIABLES,
    limits=("duration_s", "count"),
    limit_words="a duration, a count",
    exported=Samples(
        ShortFlowsProgress,
        {"short_flows": ("short_flows", "text"), **columns(_VARIABLES)},
        "every transfer that finished: its size and its completion time",
    ),
    form=Form(
        key="n",
        title="Short flows",
        about="small TCP transfers that arrive at random",
        asks=(*("rate_bps", "bytes", "sizes", "cc", "src", "dst", "seed", "duration_s", "count"),),
        reads="transfers done and under way, median and 99th percentile of FCT",
    ),
    offer="short flows",
    offer_detail=StartShortFlows.detail,
)

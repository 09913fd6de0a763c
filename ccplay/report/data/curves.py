"""Curves of traffic over time: rates, bytes per interval, acknowledged bytes."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, stdev

import msgspec

from ccplay.analysis.theory import Theory
from ccplay.model.columns import COUNT, SIZE, Column, ResultTable
from ccplay.model.series import MISSING, Series
from ccplay.model.variables import RECEIVED, Variable, combine
from ccplay.plots.subjects import per_second
from ccplay.state.lab_state import LabState
from ccplay.traffic import KINDS, VARIABLES
from ccplay.traffic.connections import Flow
from ccplay.traffic.monitored import CountedTraffic

# --- lines and spans from a session's series ------------------------------------------------------
COLUMNS = 700
"""Number of columns of a thinned line, more than a page can show; each has up to four points."""
_HOLD = 4.5
"""Number of mean sampling intervals after which a line without a new value has a gap."""


class Curve(msgspec.Struct, frozen=True):
    """Points joined by a line; a missing value is a gap."""

    t: list[float] = msgspec.field(default_factory=list)
    y: list[float] = msgspec.field(default_factory=list)

    def add(self, t: float, y: float | None) -> None:
        """Append a point."""
        self.t.append(t)
        self.y.append(MISSING if y is None else y)

    @property
    def top(self) -> float:
        """The greatest value; 0 if there is none."""
        return max((y for y in self.y if y == y), default=0.0)

    @property
    def lone(self) -> Curve:
        """The single points between two gaps, which a line alone would not show."""
        known = [False, *(y == y for y in self.y), False]
        found = Curve()
        for t, y, (before, here, after) in zip(
            self.t, self.y, zip(known, known[1:], known[2:], strict=False), strict=True
        ):
            if here and not before and not after:
                found.add(t, y)
        return found


def curve(
    series: Series,
    *,
    factor: float = 1.0,
    start: float = 0.0,
    columns: int = COLUMNS,
    most: float = math.inf,
) -> Curve:
    """Return a series as a line, its times counted from ``start``, its values times ``factor``.

    Values above ``most`` are impossible and become gaps. If the series has more values than can be
    shown, each column keeps its first, last, least and greatest value.
    """
    line, timeline = Curve(), series.timeline

    def add(t: float, value: float | None) -> None:
        line.add(t - start, None if value is None or value > most else value * factor)

    first, end = _known_ticks(series)
    if end - first <= 2 * columns:
        hold, before = _HOLD * _interval(series), math.inf
        for tick in range(first, end):
            t = timeline.time(tick)
            if t - before > hold:
                add(t, None)
            add(t, series.at(tick))
            before = t
        return line
    ticks = _slices(series, columns)
    for (tick, stop), span in zip(pairwise(ticks), series.thinned(ticks, most), strict=True):
        left, right = timeline.time(tick), timeline.time(stop - 1)
        if span is None:
            add(left, None)
            continue
        one, other = series.at(tick), series.at(stop - 1)
        known = [value for value in (one, other) if value is not None and value <= most]
        falling = len(known) == 2 and known[0] > known[1]
        add(left, one)
        for share, value in zip((0.35, 0.65), span[::-1] if falling else span, strict=True):
            add(left + share * (right - left), value)
        add(right, other)
    return line


def _known_ticks(series: Series) -> tuple[int, int]:
    """Return the first tick of a series that is still known, and one past the last."""
    return max(series.first, series.timeline.first, 0), series.end


def _slices(series: Series, most: int) -> list[int]:
    """Return the ticks that divide a series into at most ``most`` slices of equal length."""
    first, end = _known_ticks(series)
    return [*range(first, end, max(math.ceil((end - first) / most), 1)), end]


def theory(flow: Flow, *, start: float = 0.0) -> dict[str, Curve]:
    """Return lines of a flow's theoretical cwnd by name, each only in epochs of its algorithm."""
    found = Theory(flow)
    found.follow()
    named = {"cubic": ("W(t)", found.cubic), "reno": ("Reno's line", found.reno)}
    time, width = found.cubic.timeline.time, math.ceil(found.cubic.end / COLUMNS)
    ends = [*(each.tick for each in found.epochs[1:]), found.cubic.end]
    lines: dict[str, Curve] = {}
    for epoch, end in zip(found.epochs, ends, strict=False):
        if epoch.algorithm in named:
            name, series = named[epoch.algorithm]
            line = lines.setdefault(name, Curve())
            for tick in range(epoch.tick, end, width):
                if (value := series.at(tick)) is None:
                    break
                line.add(time(tick) - start, value)
            line.add(line.t[-1], None)
    return lines


def _interval(series: Series) -> float:
    first, end = _known_ticks(series)
    if end - 1 <= first:
        return 1.0
    return (series.timeline.time(end - 1) - series.timeline.time(first)) / (end - 1 - first)


def count_at(series: Series, t: float) -> float:
    """Return the value of a counter at ``t``, interpolated between two sweeps."""
    timeline = series.timeline
    if series.end <= 0:
        return 0.0
    before = timeline.before_or_at(t)
    if before < max(series.first, timeline.first):
        return 0.0
    if before >= series.end - 1:
        return _known(series, series.end - 1)
    one, other = _known(series, before), _known(series, before + 1)
    since, until = timeline.time(before), timeline.time(before + 1)
    return one + (other - one) * (t - since) / (until - since) if until > since else other


def _known(series: Series, tick: int) -> float:
    """Return a counter's last known value up to a tick; 0 if there is none."""
    while tick >= series.first:
        if (value := series.at(tick)) is not None:
            return value
        tick -= 1
    return 0.0


def totals(streams: Sequence[Flow], edges: Sequence[float], variable: Variable) -> list[float]:
    """Return a counter of a flow at each of ``edges``, combined over its streams."""
    every = [each.series[variable.series] for each in streams]
    found = (combine(variable.combined, [count_at(each, t) for each in every]) for t in edges)
    return [each or 0.0 for each in found]


def transfers(streams: Sequence[Flow], edges: Sequence[float], variable: Variable) -> list[float]:
    """Return the growth of a flow's counter in each interval between ``edges``."""
    return [max(b - a, 0.0) for a, b in pairwise(totals(streams, edges, variable))]


def arrivals(traffic: CountedTraffic, edges: Sequence[float]) -> list[float]:
    """Return the bytes received in each interval between ``edges``."""
    counts = [count_at(traffic.received_bytes, t) for t in edges]
    return [max(b - a, 0.0) for a, b in pairwise(counts)]


def rates(
    series: Series, variable: Variable, start: float, span_s: float, factor: float = 1.0
) -> Curve:
    """Return a counter's rate in successive windows of its averaging time, at each window's end."""
    over_s = variable.rate.over_s if variable.rate else 1.0
    edges = bins(start, start + span_s, over_s)
    counts = [count_at(series, t) for t in edges]
    each = factor * per_second(variable) / over_s
    return Curve([t - start for t in edges[1:]], [(b - a) * each for a, b in pairwise(counts)])


def bins(start: float, end: float, width: float) -> list[float]:
    """Return the edges of bins of equal width from ``start`` to at least ``end``."""
    return [start + width * i for i in range(max(math.ceil((end - start) / width - 1e-6), 1) + 1)]


def state_spans(series: Series, *, start: float = 0.0) -> list[tuple[float, float, int]]:
    """Return the spans (start, end, state) of a connection's congestion states except Open.

    A state holds until the next sweep. With more sweeps than can be shown, a column shows its
    worst state.
    """
    timeline, ticks = series.timeline, _slices(series, 2 * COLUMNS)
    spans: list[tuple[float, float, int]] = []
    for (tick, end), found in zip(pairwise(ticks), series.thinned(ticks), strict=True):
        state = round(found[1]) if found else 0
        if not state:
            continue
        left, right = (timeline.time(min(each, timeline.end - 1)) - start for each in (tick, end))
        if spans and spans[-1][2] == state and left - spans[-1][1] < 1e-9:
            spans[-1] = (spans[-1][0], right, state)
        else:
            spans.append((left, right, state))
    return spans


def growths(series: Series, *, start: float = 0.0) -> list[float]:
    """Return the moments by which a counter had grown, at most one per column."""
    ticks = _slices(series, 2 * COLUMNS)
    moments, before = [], 0.0
    for tick, found in zip(ticks, series.thinned(ticks), strict=False):
        if found and found[1] > before:
            moments.append(series.timeline.time(tick) - start)
            before = found[1]
    return moments


def cross_traffic(
    traffic: Sequence[CountedTraffic], start: float, end: float
) -> tuple[list[float], list[float], list[float | None]]:
    """Return moments since ``start``, and the bit/s that UDP sent and received between them.

    The received rate comes from a monitor's samples; without a monitor it is the mean over the
    whole traffic, and None until the traffic has ended.
    """
    # The end of traffic is reported later than its last packet.
    lasts = [end if e.duration_s is None else e.started + e.duration_s for e in traffic]
    spans = [(max(e.started, start), min(t, end)) for e, t in zip(traffic, lasts, strict=True)]
    moments = sorted({t for span in spans for t in span} | _samples(traffic, spans))
    sent: list[float] = []
    received: list[float | None] = []
    for left, right in pairwise(moments):
        running = [
            each for each, (a, b) in zip(traffic, spans, strict=True) if a < right and left < b
        ]
        sent.append(sum(each.rate_bps for each in running))
        arrived = [_arrived(each, right) for each in running]
        received.append(None if None in arrived else sum(rate or 0.0 for rate in arrived))
    return [t - start for t in moments], sent, received


def _samples(traffic: Sequence[CountedTraffic], spans: Sequence[tuple[float, float]]) -> set[float]:
    """Return the moments of monitors' samples taken while cross traffic was sent."""
    return {
        t
        for each, (left, right) in zip(traffic, spans, strict=True)
        for t in each.timeline.moments(each.timeline.first, each.timeline.end)
        if left < t < right
    }


def _arrived(traffic: CountedTraffic, t: float) -> float | None:
    """Return the bit/s that arrived in the interval that ends at ``t``."""
    if (seen := traffic.series.get(RECEIVED.name)) is not None:
        # A sample covers the time before it; the last one also stands for what follows.
        return seen.at(min(seen.timeline.at_or_after(t), seen.end - 1))
    return traffic.rate_bps * traffic.received / traffic.sent if traffic.sent else None


def settings(changes: Sequence[tuple[float, float | None]], start: float, end: float) -> Curve:
    """Return a setting as a line from ``start`` (at 0) to ``end``; a value holds until the next."""
    line = Curve()
    times = [t for t, _ in changes]
    at = max(bisect_right(times, start) - 1, 0)
    for index, (t, value) in enumerate(changes[at:], at):
        until = changes[index + 1][0] if index + 1 < len(changes) else end
        if until > start and t < end:
            line.add(max(t, start) - start, value)
            line.add(min(until, end) - start, value)
    return line


def name_of(streams: Sequence[Flow]) -> str:
    """Return the name of a flow, subflow or download; the streams of a flow share one."""
    first = streams[0]
    return first.parent if first.kind == "flow" else first.name


def flow_groups(state: LabState) -> list[list[Flow]]:
    """Return flows, subflows and downloads in order of start, each as its parallel streams."""
    groups: dict[str, list[Flow]] = {}
    for flow in state.flows.values():
        groups.setdefault(name_of([flow]), []).append(flow)
    return list(groups.values())


# --- the bytes that traffic moved in every interval of a run ----------

INTERVAL_S = 1.0
"""Default length of an interval in seconds."""

MOST_INTERVALS = 100_000
"""Largest number of intervals in a run, more than a day of seconds; limits the memory that a faulty
recording can use."""


class Moved(msgspec.Struct, frozen=True):
    """The bytes that some traffic moved."""

    kind: str
    """Kind of the traffic: ``flow``, ``download`` or ``udp``."""
    name: str
    bytes: list[float]
    """Payload in bytes, acknowledged or (UDP) received, in each interval while the traffic ran."""
    first: int
    """Index, from 0, of the interval in which the traffic started."""


def moved(state: LabState, start: float, end: float, interval_s: float) -> list[Moved]:
    """Return the bytes moved between two moments of a session, TCP before UDP, in order of start.

    Intervals count from ``start``; the last one may extend beyond ``end``. Between two samples
    bytes are distributed evenly. Empty for more than ``MOST_INTERVALS`` intervals.
    """
    if end - start > MOST_INTERVALS * interval_s:
        return []
    edges, acked = bins(start, end, interval_s), VARIABLES["flow"]["bytes_acked"]
    found = []
    for streams in flow_groups(state):
        first = streams[0]
        ran = (first.started, first.ended or end)
        found.append(
            _within(first.kind, name_of(streams), ran, edges, transfers(streams, edges, acked))
        )
    for each in state.of(CountedTraffic).values():
        if each.received_bytes.end > 0:
            ran = (each.started, each.ended or end)
            found.append(_within(each.kind, each.name, ran, edges, arrivals(each, edges)))
    return found


def _within(
    kind: str, name: str, ran: tuple[float, float], edges: Sequence[float], amounts: Sequence[float]
) -> Moved:
    """Return the bytes in those intervals in which the traffic ran."""
    inside = [place for place, (a, b) in enumerate(pairwise(edges)) if b > ran[0] and a < ran[1]]
    return Moved(kind, name, [amounts[place] for place in inside], inside[0] if inside else 0)


class ByteStatistics(msgspec.Struct, frozen=True):
    """Statistics of the bytes that some traffic moved in the intervals through which it ran."""

    traffic: str
    count: int
    mean: float | None
    sd: float | None
    least: float | None
    greatest: float | None


def summaries(found: Sequence[Moved]) -> list[ByteStatistics]:
    """Return the statistics of all traffic over its intervals except the first and the last.

    These two are usually incomplete; traffic without others is left out.
    """
    rows = []
    for each in found:
        whole = each.bytes[1:-1]
        if whole:
            sd = stdev(whole) if len(whole) > 1 else None
            word = KINDS[each.kind].word if each.kind in KINDS else each.kind
            what = f"{word} {each.name}"
            rows.append(ByteStatistics(what, len(whole), fmean(whole), sd, min(whole), max(whole)))
    return rows


TABLE = ResultTable(
    "Bytes in each second",
    (
        Column("traffic", ("traffic",)),
        Column("seconds", ("count",), COUNT),
        Column("mean", ("mean",), SIZE),
        Column("standard deviation", ("sd",), SIZE),
        Column("minimum", ("least",), SIZE),
        Column("maximum", ("greatest",), SIZE),
    ),
)
"""Description of the table of ``summaries``."""

"""The lines of a plot: values over time, each as its span within a slice of time."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import ClassVar, Literal, Protocol, TypeAlias, get_args

import msgspec
from msgspec.structs import replace

from ccplay.state.series import Series

Span: TypeAlias = tuple[float, float]
"""The least and the greatest value within a slice of time."""

Style: TypeAlias = Literal["line", "area", "layer", "dotted", "dots", "sparse", "dashed", "signs"]
"""``area`` is a line with the ground below it shaded, ``layer`` one of a stack. ``sparse`` is a
line of every other dot, ``dashed`` one in every other cell, and over other traces in every fourth,
so that they still show; ``signs`` are cells with the pen's glyph."""

LONG_S = 0.25
"""Seconds of half a cell from which on it holds too much for a line from its least to its greatest
value: a sawtooth would be a solid block. There its median is drawn."""

LineKind: TypeAlias = Literal["solid", "dashed", "dotted", "dash-dot"]
"""Interruption of a flow's line, where colours can't tell flows apart."""

LINE_KINDS: tuple[LineKind, ...] = get_args(LineKind)
"""Kinds of line, one for each flow; they repeat after the last, with other glyphs."""

_HOLD = 3.5
"""Sampling intervals for which a value holds; after that there is a gap."""

_LEAST_S = 0.1
"""Seconds of a counter below which it has no rate: single ACKs would look like peaks."""
_MOST_POINTS = 20
"""Number of moments at most at which a rate is looked at within a slice of time."""
_PEAK_POINTS = 300
"""Number of moments at which the greatest rate of a window is looked for."""


class Pen(msgspec.Struct, frozen=True):
    """How a trace is drawn."""

    ink: str
    style: Style = "line"
    glyph: str = ""
    """Drawn at the trace's head and now and then along it, so that colour is not the only cue."""
    kind: LineKind = "solid"
    lane: int = 0
    """Number of its lane, which decides the columns that carry its glyph: no trace hides
    another's."""
    ascii: str = "*"
    """What it is drawn with where there are no braille dots."""
    under: bool = False
    """Whether it lies behind all that is not: where both have a cell, it is not seen."""
    dim: bool = False
    """Whether it is drawn in a fainter ink, as what others are compared with."""

    @property
    def quiet(self) -> bool:
        """Whether it stands back, as it is not measured in this session: no head, no bold glyph."""
        return self.under or self.dim or self.style == "dashed"


class Trace(Protocol):
    """Values over time."""

    lasting: ClassVar[bool]
    """Whether it is drawn up to the right edge: a setting in force, not a measurement."""

    @property
    def pen(self) -> Pen:
        """How it is drawn."""

    @property
    def scaled(self) -> bool:
        """Whether the axis makes room for it."""

    def spans(self, edges: Sequence[float]) -> list[Span | None]:
        """Return what the values cover between each two neighbours of ``edges``."""

    def middles(self, edges: Sequence[float], *, long: bool) -> list[float | None] | None:
        """Return the value that stands for each slice; None where the whole span is drawn.

        ``long`` is whether half a cell lasts ``LONG_S`` or more.
        """

    def peak(self, start: float, end: float) -> float:
        """Return the greatest value that the axis must have room for, 0 where there is none."""


class SeriesTrace(msgspec.Struct, frozen=True):
    """A series, times a factor."""

    series: Series
    pen: Pen
    factor: float = 1.0
    interval: float = 0.02
    """Seconds between two values."""
    scaled: bool = True
    """Whether the axis makes room for it."""
    most: float = math.inf
    """Greater values were not meant: there is a gap."""
    lasting: ClassVar[bool] = False

    def spans(self, edges: Sequence[float]) -> list[Span | None]:
        """Return the extremes in each slice, joined to the value before it."""
        series, factor = self.series, self.factor
        ticks = series.timeline.ticks(edges)
        spans: list[Span | None] = []
        for at in range(len(edges) - 1):
            end = ticks[at + 1]
            start = self._held(ticks[at], edges[at])
            found = series.extremes(start, end) if end > start else None
            if found is not None and found[1] > self.most:
                found = self._meant(start, ticks[at], end)
            spans.append(found and (found[0] * factor, found[1] * factor))
        return spans

    def middles(self, edges: Sequence[float], *, long: bool) -> list[float | None] | None:
        """Return the median of each slice; in one without a value, the value before it."""
        if not long:
            return None
        series, factor, most = self.series, self.factor, self.most
        ticks = series.timeline.ticks(edges)
        found: list[float | None] = []
        for at, (start, end) in enumerate(pairwise(ticks)):
            start_of = start if start < end else self._held(start, edges[at])
            value = series.median(start_of, end, most)
            found.append(None if value is None else value * factor)
        return found

    def _held(self, tick: int, edge: float) -> int:
        """Return the tick before a slice where its value still stands at the slice's edge."""
        timeline, before = self.series.timeline, tick - 1
        stands = before >= timeline.first and timeline.time(before) > edge - _HOLD * self.interval
        return before if stands else tick

    def _meant(self, before: int, start: int, end: int) -> Span | None:
        """Return the extremes of what was meant; a slice without any is a gap."""
        if start < end and self.series.extremes(start, end, self.most) is None:
            return None
        return self.series.extremes(before, end, self.most)

    def peak(self, start: float, end: float) -> float:
        """Return the greatest value from ``start`` to ``end``."""
        if not self.scaled:
            return 0.0
        timeline = self.series.timeline
        ticks = timeline.at_or_after(start), timeline.at_or_after(end)
        found = self.series.extremes(*ticks, self.most)
        return found[1] * self.factor if found else 0.0


class TracedTrace(msgspec.Struct, frozen=True):
    """A series of samples, and the same ACK by ACK: drawn where slices are shorter than samples."""

    sampled: SeriesTrace
    traced: Series
    lasting: ClassVar[bool] = False

    @property
    def pen(self) -> Pen:
        """How it is drawn."""
        return self.sampled.pen

    @property
    def scaled(self) -> bool:
        """Whether the axis makes room for it."""
        return self.sampled.scaled

    def spans(self, edges: Sequence[float]) -> list[Span | None]:
        """Return the extremes in each slice, joined to the value before it.

        Where nothing was traced for a while, samples know better: a timer may change cwnd too.
        """
        spans = self.sampled.spans(edges)
        interval = self.sampled.interval
        if len(edges) < 2 or edges[1] - edges[0] >= interval:
            return spans
        exact = replace(self.sampled, series=self.traced).spans(edges)
        return [fine or coarse for fine, coarse in zip(exact, spans, strict=True)]

    def middles(self, edges: Sequence[float], *, long: bool) -> list[float | None] | None:
        """Return the medians of samples."""
        return self.sampled.middles(edges, long=long)

    def peak(self, start: float, end: float) -> float:
        """Return the greatest value from ``start`` to ``end``."""
        exact = replace(self.sampled, series=self.traced)
        return max(self.sampled.peak(start, end), exact.peak(start, end))


class RateTrace(msgspec.Struct, frozen=True):
    """How fast a counter grew over some seconds before each moment, times a factor."""

    series: Series
    pen: Pen
    factor: float = 1.0
    over_s: float = 1.0
    """Seconds of which a rate is the mean."""
    lasting: ClassVar[bool] = False
    scaled: ClassVar[bool] = True

    def spans(self, edges: Sequence[float]) -> list[Span | None]:
        """Return the least and the greatest rate in each slice, its ends included."""
        stretches, places = _looks(tuple(edges), self.over_s)
        every = self._rates(stretches)
        spans: list[Span | None] = []
        for first, last in pairwise(places):
            rates = [rate for rate in every[first:last] if rate is not None]
            spans.append((min(rates), max(rates)) if rates else None)
        return spans

    def middles(self, edges: Sequence[float], *, long: bool) -> list[float | None] | None:
        """Return the mean rate over each slice, and over ``over_s`` at least."""
        if not long:
            return None
        slices = [(end - max(end - start, self.over_s), end) for start, end in pairwise(edges)]
        found = self.series.rates(slices, _LEAST_S)
        return [None if rate is None else rate * self.factor for rate in found]

    def peak(self, start: float, end: float) -> float:
        """Return the greatest rate from ``start`` to ``end``."""
        step = max((end - start) / _PEAK_POINTS, 0.01)
        count = max(math.ceil((end - start) / step), 0) + 1
        ends = (min(start + step * at, end) for at in range(count))
        rates = self._rates([(t - self.over_s, t) for t in ends])
        return max((rate for rate in rates if rate is not None), default=0.0)

    def _rates(self, stretches: Sequence[tuple[float, float]]) -> list[float | None]:
        factor, found = self.factor, self.series.rates(stretches, _LEAST_S)
        return [None if rate is None else rate * factor for rate in found]


@lru_cache(maxsize=8)
def _looks(edges: tuple[float, ...], over_s: float) -> tuple[list[tuple[float, float]], list[int]]:
    """Return the stretches that rates are taken of, and where those of each slice begin and end.

    A slice is looked at twice in ``over_s`` seconds, both its ends included. All flows share it.
    """
    stretches: list[tuple[float, float]] = []
    places = [0]
    for start, end in pairwise(edges):
        points = min(math.ceil((end - start) / (over_s / 2)), _MOST_POINTS)
        ends = [start + (end - start) * at / points for at in range(points + 1)]
        stretches += [(t - over_s, t) for t in ends]
        places.append(len(stretches))
    return stretches, places


class StepTrace(msgspec.Struct, frozen=True):
    """A setting: it holds from each change to the next. None is no value."""

    changes: tuple[tuple[float, float | None], ...]
    """Moments and values from them on, oldest first."""
    pen: Pen
    weight: float = 1.0
    """Times its value the axis makes room for; 0 leaves the axis to the others."""
    lasting: ClassVar[bool] = True
    scaled: ClassVar[bool] = True

    def spans(self, edges: Sequence[float]) -> list[Span | None]:
        """Return the value that holds at the end of each slice."""
        times = [t for t, _ in self.changes]
        spans: list[Span | None] = []
        for end in edges[1:]:
            at = bisect_right(times, end - 1e-9) - 1
            value = self.changes[at][1] if at >= 0 else None
            spans.append(None if value is None else (value, value))
        return spans

    def middles(self, edges: Sequence[float], *, long: bool) -> None:
        """Return None: it is one value at a time."""
        del edges, long

    def peak(self, start: float, end: float) -> float:
        """Return the greatest value in force between ``start`` and ``end``, times the weight."""
        times = [t for t, _ in self.changes]
        first = max(bisect_right(times, start) - 1, 0)
        values = [v for t, v in self.changes[first:] if t <= end and v is not None]
        return max(values, default=0.0) * self.weight


class DotTrace(msgspec.Struct, frozen=True):
    """Single measurements, such as a ping's answers: dots, nothing between them."""

    series: Series
    pen: Pen
    factor: float = 1.0
    lasting: ClassVar[bool] = False
    scaled: ClassVar[bool] = True

    def spans(self, edges: Sequence[float]) -> list[Span | None]:
        """Return the extremes in each slice."""
        timeline = self.series.timeline
        found = [self.series.extremes(*pair) for pair in pairwise(timeline.ticks(edges))]
        return [each and (each[0] * self.factor, each[1] * self.factor) for each in found]

    def middles(self, edges: Sequence[float], *, long: bool) -> None:
        """Return None: the least and the greatest are dots, and nothing is between."""
        del edges, long

    def peak(self, start: float, end: float) -> float:
        """Return the greatest value from ``start`` to ``end``."""
        timeline = self.series.timeline
        found = self.series.extremes(timeline.at_or_after(start), timeline.at_or_after(end))
        return found[1] * self.factor if found else 0.0


class CountTrace(msgspec.Struct, frozen=True):
    """A counter, whose growth is shown at the top: a sign, or a bar where columns are long."""

    series: Series
    pen: Pen

    def growth(self, start: float, end: float) -> float:
        """Return how much the counter grew between two moments."""
        timeline = self.series.timeline
        first, last = timeline.at_or_after(start) - 1, timeline.at_or_after(end)
        found = self.series.extremes(first, last)
        return found[1] - found[0] if found else 0.0

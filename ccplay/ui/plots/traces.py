"""The lines of a plot: values over time, each as its span within a slice of time."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar, Literal, Protocol, TypeAlias

from ccplay.plots.derived import growth
from ccplay.state.series import Series

Span: TypeAlias = tuple[float, float]
"""The least and the greatest value within a slice of time."""

Manner: TypeAlias = Literal["line", "area", "dotted", "dots", "sparse", "dashed", "signs"]
"""``sparse`` is a line of every other dot, ``dashed`` one in every other cell, and over other
traces in every fourth, so that they still show; ``signs`` are cells with the pen's mark."""

_HOLD = 3.5
"""Sampling intervals for which a value holds; after that there is a gap."""

_LEAST_S = 0.1
"""Seconds of a counter below which it has no rate: single ACKs would look like peaks."""
_MOST_POINTS = 20
"""Number of moments at most at which a rate is looked at within a slice of time."""
_PEAK_POINTS = 300
"""Number of moments at which the greatest rate of a window is looked for."""


@dataclass(frozen=True, slots=True)
class Pen:
    """How a trace is drawn."""

    ink: str
    manner: Manner = "line"
    mark: str = ""
    """Drawn at the trace's head and now and then along it, so that colour is not the only cue."""
    lane: int = 0
    """Which columns carry the mark: traces in different lanes don't hide each other's."""
    ascii: str = "*"
    """What it is drawn with where there are no braille dots."""
    under: bool = False
    """Whether it lies behind all that is not: where both have a cell, it is not seen."""

    @property
    def quiet(self) -> bool:
        """Whether it stands back, as it is not measured in this session: no head, no bold mark."""
        return self.under or self.manner == "dashed"


class Trace(Protocol):
    """Values over time."""

    lasting: ClassVar[bool]
    """Whether it is drawn up to the right edge: a setting in force, not a measurement."""

    @property
    def pen(self) -> Pen:
        """How it is drawn."""

    def spans(self, edges: Sequence[float]) -> list[Span | None]:
        """Return what the values cover between each two neighbours of ``edges``."""

    def peak(self, start: float, end: float) -> float:
        """Return the greatest value that the axis must have room for, 0 where there is none."""


@dataclass(frozen=True, slots=True)
class SeriesTrace:
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
        timeline, series, factor = self.series.timeline, self.series, self.factor
        ticks = [timeline.at_or_after(edge) for edge in edges]
        spans: list[Span | None] = []
        for at in range(len(edges) - 1):
            start, end = ticks[at], ticks[at + 1]
            before = start - 1
            if (
                before >= timeline.first
                and timeline.time(before) > edges[at] - _HOLD * self.interval
            ):
                start = before
            found = series.extremes(start, end) if end > start else None
            if found is not None and found[1] > self.most:
                found = self._meant(start, ticks[at], end)
            spans.append(found and (found[0] * factor, found[1] * factor))
        return spans

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


@dataclass(frozen=True, slots=True)
class TracedTrace:
    """A series of samples, and the same ACK by ACK: drawn where slices are shorter than samples."""

    sampled: SeriesTrace
    traced: Series
    lasting: ClassVar[bool] = False

    @property
    def pen(self) -> Pen:
        """How it is drawn."""
        return self.sampled.pen

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

    def peak(self, start: float, end: float) -> float:
        """Return the greatest value from ``start`` to ``end``."""
        exact = replace(self.sampled, series=self.traced)
        return max(self.sampled.peak(start, end), exact.peak(start, end))


@dataclass(frozen=True, slots=True)
class RateTrace:
    """How fast a counter grew over some seconds before each moment, times a factor."""

    series: Series
    pen: Pen
    factor: float = 1.0
    over_s: float = 1.0
    """Seconds of which a rate is the mean."""
    lasting: ClassVar[bool] = False

    def spans(self, edges: Sequence[float]) -> list[Span | None]:
        """Return the least and the greatest rate in each slice, its ends included."""
        return [self._span(start, end) for start, end in pairwise(edges)]

    def _span(self, start: float, end: float) -> Span | None:
        points = min(math.ceil((end - start) / (self.over_s / 2)), _MOST_POINTS)
        times = (start + (end - start) * at / points for at in range(points + 1))
        rates = [rate for t in times if (rate := self._rate(t)) is not None]
        return (min(rates), max(rates)) if rates else None

    def peak(self, start: float, end: float) -> float:
        """Return the greatest rate from ``start`` to ``end``."""
        step = max((end - start) / _PEAK_POINTS, 0.01)
        count = max(math.ceil((end - start) / step), 0) + 1
        rates = (self._rate(min(start + step * at, end)) for at in range(count))
        return max((rate for rate in rates if rate is not None), default=0.0)

    def _rate(self, t: float) -> float | None:
        found = growth(self.series, t, self.over_s, _LEAST_S)
        return None if found is None else found * self.factor


@dataclass(frozen=True, slots=True)
class StepTrace:
    """A setting: it holds from each change to the next. None is no value."""

    changes: tuple[tuple[float, float | None], ...]
    """When which value began, oldest first."""
    pen: Pen
    weight: float = 1.0
    """Times its value the axis makes room for; 0 leaves the axis to the others."""
    lasting: ClassVar[bool] = True

    def spans(self, edges: Sequence[float]) -> list[Span | None]:
        """Return the value that holds at the end of each slice."""
        times = [t for t, _ in self.changes]
        spans: list[Span | None] = []
        for end in edges[1:]:
            at = bisect_right(times, end - 1e-9) - 1
            value = self.changes[at][1] if at >= 0 else None
            spans.append(None if value is None else (value, value))
        return spans

    def peak(self, start: float, end: float) -> float:
        """Return the greatest value in force between ``start`` and ``end``, times the weight."""
        times = [t for t, _ in self.changes]
        first = max(bisect_right(times, start) - 1, 0)
        values = [v for t, v in self.changes[first:] if t <= end and v is not None]
        return max(values, default=0.0) * self.weight


@dataclass(frozen=True, slots=True)
class DotTrace:
    """Single measurements, such as a ping's answers: dots, nothing between them."""

    series: Series
    pen: Pen
    factor: float = 1.0
    lasting: ClassVar[bool] = False

    def spans(self, edges: Sequence[float]) -> list[Span | None]:
        """Return the extremes in each slice."""
        timeline = self.series.timeline
        ticks = [timeline.at_or_after(edge) for edge in edges]
        found = [self.series.extremes(*pair) for pair in pairwise(ticks)]
        return [each and (each[0] * self.factor, each[1] * self.factor) for each in found]

    def peak(self, start: float, end: float) -> float:
        """Return the greatest value from ``start`` to ``end``."""
        timeline = self.series.timeline
        found = self.series.extremes(timeline.at_or_after(start), timeline.at_or_after(end))
        return found[1] * self.factor if found else 0.0


@dataclass(frozen=True, slots=True)
class ShiftedTrace:
    """A trace of another session, shifted in time to lie under this one.

    It is known up to the right edge already.
    """

    trace: Trace
    shift: float
    """Seconds from its own moments to those of the plot."""
    first: float
    """In its own time: what was before is not shown."""
    last: float
    """In its own time: what came after is not shown."""
    lasting: ClassVar[bool] = True

    @property
    def pen(self) -> Pen:
        """How it is drawn."""
        return self.trace.pen

    def spans(self, edges: Sequence[float]) -> list[Span | None]:
        """Return what the values cover between each two neighbours of ``edges``."""
        own = [edge - self.shift for edge in edges]
        return [
            span if end > self.first and start < self.last else None
            for span, (start, end) in zip(self.trace.spans(own), pairwise(own), strict=True)
        ]

    def peak(self, start: float, end: float) -> float:
        """Return the greatest value from ``start`` to ``end``."""
        first, last = max(start - self.shift, self.first), min(end - self.shift, self.last)
        return self.trace.peak(first, last) if first < last else 0.0


@dataclass(frozen=True, slots=True)
class CountTrace:
    """A counter: a sign stands at the top wherever it grew."""

    series: Series
    pen: Pen

    def grew(self, start: float, end: float) -> bool:
        """Say whether the counter grew between two moments."""
        timeline = self.series.timeline
        first, last = timeline.at_or_after(start) - 1, timeline.at_or_after(end)
        found = self.series.extremes(first, last)
        return found is not None and found[1] > found[0]

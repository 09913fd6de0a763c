"""The traces of a plot: values over time, each as its span within a slice of time."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import ClassVar, Literal, TypeAlias, TypeVar, get_args

import msgspec
from msgspec.structs import replace

from ccplay.analysis.trust import credible
from ccplay.model.series import Series
from ccplay.model.variables import Variable
from ccplay.plots.subjects import per_second, value_at
from ccplay.ui.cells import UNICODE, Glyphs
from ccplay.ui.themes import StrokeName
from ccplay.units import format_clock

# --- a value axis with round labels, linear or logarithmic, and a time axis in minutes and seconds

_HEADROOM = 1.04
_SHRINK = 0.6
"""Share of the axis below which all values must fall before it shrinks, to keep it from jumping."""

_DECADES = 4
"""Largest number of powers of ten on a logarithmic axis."""

_TIME_STEPS = (
    *(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30),
    *(60, 120, 300, 600, 900, 1800, 3600, 7200),
)
"""Distances in seconds between two labels of the time axis."""


class Scale:
    """A value axis that grows immediately and shrinks with hysteresis."""

    def __init__(self, least: float = 1.0) -> None:
        self.least = least
        """Smallest value at which the axis may end."""
        self.logarithmic = False
        self.held = False
        """Whether the axis is fixed, whatever the values."""
        self.top = 0.0
        self.step = 1.0

    def fit(self, peak: float, labels: int) -> bool:
        """Fit the axis to ``peak`` with at most ``labels`` steps; return whether it changed."""
        if self.held and self.top:
            return False
        needed = max(peak * _HEADROOM, self.least)
        step, top = _round_axis(needed, max(labels, 1))
        if self.logarithmic:
            top = _round_up(needed)
        steps = 0 if self.logarithmic else round(self.top / self.step)
        if (
            self.top
            and peak <= self.top
            and (top >= self.top or peak >= self.top * _SHRINK)
            and steps <= max(labels, 1) + 1
        ):
            return False
        changed = (step, top) != (self.step, self.top)
        self.step, self.top = step, top
        return changed

    def forget(self) -> None:
        """Let the next values determine the axis afresh, unless it is fixed."""
        if not self.held:
            self.top = 0.0

    @property
    def bottom(self) -> float:
        """Value at the bottom; a logarithmic axis draws zero and all lower values there too."""
        if not self.logarithmic:
            return 0.0
        lowest = math.floor(math.log10(self.least) + 1e-9)
        highest = math.ceil(math.log10(self.top) - 1e-9)
        return 10.0 ** max(min(lowest, highest - 1), highest - _DECADES)

    def height(self, value: float) -> float:
        """Return the height of a value: 0 at the bottom, 1 at the top, never outside."""
        if value >= self.top:
            return 1.0
        bottom = self.bottom
        if value <= bottom:
            return 0.0
        if self.logarithmic:
            return math.log(value / bottom) / math.log(self.top / bottom)
        return value / self.top

    def ticks(self) -> list[float]:
        """Return the labelled values: from zero to the top, or the powers of ten if logarithmic."""
        if self.logarithmic:
            first = round(math.log10(self.bottom))
            powers = range(first, math.floor(math.log10(self.top) + 1e-9) + 1)
            return [10.0**power for power in powers]
        return [self.step * i for i in range(round(self.top / self.step) + 1)]

    def minor_ticks(self) -> list[float]:
        """Return the unlabelled values that a logarithmic axis marks between powers of ten."""
        if not self.logarithmic:
            return []
        values = (tick * factor for tick in self.ticks() for factor in range(2, 10))
        return [value for value in values if value <= self.top * (1 + 1e-9)]


def _round_up(peak: float) -> float:
    """Return the smallest of 1, 2 and 5 times a power of ten that is at least ``peak``."""
    power = 10.0 ** math.floor(math.log10(peak) + 1e-9)
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= peak * (1 - 1e-9))


def _round_axis(peak: float, labels: int) -> tuple[float, float]:
    power = 10.0 ** math.floor(math.log10(peak / labels))
    for factor in (1, 2, 2.5, 5, 10):
        step = factor * power
        steps = math.ceil(peak / step - 1e-9)
        if steps <= labels and (factor != 2.5 or step >= 10):
            return step, step * steps
    raise AssertionError("ten steps of a power of ten hold any value")


def time_ticks(left: float, width: float, most: int) -> list[float]:
    """Return the round moments to label between ``left`` and ``left + width``."""
    step = next((each for each in _TIME_STEPS if width / each <= max(most, 1)), _TIME_STEPS[-1])
    first, end = (math.ceil(each / step - 1e-6) for each in (left, left + width))
    return [round(number * step, 2) for number in range(first, end)]


def moment(seconds: float) -> str:
    """Return a moment of ``time_ticks`` as text: ``01:05``, ``01:05.25``."""
    return format_clock(seconds + 1e-6) + f"{seconds % 1:.2f}"[1:].rstrip("0").rstrip(".")


def short(value: float) -> str:
    """Return a value in at most four characters: ``87``, ``1.2k``, ``0.5``, ``0.05``."""
    for scale, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= scale:
            scaled = value / (1e3 if unit == "k" else scale)
            return f"{scaled:.0f}{unit}" if scaled >= 9.95 else f"{scaled:.1f}{unit}"
    if value >= 10 or value == int(value):
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 1 else f"{value:.2f}".rstrip("0")


def write(variable: Variable, value: float) -> str:
    """Return a value on the axis of a variable as text for a title."""
    # So many digits can't be read at a glance.
    return short(value) if value >= 1e7 else variable.write(value)


def value_on_axis(
    series: Series | None, variable: Variable, t: float, factor: float
) -> float | None:
    """Return a variable at ``t``, times a factor; None if it is unknown."""
    value = None if series is None else value_at(series, variable, t)
    return None if value is None else value * factor


# --- the traces of a plot: values over time, each as its span within a slice of time --------------

Span: TypeAlias = tuple[float, float]
"""Lowest and highest value within a slice of time."""

Style: TypeAlias = Literal["line", "area", "layer", "dotted", "dots", "sparse", "dashed", "signs"]
"""Style of a trace: ``area`` is a line with the area below it shaded, ``layer`` a layer of a stack.

``sparse`` is a line of every other dot, ``dashed`` one in every other cell, and over other traces
in every fourth, so that they stay visible; ``signs`` are cells with the pen's glyph."""

LONG_S = 0.25
"""Smallest duration in seconds of half a cell that shows its median: a line from the lowest to the
highest value would turn a sawtooth into a solid block."""

LineKind: TypeAlias = Literal["solid", "dashed", "dotted", "dash-dot"]
"""Dash pattern of a flow's line, used if colours can't distinguish flows."""

LINE_KINDS: tuple[LineKind, ...] = get_args(LineKind)
"""Dash patterns of flows; they repeat, with other glyphs."""

HOLD = 3.5
"""Number of sampling intervals for which a value holds before there is a gap."""

LANES = 12
"""Distance in columns between two glyphs of a trace; its lane is one of these columns."""

_LEAST_S = 0.1
"""Shortest time in seconds over which a rate is computed; single ACKs would look like peaks."""
_MOST_POINTS = 20
"""Largest number of moments at which a rate is computed within a slice of time."""
_PEAK_POINTS = 300
"""Number of moments examined for the highest rate in a window."""


class Pen(msgspec.Struct, frozen=True):
    """The appearance of a trace."""

    ink: str
    style: Style = "line"
    glyph: str = ""
    """Glyph at the head of a trace and along it, which identifies the trace without colours."""
    kind: LineKind = "solid"
    lane: int = 0
    """Lane of the trace, which decides the columns that carry its glyph, so that no trace hides
    another's."""
    ascii: str = "*"
    """Character that draws the trace without braille dots."""
    under: bool = False
    """Whether the trace is hidden wherever another trace has the same cell."""
    dim: bool = False
    """Whether the trace has a fainter ink, as the background for a comparison."""

    @property
    def quiet(self) -> bool:
        """Whether the trace was not measured in this session; it has no head and no bold glyph."""
        return self.under or self.dim or self.style == "dashed"


class PlotTrace(msgspec.Struct, frozen=True):
    """Values over time; each kind of trace computes them in its own way."""

    lasting: ClassVar[bool] = False
    """Whether the trace extends to the right edge, as a setting in force does."""

    @property
    def pen(self) -> Pen:
        """Pen that draws the trace."""
        raise NotImplementedError

    @property
    def scaled(self) -> bool:
        """Whether the axis must have room for the trace."""
        return True

    def spans(self, edges: Sequence[float]) -> list[Span | None]:
        """Return the span of the values in each slice between two neighbouring ``edges``."""
        raise NotImplementedError

    def middles(self, edges: Sequence[float], *, long: bool) -> list[float | None] | None:  # noqa: ARG002
        """Return a representative value of each slice; None, as by default, draws whole spans.

        ``long`` is whether half a cell covers ``LONG_S`` or more.
        """
        return None

    def peak(self, start: float, end: float) -> float:
        """Return the highest value that must fit on the axis; 0 if there is none."""
        raise NotImplementedError


class SeriesTrace(PlotTrace, frozen=True):
    """A series of samples, times a factor; in short slices, the values at each ACK instead."""

    series: Series
    pen: Pen
    factor: float = 1.0
    interval: float = 0.02
    """Seconds between two samples."""
    scaled: bool = True
    """Whether the axis must have room for the trace."""
    most: float = math.inf
    """Largest valid value; greater values leave a gap."""
    exact: Series | None = None
    """The same values at each ACK, drawn in slices shorter than the sampling interval."""

    def spans(self, edges: Sequence[float]) -> list[Span | None]:
        """Return the lowest and highest value in each slice, joined to the value before it.

        Samples replace gaps between ACKs, because a timer may change cwnd too.
        """
        spans = self._sampled(edges)
        if self.exact is None or len(edges) < 2 or edges[1] - edges[0] >= self.interval:
            return spans
        exact = replace(self, series=self.exact, exact=None).spans(edges)
        return [fine or coarse for fine, coarse in zip(exact, spans, strict=True)]

    def _sampled(self, edges: Sequence[float]) -> list[Span | None]:
        series, factor = self.series, self.factor
        ticks = series.timeline.ticks(edges)
        spans: list[Span | None] = []
        for at in range(len(edges) - 1):
            end = ticks[at + 1]
            start = self._extend_start(ticks[at], edges[at])
            found = series.extremes(start, end) if end > start else None
            if found is not None and found[1] > self.most:
                found = self._meant(start, ticks[at], end)
            spans.append(found and (found[0] * factor, found[1] * factor))
        return spans

    def middles(self, edges: Sequence[float], *, long: bool) -> list[float | None] | None:
        """Return the median of each slice; an empty slice has the value before it."""
        if not long:
            return None
        series, factor, most = self.series, self.factor, self.most
        ticks = series.timeline.ticks(edges)
        found: list[float | None] = []
        for at, (start, end) in enumerate(pairwise(ticks)):
            start_of = start if start < end else self._extend_start(start, edges[at])
            value = series.median(start_of, end, most)
            found.append(None if value is None else value * factor)
        return found

    def _extend_start(self, tick: int, edge: float) -> int:
        """Return the tick before a slice if its value still holds at the slice's edge."""
        timeline, before = self.series.timeline, tick - 1
        stands = before >= timeline.first and timeline.time(before) > edge - HOLD * self.interval
        return before if stands else tick

    def _meant(self, before: int, start: int, end: int) -> Span | None:
        """Return the lowest and highest valid value; a slice without any is a gap."""
        if start < end and self.series.extremes(start, end, self.most) is None:
            return None
        return self.series.extremes(before, end, self.most)

    def peak(self, start: float, end: float) -> float:
        """Return the highest value from ``start`` to ``end``."""
        if not self.scaled:
            return 0.0
        timeline = self.series.timeline
        ticks = timeline.at_or_after(start), timeline.at_or_after(end)
        found = self.series.extremes(*ticks, self.most)
        peak = found[1] * self.factor if found else 0.0
        if self.exact is None:
            return peak
        return max(peak, replace(self, series=self.exact, exact=None).peak(start, end))


class RateTrace(PlotTrace, frozen=True):
    """The rate at which a counter grew in the seconds before each moment, times a factor."""

    series: Series
    pen: Pen
    factor: float = 1.0
    over_s: float = 1.0
    """Seconds over which a rate is averaged."""

    def spans(self, edges: Sequence[float]) -> list[Span | None]:
        """Return the lowest and highest rate in each slice, including both its ends."""
        stretches, places = _looks(tuple(edges), self.over_s)
        every = self._rates(stretches)
        spans: list[Span | None] = []
        for first, last in pairwise(places):
            rates = [rate for rate in every[first:last] if rate is not None]
            spans.append((min(rates), max(rates)) if rates else None)
        return spans

    def middles(self, edges: Sequence[float], *, long: bool) -> list[float | None] | None:
        """Return the mean rate over each slice, or over the last ``over_s`` seconds if longer."""
        if not long:
            return None
        slices = [(end - max(end - start, self.over_s), end) for start, end in pairwise(edges)]
        found = self.series.rates(slices, _LEAST_S)
        return [None if rate is None else rate * self.factor for rate in found]

    def peak(self, start: float, end: float) -> float:
        """Return the highest rate from ``start`` to ``end``."""
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
    """Return the intervals over which rates are computed, and the index of each slice's first one.

    A slice has two intervals per ``over_s`` seconds, and at least two. All flows share the
    intervals.
    """
    stretches: list[tuple[float, float]] = []
    places = [0]
    for start, end in pairwise(edges):
        points = min(math.ceil((end - start) / (over_s / 2)), _MOST_POINTS)
        ends = [start + (end - start) * at / points for at in range(points + 1)]
        stretches += [(t - over_s, t) for t in ends]
        places.append(len(stretches))
    return stretches, places


def trace_of(
    series: Series,
    variable: Variable,
    pen: Pen,
    factor: float,
    interval: float,
    *,
    scaled: bool = True,
    exact: Series | None = None,
) -> PlotTrace:
    """Return the trace of a sampled variable; a rate has neither ``scaled`` nor ``exact``."""
    if variable.rate is not None:
        return RateTrace(series, pen, factor * per_second(variable), variable.rate.over_s)
    most = credible(variable.name)
    return SeriesTrace(series, pen, factor, interval, scaled=scaled, most=most, exact=exact)


class StepTrace(PlotTrace, frozen=True):
    """A setting, which is in force from each change to the next."""

    changes: tuple[tuple[float, float | None], ...]
    """Moments and the values from then on, oldest first; None is no value."""
    pen: Pen
    weight: float = 1.0
    """Factor of the value that must fit on the axis; 0 leaves the axis to other traces."""
    lasting: ClassVar[bool] = True

    def spans(self, edges: Sequence[float]) -> list[Span | None]:
        """Return the value in force at the end of each slice."""
        times = [t for t, _ in self.changes]
        spans: list[Span | None] = []
        for end in edges[1:]:
            at = bisect_right(times, end - 1e-9) - 1
            value = self.changes[at][1] if at >= 0 else None
            spans.append(None if value is None else (value, value))
        return spans

    def peak(self, start: float, end: float) -> float:
        """Return the highest value in force from ``start`` to ``end``, times the weight."""
        times = [t for t, _ in self.changes]
        first = max(bisect_right(times, start) - 1, 0)
        values = [v for t, v in self.changes[first:] if t <= end and v is not None]
        return max(values, default=0.0) * self.weight


class DotTrace(PlotTrace, frozen=True):
    """Single measurements, such as replies to a ping, as unconnected dots."""

    series: Series
    pen: Pen
    factor: float = 1.0

    def spans(self, edges: Sequence[float]) -> list[Span | None]:
        """Return the lowest and highest value in each slice."""
        timeline = self.series.timeline
        found = self.series.thinned(timeline.ticks(edges))
        return [each and (each[0] * self.factor, each[1] * self.factor) for each in found]

    def peak(self, start: float, end: float) -> float:
        """Return the highest value from ``start`` to ``end``."""
        timeline = self.series.timeline
        found = self.series.extremes(timeline.at_or_after(start), timeline.at_or_after(end))
        return found[1] * self.factor if found else 0.0


class CountTrace(msgspec.Struct, frozen=True):
    """A counter whose growth is shown at the top: as a sign, or as a bar in long columns."""

    series: Series
    pen: Pen

    def growth(self, start: float, end: float) -> float:
        """Return the growth of the counter between two moments."""
        timeline = self.series.timeline
        first, last = timeline.at_or_after(start) - 1, timeline.at_or_after(end)
        found = self.series.extremes(first, last)
        return found[1] - found[0] if found else 0.0


# --- the content of a canvas at one moment: traces over a time window, marks and colours ----------


class AxisInks(msgspec.Struct, frozen=True):
    """Colours of axes and marks."""

    axis: str = ""
    grid: str = ""
    text: str = ""
    muted: str = ""
    mark: str = ""
    cursor: str = ""
    ghost: str = ""
    ground: str = ""
    """Colour of the background, which is mixed into faint inks."""


class Picture(msgspec.Struct, frozen=True):
    """The whole content of a plot at one moment."""

    left: float
    """Moment at the left edge, in seconds."""
    width: float
    """Width of the window in seconds."""
    until: float
    """Moment in seconds after which nothing is drawn."""
    traces: tuple[PlotTrace, ...] = ()
    """Traces from bottom to top; those behind all others are first."""
    counts: tuple[CountTrace, ...] = ()
    marks: tuple[float, ...] = ()
    """Moments at which a command took effect."""
    ghost_marks: tuple[float, ...] = ()
    """Moments of commands in the ghost."""
    cursor: float | None = None
    pointer: float | None = None
    """Moment that the presenter points at; None if there is none."""
    region: tuple[float, float] | None = None
    """Lower and upper end of a marked region on the value axis."""
    hint: tuple[str, ...] = ()
    """Text shown in the middle."""
    least: float = 1.0
    """Smallest value at which the value axis may end."""
    unit: str = ""
    """Unit of the value axis, shown in its corner if it fits."""
    stroke: StrokeName = "normal"
    """Thickness of the lines."""
    glyphs: Glyphs = UNICODE
    inks: AxisInks = msgspec.field(default_factory=AxisInks)

    def column(self, t: float, columns: int) -> int:
        """Return the index of the column that contains a moment, counted from ``left``.

        The index of a moment outside the window is below 0, or ``columns`` or more.
        """
        return math.floor((t - self.left) / self.width * columns)

    def same_page(self, other: Picture) -> bool:
        """Return whether the drawing of ``other`` remains valid, except its newest columns."""
        return (
            (self.left, self.width, self.hint) == (other.left, other.width, other.hint)
            and (self.traces, self.counts, self.inks) == (other.traces, other.counts, other.inks)
            and (self.ghost_marks, self.region) == (other.ghost_marks, other.region)
            and (self.glyphs, self.stroke) == (other.glyphs, other.stroke)
            and self.until >= other.until
        )


# --- the stroke of each trace in each slice of time, and a band in long slices --------------------
# A slice shorter than ``LONG_S`` shows the whole span of its values. In longer slices that would be
# a solid block, so the line joins the medians, and a band extends from the lowest to the highest
# value. Of many traces only the uppermost, the selected one, has a band: more would hide the lines.

T = TypeVar("T")

_CROWD = 3
"""Number of traces above which only the uppermost one has a band."""


class Stroke(msgspec.Struct, frozen=True):
    """The stroke of one trace, slice by slice; None in slices in which nothing is drawn."""

    trace: PlotTrace
    lines: Sequence[Span | None]
    bands: Sequence[Span | None]
    levels: Sequence[float | None]
    """Heights of the trace's glyph, by slice."""
    drawn_only: bool
    """Whether the axis needs room only for what is drawn, not for every value."""

    def peak(self, start: float, end: float) -> float:
        """Return the highest value between two moments that must fit on the axis."""
        if not self.trace.scaled:
            return 0.0
        if not self.drawn_only:
            return self.trace.peak(start, end)
        return max((span[1] for span in (*self.lines, *self.bands) if span), default=0.0)


def is_long(seconds: float) -> bool:
    """Return whether columns of this many seconds show medians and the growth of counters.

    The answer is the same with and without braille, so that characters do not change the content.
    """
    return seconds / 2 >= LONG_S


def read(picture: Picture, columns: int, across: int, first: int, last: int) -> list[Stroke]:
    """Return the strokes of the traces in the columns ``first`` to ``last`` (not included).

    The picture has ``columns`` columns of ``across`` slices each.
    """
    slot, long = picture.width / columns / across, is_long(picture.width / columns)
    first, last = first * across, last * across
    # A line of medians is joined to the slice before.
    lead = min(first, 1) if long else 0
    edges = [picture.left + slot * at for at in range(first - lead, last + 1)]
    # The future is empty: a value holds only until the newest moment.
    known = [edge for edge in edges if edge < picture.until]
    known += [picture.until + 1e-6] * (len(known) < len(edges))
    drawn = []
    for trace in picture.traces:
        used = edges if trace.lasting else known
        middles = trace.middles(used, long=long)
        drawn.append((trace, used, middles))
    banded = [
        trace
        for trace, _, middles in drawn
        if middles is not None and trace.pen.style in ("line", "area") and not trace.pen.quiet
    ]
    if len(banded) > _CROWD:
        del banded[:-1]
    count = last - first
    strokes = []
    for trace, used, middles in drawn:
        if middles is None:
            spans = _filled(trace.spans(used)[lead:], count)
            levels = [span and (span[0] + span[1]) / 2 for span in spans]
            strokes.append(Stroke(trace, spans, [None] * count, levels, drawn_only=False))
            continue
        bands: list[Span | None] = []
        if any(each is trace for each in banded):
            bands = trace.spans(used)[lead:]
        joined = _joined(middles)[lead:]
        strokes.append(
            Stroke(
                trace,
                _filled(joined, count),
                _filled(bands, count),
                _filled(middles[lead:], count),
                drawn_only=long,
            )
        )
    return strokes


def _joined(middles: Sequence[float | None]) -> list[Span | None]:
    """Return each slice's span of a line, extended to the value of the slice before."""
    spans: list[Span | None] = []
    before: float | None = None
    for value in middles:
        start = value if before is None else before
        spans.append(
            None if value is None or start is None else (min(start, value), max(start, value))
        )
        before = value
    return spans


def _filled(values: list[T | None], count: int) -> list[T | None]:
    return values + [None] * (count - len(values))

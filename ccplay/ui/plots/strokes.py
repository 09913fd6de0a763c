"""The stroke of each trace in each slice of time: a line, and for long slices a band behind it.

A slice shorter than ``LONG_S`` shows the whole span of its values. In longer slices that would be a
solid block, so the line joins the medians, and a band extends from the lowest to the highest value.
Of many traces only the uppermost, the selected one, has a band: more would hide the lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from ccplay.ui.plots.picture import Picture
from ccplay.ui.plots.traces import LONG_S, Span, Trace

T = TypeVar("T")

_CROWD = 3
"""Number of traces above which only the uppermost one has a band."""


class Stroke(msgspec.Struct, frozen=True):
    """The stroke of one trace, slice by slice; None in slices in which nothing is drawn."""

    trace: Trace
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
    banded = [trace for trace, _, middles in drawn if middles is not None and _has_band(trace)]
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


def _has_band(trace: Trace) -> bool:
    return trace.pen.style in ("line", "area") and not trace.pen.quiet


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

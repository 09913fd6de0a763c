"""Traces derived from others: shifted in time, of a group of flows, or stacked."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar

import msgspec
from msgspec.structs import replace

from ccplay.ui.plots.traces import Pen, Span, Trace

_PEAK_SLICES = 60
"""Number of slices examined for the highest sum in a window."""


class ShiftedTrace(msgspec.Struct, frozen=True):
    """A trace of a ghost, shifted in time to lie under those of the session.

    All its values up to the right edge are already known.
    """

    trace: Trace
    shift: float
    """Seconds to add to the trace's own moments to obtain those of the plot."""
    first: float
    """First moment shown, in the trace's own time."""
    last: float
    """Last moment shown, in the trace's own time."""
    lasting: ClassVar[bool] = True

    @property
    def pen(self) -> Pen:
        """Pen that draws the trace."""
        return self.trace.pen

    @property
    def scaled(self) -> bool:
        """Whether the axis must have room for the trace."""
        return self.trace.scaled

    def spans(self, edges: Sequence[float]) -> list[Span | None]:
        """Return the span of the values in each slice between two neighbouring ``edges``."""
        own = [edge - self.shift for edge in edges]
        return [
            span if end > self.first and start < self.last else None
            for span, (start, end) in zip(self.trace.spans(own), pairwise(own), strict=True)
        ]

    def middles(self, edges: Sequence[float], *, long: bool) -> list[float | None] | None:
        """Return a representative value of each slice; None if whole spans are drawn."""
        own = [edge - self.shift for edge in edges]
        found = self.trace.middles(own, long=long)
        if found is None:
            return None
        return [
            value if end > self.first and start < self.last else None
            for value, (start, end) in zip(found, pairwise(own), strict=True)
        ]

    def peak(self, start: float, end: float) -> float:
        """Return the highest value from ``start`` to ``end``."""
        first, last = max(start - self.shift, self.first), min(end - self.shift, self.last)
        return self.trace.peak(first, last) if first < last else 0.0


class GroupTrace(msgspec.Struct, frozen=True):
    """Several traces drawn as one: their mean as a line, over a band from lowest to highest."""

    parts: tuple[Trace, ...]
    pen: Pen
    lasting: ClassVar[bool] = False
    scaled: ClassVar[bool] = True

    def spans(self, edges: Sequence[float]) -> list[Span | None]:
        """Return the lowest and the highest value of any part in each slice."""
        columns = zip(*(each.spans(edges) for each in self.parts), strict=True)
        known = ([span for span in column if span] for column in columns)
        return [
            (min(low for low, _ in spans), max(high for _, high in spans)) if spans else None
            for spans in known
        ]

    def middles(self, edges: Sequence[float], *, long: bool) -> list[float | None]:
        """Return the mean in each slice of those parts that have a value there."""
        columns = zip(*(levels(each, edges, long=long) for each in self.parts), strict=True)
        known = ([value for value in column if value is not None] for column in columns)
        return [sum(values) / len(values) if values else None for values in known]

    def peak(self, start: float, end: float) -> float:
        """Return the highest value of any part."""
        return max((each.peak(start, end) for each in self.parts), default=0.0)


class StackedTrace(msgspec.Struct, frozen=True):
    """A layer of a stack, as high as its own value, on top of the sum of the layers below."""

    own: Trace
    below: tuple[Trace, ...]
    """Layers below this one, from bottom to top; one without a value in a slice counts as zero."""
    sums: Sums
    """Cache shared by the layers of a stack, so that each trace is read once."""
    lasting: ClassVar[bool] = False
    scaled: ClassVar[bool] = True

    @property
    def pen(self) -> Pen:
        """Pen that draws a layer, whatever the style of the trace's own pen."""
        return replace(self.own.pen, style="layer")

    def spans(self, edges: Sequence[float]) -> list[Span | None]:
        """Return the lower and the upper edge of the layer in each slice."""
        parts = [self.sums.levels(each, edges) for each in self.below]
        bases = [sum(filter(None, column)) for column in zip(*parts, strict=True)]
        own = self.sums.levels(self.own, edges)
        return [
            None if value is None else (base, base + value)
            for base, value in zip(bases or [0.0] * len(own), own, strict=True)
        ]

    def middles(self, edges: Sequence[float], *, long: bool) -> None:
        """Return None, because a layer has no line within it."""
        del edges, long

    def peak(self, start: float, end: float) -> float:
        """Return the highest sum from ``start`` to ``end``, of ``_PEAK_SLICES`` slices."""
        step = (end - start) / _PEAK_SLICES
        if step <= 0:
            return 0.0
        edges = [start + step * at for at in range(_PEAK_SLICES + 1)]
        return max((span[1] for span in self.spans(edges) if span), default=0.0)


class Sums:
    """Cached values of a stack's layers in the slices requested last."""

    def __init__(self) -> None:
        self._edges: list[float] = []
        self._levels: dict[int, list[float | None]] = {}

    def __eq__(self, other: object) -> bool:
        """Return whether ``other`` is a cache, too; contents follow from the layers."""
        return isinstance(other, Sums)

    __hash__ = None  # type: ignore[assignment]

    def levels(self, trace: Trace, edges: Sequence[float]) -> list[float | None]:
        """Return one value per slice of ``trace``, which belongs to the stack."""
        if edges != self._edges:
            self._edges = list(edges)
            self._levels.clear()
        if (found := self._levels.get(id(trace))) is None:
            found = self._levels[id(trace)] = levels(trace, edges, long=True)
        return found


def stacked(parts: Sequence[Trace]) -> list[StackedTrace]:
    """Return ``parts`` as a stack, from bottom to top."""
    sums = Sums()
    return [StackedTrace(each, tuple(parts[:at]), sums) for at, each in enumerate(parts)]


def levels(trace: Trace, edges: Sequence[float], *, long: bool) -> list[float | None]:
    """Return one value per slice: its middle, or else the mean of its lowest and highest value."""
    found = trace.middles(edges, long=long)
    if found is not None:
        return found
    return [span and (span[0] + span[1]) / 2 for span in trace.spans(edges)]

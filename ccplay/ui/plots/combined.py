"""Traces made of others: moved in time, of a group of flows, one upon the other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar

import msgspec
from msgspec.structs import replace

from ccplay.ui.plots.traces import Pen, Span, Trace

_PEAK_SLICES = 60
"""Number of slices in which the greatest sum of a window is looked for."""


class ShiftedTrace(msgspec.Struct, frozen=True):
    """A trace of another session, shifted in time to lie under this one.

    It is known up to the right edge already.
    """

    trace: Trace
    shift: float
    """Seconds from its own moments to those of the plot."""
    first: float
    """First moment that is shown, in its own time."""
    last: float
    """Last moment that is shown, in its own time."""
    lasting: ClassVar[bool] = True

    @property
    def pen(self) -> Pen:
        """How it is drawn."""
        return self.trace.pen

    @property
    def scaled(self) -> bool:
        """Whether the axis makes room for it."""
        return self.trace.scaled

    def spans(self, edges: Sequence[float]) -> list[Span | None]:
        """Return what the values cover between each two neighbours of ``edges``."""
        own = [edge - self.shift for edge in edges]
        return [
            span if end > self.first and start < self.last else None
            for span, (start, end) in zip(self.trace.spans(own), pairwise(own), strict=True)
        ]

    def middles(self, edges: Sequence[float], *, long: bool) -> list[float | None] | None:
        """Return the value that stands for each slice where slices are long."""
        own = [edge - self.shift for edge in edges]
        found = self.trace.middles(own, long=long)
        if found is None:
            return None
        return [
            value if end > self.first and start < self.last else None
            for value, (start, end) in zip(found, pairwise(own), strict=True)
        ]

    def peak(self, start: float, end: float) -> float:
        """Return the greatest value from ``start`` to ``end``."""
        first, last = max(start - self.shift, self.first), min(end - self.shift, self.last)
        return self.trace.peak(first, last) if first < last else 0.0


class GroupTrace(msgspec.Struct, frozen=True):
    """Several traces as one: the mean as a line, over a band from the least to the greatest."""

    parts: tuple[Trace, ...]
    pen: Pen
    lasting: ClassVar[bool] = False
    scaled: ClassVar[bool] = True

    def spans(self, edges: Sequence[float]) -> list[Span | None]:
        """Return the least and the greatest value of any part in each slice."""
        columns = zip(*(each.spans(edges) for each in self.parts), strict=True)
        known = ([span for span in column if span] for column in columns)
        return [
            (min(low for low, _ in spans), max(high for _, high in spans)) if spans else None
            for spans in known
        ]

    def middles(self, edges: Sequence[float], *, long: bool) -> list[float | None]:
        """Return the mean of the parts in each slice, of those that have a value there."""
        columns = zip(*(levels(each, edges, long=long) for each in self.parts), strict=True)
        known = ([value for value in column if value is not None] for column in columns)
        return [sum(values) / len(values) if values else None for values in known]

    def peak(self, start: float, end: float) -> float:
        """Return the greatest value of any part."""
        return max((each.peak(start, end) for each in self.parts), default=0.0)


class StackedTrace(msgspec.Struct, frozen=True):
    """A trace that adds to those below it: it covers what it adds, from their sum upwards."""

    own: Trace
    below: tuple[Trace, ...]
    """Traces below it, from the bottom to the top; one without a value in a slice adds nothing
    there."""
    sums: Sums
    """Shared by the traces of a stack, so that each part is read once."""
    lasting: ClassVar[bool] = False
    scaled: ClassVar[bool] = True

    @property
    def pen(self) -> Pen:
        """How it is drawn: a layer, whatever its own pen's style."""
        return replace(self.own.pen, style="layer")

    def spans(self, edges: Sequence[float]) -> list[Span | None]:
        """Return the sum below and the sum with its own value in each slice."""
        parts = [self.sums.levels(each, edges) for each in self.below]
        bases = [sum(filter(None, column)) for column in zip(*parts, strict=True)]
        own = self.sums.levels(self.own, edges)
        return [
            None if value is None else (base, base + value)
            for base, value in zip(bases or [0.0] * len(own), own, strict=True)
        ]

    def middles(self, edges: Sequence[float], *, long: bool) -> None:
        """Return None: the whole span is the layer."""
        del edges, long

    def peak(self, start: float, end: float) -> float:
        """Return the greatest sum from ``start`` to ``end``, of the middles of slices."""
        step = (end - start) / _PEAK_SLICES
        if step <= 0:
            return 0.0
        edges = [start + step * at for at in range(_PEAK_SLICES + 1)]
        return max((span[1] for span in self.spans(edges) if span), default=0.0)


class Sums:
    """What the parts of a stack are worth in the slices that were asked for last."""

    def __init__(self) -> None:
        self._edges: list[float] = []
        self._levels: dict[int, list[float | None]] = {}

    def __eq__(self, other: object) -> bool:
        """Whether the other is one, too: what it holds follows from the parts."""
        return isinstance(other, Sums)

    __hash__ = None  # type: ignore[assignment]

    def levels(self, trace: Trace, edges: Sequence[float]) -> list[float | None]:
        """Return one value a slice of ``trace``, which belongs to the stack."""
        if edges != self._edges:
            self._edges = list(edges)
            self._levels.clear()
        if (found := self._levels.get(id(trace))) is None:
            found = self._levels[id(trace)] = levels(trace, edges, long=True)
        return found


def stacked(parts: Sequence[Trace]) -> list[StackedTrace]:
    """Return ``parts`` one upon the other, from the bottom to the top."""
    sums = Sums()
    return [StackedTrace(each, tuple(parts[:at]), sums) for at, each in enumerate(parts)]


def levels(trace: Trace, edges: Sequence[float], *, long: bool) -> list[float | None]:
    """Return one value a slice: its middle, or half way between its least and its greatest."""
    found = trace.middles(edges, long=long)
    if found is not None:
        return found
    return [span and (span[0] + span[1]) / 2 for span in trace.spans(edges)]

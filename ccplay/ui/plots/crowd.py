"""Traces of several others together: their mean, from the least to the greatest, their stack."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import ClassVar

from ccplay.ui.plots.traces import Pen, Span, Trace

_SLICES = 100
"""Number of slices of a window in which the greatest of a sum is looked for."""
_SLICE_S = 0.02
"""Seconds of such a slice at least."""


Join = Callable[[Sequence[Span]], Span]
"""Makes one span of several, at least one."""


def mean(spans: Sequence[Span]) -> Span:
    """Return the mean of several."""
    low, high = total(spans)
    return low / len(spans), high / len(spans)


def extent(spans: Sequence[Span]) -> Span:
    """Return the span from the least to the greatest of several."""
    return min(low for low, _ in spans), max(high for _, high in spans)


def total(spans: Sequence[Span]) -> Span:
    """Return the sum of several."""
    return sum(low for low, _ in spans), sum(high for _, high in spans)


@dataclass(frozen=True, slots=True)
class JointTrace:
    """What several traces are together, of those that have a value."""

    parts: tuple[Trace, ...]
    join: Join
    pen: Pen
    lasting: ClassVar[bool] = False

    def spans(self, edges: Sequence[float]) -> list[Span | None]:
        """Return what the values together cover between each two neighbours of ``edges``."""
        rows = zip_longest(*(part.spans(edges) for part in self.parts))
        known = ([each for each in row if each is not None] for row in rows)
        return [self.join(each) if each else None for each in known]

    def peak(self, start: float, end: float) -> float:
        """Return the greatest value that the axis must have room for."""
        return _peak(self.spans, start, end)


@dataclass(frozen=True, slots=True)
class Stack:
    """Traces one on top of the other; the first lies on the axis."""

    parts: tuple[Trace, ...]
    _known: dict[tuple[float, ...], list[list[Span | None]]] = field(
        default_factory=dict, compare=False, repr=False
    )

    def levels(self, edges: Sequence[float]) -> list[list[Span | None]]:
        """Return for each part what it and those below cover between the edges."""
        key = tuple(edges)
        if (found := self._known.get(key)) is None:
            # Each level of a frame is asked for the same edges.
            self._known.clear()
            found = self._known[key] = self._levels(edges)
        return found

    def _levels(self, edges: Sequence[float]) -> list[list[Span | None]]:
        below: list[Span | None] = [None] * max(len(edges) - 1, 0)
        levels: list[list[Span | None]] = []
        for part in self.parts:
            spans = part.spans(edges)
            spans += [None] * (len(below) - len(spans))
            below = [_sum(one, other) for one, other in zip(below, spans, strict=True)]
            levels.append(below)
        return levels


@dataclass(frozen=True, slots=True)
class LevelTrace:
    """A part of a stack: the sum of it and all below it, filled down to the axis."""

    stack: Stack
    at: int
    """Its place, from 0 at the bottom."""
    pen: Pen
    lasting: ClassVar[bool] = False

    def spans(self, edges: Sequence[float]) -> list[Span | None]:
        """Return what the sum covers between each two neighbours of ``edges``."""
        return self.stack.levels(edges)[self.at]

    def peak(self, start: float, end: float) -> float:
        """Return the greatest sum of all parts for the uppermost: the others lie below it."""
        if self.at < len(self.stack.parts) - 1:
            return 0.0
        return _peak(self.spans, start, end)


def stacked(traces: Sequence[tuple[Trace, Pen]]) -> list[Trace]:
    """Return traces as a stack, the first at its bottom.

    Those below are painted over those above: each cell has the colour of what reaches it first.
    """
    stack = Stack(tuple(trace for trace, _ in traces))
    levels = [LevelTrace(stack, at, pen) for at, (_, pen) in enumerate(traces)]
    return [*reversed(levels)]


def _sum(one: Span | None, other: Span | None) -> Span | None:
    if one is None or other is None:
        return one or other
    return total((one, other))


def _peak(spans: Callable[[Sequence[float]], list[Span | None]], start: float, end: float) -> float:
    if end <= start:
        return 0.0
    slices = min(max(int((end - start) / _SLICE_S), 1), _SLICES)
    edges = [start + (end - start) * at / slices for at in range(slices + 1)]
    return max((each[1] for each in spans(edges) if each), default=0.0)

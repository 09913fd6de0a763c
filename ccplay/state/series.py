"""Numbers over time, bounded, with a min/max pyramid: zooming out never loses a peak."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import cast

MISSING = math.nan
"""Placeholder of an unknown value; plots leave a gap there."""

_FANOUT = 16

_SPREAD = 31
"""Number of values of which a median is taken at most."""

_COUNTED = 128
"""Number of values, at least, that are counted where there are as many."""

_PLACES = tuple((at + at * 0.618034 % 1) / _SPREAD for at in range(_SPREAD))
"""Where they lie, as shares of a stretch: one in each of its parts, never at an even step, which
would meet a sawtooth of that period always at one height."""


class Timeline:
    """The moments, in seconds, at which the series that share it have their values.

    A moment's *tick* is its number since the start. It stays valid when old moments are removed: at
    ``limit`` the oldest quarter is discarded.
    """

    __slots__ = ("_first", "_moments", "limit")

    def __init__(self, limit: int = 1 << 20) -> None:
        self.limit = limit
        self._first = 0
        self._moments = array("d")

    def append(self, t: float) -> int:
        """Add a moment, not earlier than the last, and return its tick."""
        self._moments.append(t)
        self._forget()
        return self.end - 1

    def extend(self, moments: Iterable[float]) -> int:
        """Add moments in order and return the tick of the first."""
        tick = self.end
        self._moments.extend(moments)
        self._forget()
        return tick

    @property
    def first(self) -> int:
        """The oldest tick still known."""
        return self._first

    @property
    def end(self) -> int:
        """One past the newest tick."""
        return self._first + len(self._moments)

    def time(self, tick: int) -> float:
        """Return the moment of a tick between ``first`` and ``end``."""
        return self._moments[tick - self._first]

    def moments(self, start: int, end: int) -> Sequence[float]:
        """Return the moments of ticks ``start`` to ``end`` (not included), both known."""
        return self._moments[start - self._first : end - self._first]

    def at_or_after(self, t: float) -> int:
        """Return the first tick that is not before ``t``; ``end`` if there is none."""
        return self._first + bisect_left(self._moments, t)

    def before_or_at(self, t: float) -> int:
        """Return the last tick that is not after ``t``; ``first - 1`` if there is none."""
        return self._first + bisect_right(self._moments, t) - 1

    def _forget(self) -> None:
        while len(self._moments) > self.limit:
            forgotten = self.limit // 4
            del self._moments[:forgotten]
            self._first += forgotten


class Series:
    """One value a tick of its timeline, from the tick at which it began.

    ``extremes`` costs O(log n) for any width, and O(width) the first time.
    """

    __slots__ = ("_first", "_highs", "_lows", "_values", "timeline")

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self._first = -1
        self._values = array("f")
        self._lows: list[array[float]] = []
        self._highs: list[array[float]] = []

    def put(self, tick: int, value: float | None) -> None:
        """Set the value at ``tick``, later than any before; ticks skipped are ``MISSING``."""
        values = self._values
        if tick != self._first + len(values):
            self._skip_to(tick)
        values.append(MISSING if value is None else value)
        if len(values) > self.timeline.limit:
            self._forget()

    def extend(self, tick: int, floats: bytes) -> None:
        """Set as many values as there are C floats, the first at ``tick``."""
        values = self._values
        if tick != self._first + len(values):
            self._skip_to(tick)
        values.frombytes(floats)
        if len(values) > self.timeline.limit:
            self._forget()

    def extend_counts(self, tick: int, counts: Sequence[float | None]) -> None:
        """Set the values from ``tick`` on, each at the next one."""
        values = self._values
        if tick != self._first + len(values):
            self._skip_to(tick)
        try:
            values.fromlist(cast("list[float]", [*counts]))
        except TypeError:
            # Unknown values; nothing was added.
            values.extend(MISSING if each is None else each for each in counts)
        if len(values) > self.timeline.limit:
            self._forget()

    @property
    def first(self) -> int:
        """The tick of the oldest value."""
        return self._first

    @property
    def end(self) -> int:
        """One past the tick of the newest value."""
        return self._first + len(self._values)

    @property
    def last(self) -> float | None:
        """The newest value; None if it is missing or there is none yet."""
        return self.at(self.end - 1)

    def at(self, tick: int) -> float | None:
        """Return the value at ``tick``; None if it is unknown."""
        index = tick - self._first
        if not 0 <= index < len(self._values):
            return None
        value = self._values[index]
        return None if value != value else value

    def latest(self, tick: int) -> float | None:
        """Return the newest value at or before ``tick`` within the series, None without one."""
        return self.at(min(tick, self.end - 1))

    def extremes(self, start: int, end: int, most: float = math.inf) -> tuple[float, float] | None:
        """Return the least and the greatest value of ticks ``start`` to ``end`` (not included).

        Values above ``most`` are ignored.
        """
        found = self._extremes(start, end)
        if found is None or found[1] <= most:
            return found
        values = [value for value in self.values(start, end) if value <= most]
        return (min(values), max(values)) if values else None

    def median(self, start: int, end: int, most: float = math.inf) -> float | None:
        """Return the median of ticks ``start`` to ``end`` (not included), None without a value.

        Of more than 31 ticks it is the median of 31 spread over them: its rank is half way up
        within some 10 % of the values. Values above ``most`` are left out.
        """
        index = max(start - self._first, 0)
        ticks = min(end - self._first, len(self._values)) - index
        values = self._values
        # NaN compares false to everything, so a missing value is left out too.
        if ticks <= _SPREAD:
            found = [value for value in values[index : index + max(ticks, 0)] if value <= most]
        else:
            found = [v for at in _PLACES if (v := values[index + int(at * ticks)]) <= most]
        found.sort()
        return found[len(found) // 2] if found else None

    def shares(self, start: int, end: int, numbers: int) -> tuple[float, ...] | None:
        """Return how large a share of ticks ``start`` to ``end`` (not included) has each number.

        Numbers count from 0. Of 256 ticks or more every so many is counted. None without a value.
        """
        index = max(start - self._first, 0)
        stop = min(end - self._first, len(self._values))
        values = self._values[index : max(stop, index) : max((stop - index) // _COUNTED, 1)]
        counts = [values.count(number) for number in range(numbers)]
        total = sum(counts)
        return tuple(count / total for count in counts) if total else None

    def _extremes(self, start: int, end: int) -> tuple[float, float] | None:
        index = max(start - self._first, 0)
        stop = min(end - self._first, len(self._values))
        if stop - index <= 2 * _FANOUT:
            return _extremes(self._values[index:stop]) if index < stop else None
        # The pyramid of a recording is built step by step, not all at once.
        self._grow_pyramid(4 * (stop - index))
        if len(self._lows[0]) < stop // _FANOUT:
            return _extremes(self._values[index:stop])
        low, high = math.inf, -math.inf
        while index < stop:
            level, width = 0, 1
            # Climb while a whole aligned block fits.
            while (
                level < len(self._lows)
                and index % (width * _FANOUT) == 0
                and index + width * _FANOUT <= stop
                and index // (width * _FANOUT) < len(self._lows[level])
            ):
                level += 1
                width *= _FANOUT
            if level:
                low = min(low, self._lows[level - 1][index // width])
                high = max(high, self._highs[level - 1][index // width])
            else:
                value = self._values[index]
                # NaN compares false to everything, so a missing value changes nothing.
                low = min(low, value)
                high = max(high, value)
            index += width
        return None if high < low else (low, high)

    def values(self, start: int, end: int) -> list[float]:
        """Return the known values of ticks ``start`` to ``end`` (not included)."""
        window = self._values[max(start - self._first, 0) : max(end - self._first, 0)]
        return [value for value in window if value == value]

    def all(self) -> list[float]:
        """Return all known values."""
        return [value for value in self._values if value == value]

    @property
    def newest(self) -> float | None:
        """The newest value that is known, None where there is none."""
        return next((value for value in reversed(self._values) if value == value), None)

    def window(self, start: int, end: int) -> Sequence[float]:
        """Return ticks ``start`` to ``end`` (not included), ``MISSING`` for unknown values."""
        missing = array("f", (MISSING,))
        known = self._values[max(start - self._first, 0) : max(end - self._first, 0)]
        before = missing * min(max(self._first - start, 0), end - start)
        return before + known + missing * (end - start - len(before) - len(known))

    def _grow_pyramid(self, most: int) -> None:
        """Process up to ``most`` new values, or all of them."""
        below_low = below_high = self._values
        level = 0
        while len(below_low) >= _FANOUT:
            if level == len(self._lows):
                self._lows.append(array("f"))
                self._highs.append(array("f"))
            _grow(self._lows[level], below_low, most, min)
            _grow(self._highs[level], below_high, most, max)
            below_low, below_high = self._lows[level], self._highs[level]
            level += 1

    def _skip_to(self, tick: int) -> None:
        if not self._values:
            self._first = tick
        elif tick > (end := self._first + len(self._values)):
            self._values.extend(array("f", (MISSING,)) * (tick - end))

    def _forget(self) -> None:
        while len(self._values) > self.timeline.limit:
            forgotten = self.timeline.limit // 4
            del self._values[:forgotten]
            self._first += forgotten
            self._lows.clear()
            self._highs.clear()


def put_all(series: Sequence[Series | None], tick: int, values: Sequence[float | None]) -> None:
    """Put the values of one tick, each into its series; those without one are left out."""
    for each, value in zip(series, values, strict=True):
        if each is None:
            continue
        known = each._values
        if tick == each._first + len(known) and len(known) < each.timeline.limit:
            known.append(MISSING if value is None else value)
        else:
            each.put(tick, value)


def _grow(
    level: array[float], below: array[float], most: int, choose: Callable[..., float]
) -> None:
    """Add to ``level`` the minimum or maximum of each complete block of ``below`` that it lacks."""
    start = len(level)
    end = min(len(below) // _FANOUT, start + most // _FANOUT)
    if end <= start:
        return
    columns = [below[start * _FANOUT + at : end * _FANOUT : _FANOUT] for at in range(_FANOUT)]
    level.extend(map(choose, *columns))
    # NaN is never less or greater than another value, so it remains only if it comes first.
    for block in range(start, len(level)):
        if level[block] != level[block]:
            known = [v for v in below[block * _FANOUT : (block + 1) * _FANOUT] if v == v]
            # A block without a known value loses every comparison.
            level[block] = choose(known, default=-choose(math.inf, -math.inf))


def _extremes(values: Sequence[float]) -> tuple[float, float] | None:
    low, high = min(values), max(values)
    # NaN is never less or greater than another value, so it remains only if it comes first.
    if low != low:
        known = [value for value in values if value == value]
        return (min(known), max(known)) if known else None
    return low, high

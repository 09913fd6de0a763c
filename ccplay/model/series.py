"""Numbers over time, of bounded length, with a pyramid of extremes: zooming out loses no peak."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from operator import itemgetter
from typing import cast

# --- rows of samples, kept until each series has read its column ----------------------------------

MISSING = math.nan
"""Placeholder of an unknown value, which plots show as a gap."""


class Rows:
    """Sweeps of the same members: for each field one row per sweep."""

    __slots__ = ("_fields", "_width", "complete", "end", "tick")

    def __init__(self, tick: int, fields: int, width: int) -> None:
        """Expect the first sweep at ``tick``, with a row of ``width`` values for each field."""
        self.tick = self.end = tick
        self.complete = False
        """Whether no sweep will follow."""
        self._width = width
        self._fields = [array("f") for _ in range(fields)]

    def append(self, rows: Iterable[Sequence[float | None]]) -> None:
        """Add a sweep."""
        for values, row in zip(self._fields, rows, strict=True):
            try:
                values.fromlist(cast("list[float]", row))
            except TypeError:
                # Some are unknown; nothing was added.
                values.extend([MISSING if each is None else each for each in row])
        self.end += 1

    def column(self, field: int, at: int, tick: int) -> array[float]:
        """Return a field's values in a column from ``tick`` on."""
        return self._fields[field][max(tick - self.tick, 0) * self._width + at :: self._width]


class Feed:
    """The samples of one connection or queue, for its series to read."""

    __slots__ = ("columns",)

    def __init__(self) -> None:
        self.columns: list[tuple[Rows, int]] = []
        """Rows that some series may not have read, oldest first, with the column to read."""

    @property
    def end(self) -> int:
        """One past the tick of the newest sample; 0 if there is nothing to read."""
        return self.columns[-1][0].end if self.columns else 0

    def since(self, tick: int) -> Sequence[tuple[Rows, int]]:
        """Return the columns that have samples of ``tick`` or later."""
        columns = self.columns
        at = len(columns)
        while at and columns[at - 1][0].end > tick:
            at -= 1
        return columns[at:]

    def drop(self) -> None:
        """Discard the rows that all series have read."""
        newest, _ = self.columns[-1]
        del self.columns[: None if newest.complete else -1]


# --- the lowest and highest values of blocks of a series, in levels of growing blocks -------------

FANOUT = 16
"""Number of blocks of one level in a block of the next."""


class Pyramid:
    """The extremes of blocks of values; each block of a level covers 16 of the level below.

    The levels grow on demand.
    """

    __slots__ = ("_highs", "_lows")

    def __init__(self) -> None:
        self._lows: list[array[float]] = []
        self._highs: list[array[float]] = []

    @property
    def covered(self) -> int:
        """Number of values that are in blocks."""
        return len(self._lows[0]) * FANOUT if self._lows else 0

    def clear(self) -> None:
        """Discard all blocks."""
        self._lows.clear()
        self._highs.clear()

    def extend(self, values: array[float], most: int) -> None:
        """Process up to ``most`` new values, or all of them."""
        if len(values) - self.covered < FANOUT:
            return
        below_low = below_high = values
        level = 0
        while len(below_low) >= FANOUT:
            if level == len(self._lows):
                self._lows.append(array("f"))
                self._highs.append(array("f"))
            _extend_level(self._lows[level], below_low, most, min)
            _extend_level(self._highs[level], below_high, most, max)
            below_low, below_high = self._lows[level], self._highs[level]
            level += 1

    def extremes(self, values: array[float], index: int, stop: int) -> tuple[float, float] | None:
        """Return the lowest and the highest of the values from ``index`` to ``stop``.

        All whole blocks of the lowest level up to ``stop`` must exist. None without a value.
        """
        lows: list[float] = []
        highs: list[float] = []
        below_low = below_high = values
        # The rest at both ends of whole blocks, level by level.
        for low, high in zip(self._lows, self._highs, strict=True):
            first, last = -(-index // FANOUT), min(stop // FANOUT, len(low))
            if first >= last:
                break
            for start, end in ((index, first * FANOUT), (last * FANOUT, stop)):
                if start == end:
                    continue
                if below_low is not values:
                    lows.append(min(below_low[start:end]))
                    highs.append(max(below_high[start:end]))
                elif (found := extremes(values[start:end])) is not None:
                    lows.append(found[0])
                    highs.append(found[1])
            index, stop, below_low, below_high = first, last, low, high
        lows.append(min(below_low[index:stop]))
        highs.append(max(below_high[index:stop]))
        least, greatest = min(lows), max(highs)
        # A block without a known value loses every comparison.
        return None if greatest < least else (least, greatest)


def extremes(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the lowest and the highest of some values, without NaN; None without any."""
    low, high = min(values), max(values)
    # NaN is never less or greater than another value, so it remains only if it comes first.
    if low != low:
        known = [value for value in values if value == value]
        return (min(known), max(known)) if known else None
    return low, high


def _extend_level(
    level: array[float], below: array[float], most: int, choose: Callable[..., float]
) -> None:
    """Add to ``level`` the minimum or maximum of each complete block of ``below`` that it lacks."""
    start = len(level)
    end = min(len(below) // FANOUT, start + most // FANOUT)
    if end <= start:
        return
    whole = below[start * FANOUT : end * FANOUT]
    # A block without a known value loses every comparison.
    worst = -choose(math.inf, -math.inf)
    if whole.tobytes() == (array("f", (math.nan,)) * len(whole)).tobytes():
        level.extend([worst] * (end - start))
        return
    blocks = range(start * FANOUT, end * FANOUT, FANOUT)
    fresh = array("f", [choose(below[at : at + FANOUT]) for at in blocks])
    # NaN is never less or greater than another value, so it remains only if it comes first.
    if (total := sum(fresh)) != total:
        for place, at in enumerate(blocks):
            if fresh[place] != fresh[place]:
                known = [v for v in below[at : at + FANOUT] if v == v]
                fresh[place] = choose(known, default=worst)
    level.extend(fresh)


# --- numbers over time, of bounded length, with a pyramid of extremes: zooming loses no peak ------

_WAITING = 1024
"""Smallest number of newest values that are in no block yet while few values are read."""

_INSTANT_S = 1e-9
"""Seconds below which a period is too short for a rate."""

_SPREAD = 47
"""Largest number of values from which a median is computed."""

_COUNTED = 128
"""Smallest number of values that are counted, if there are as many."""

_PLACES = tuple((at + at * at * 0.754877666 % 1) / _SPREAD for at in range(_SPREAD))
"""Positions of the values to pick as shares of a stretch: one in each of its parts, at irregular
distances, which do not always meet a sawtooth at the same height."""


class Timeline:
    """The moments, in seconds, of the values of all series that share it.

    A moment's *tick* is its index since the start, and stays valid when old moments are removed: at
    ``limit`` the oldest quarter is discarded.
    """

    __slots__ = ("_asked", "_edges", "_first", "_moments", "limit")

    def __init__(self, limit: int = 1 << 20) -> None:
        self.limit = limit
        self._first = 0
        self._moments = array("d")
        self._asked: tuple[object, list[tuple[int, int, float]]] = (None, [])
        """Stretches that ``between`` was called with last, and the answer."""
        self._edges: tuple[object, list[int]] = (None, [])
        """Moments that ``ticks`` was called with last, and the answer."""

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

    def ticks(self, edges: Sequence[float]) -> Sequence[int]:
        """Return ``at_or_after`` of each moment, cached because several series ask for the same."""
        key = (self._first, len(self._moments), edges)
        if key != self._edges[0]:
            moments, first = self._moments, self._first
            self._edges = key, [first + bisect_left(moments, edge) for edge in edges]
        return self._edges[1]

    def between(self, stretches: Sequence[tuple[float, float]]) -> Sequence[tuple[int, int, float]]:
        """Return the first and the last tick within each stretch, and the seconds between them.

        A stretch is a pair of moments; both are in ascending order over the stretches. If there are
        not two ticks within one, the seconds are 0 or less. The answer is cached, because several
        series ask for the same.
        """
        key = (self._first, len(self._moments), stretches)
        if key != self._asked[0]:
            moments, first = self._moments, self._first
            places = (
                (bisect_left(moments, start), bisect_right(moments, end) - 1)
                for start, end in stretches
            )
            end = len(moments)
            found = [
                (first + at, first + to, moments[to] - moments[at] if at < to < end else 0.0)
                for at, to in places
            ]
            self._asked = key, found
        return self._asked[1]

    def _forget(self) -> None:
        while len(self._moments) > self.limit:
            forgotten = self.limit // 4
            del self._moments[:forgotten]
            self._first += forgotten


class Series:
    """One value for each tick of its timeline, from the tick at which it began.

    ``extremes`` costs O(log n) for any width, and O(width) the first time.
    """

    __slots__ = ("_began", "_feed", "_field", "_pyramid", "_read", "timeline")

    def __init__(self, timeline: Timeline, feed: Feed | None = None, field: int = 0) -> None:
        """Start empty; values are put, or read from a field of ``feed`` when needed."""
        self.timeline = timeline
        self._feed, self._field = feed, field
        self._began = -1
        self._read = array("f")
        self._pyramid = Pyramid()

    def read_on(self) -> None:
        """Read the new samples of the feed."""
        if self._feed is None:
            return
        for rows, column in self._feed.since(self._began + len(self._read)):
            tick = max(self._began + len(self._read), rows.tick)
            self._skip_to(tick)
            self._read.extend(rows.column(self._field, column, tick))
        if len(self._read) > self.timeline.limit:
            self._forget()

    @property
    def _values(self) -> array[float]:
        """All values; ``_began`` is valid only after they have been read."""
        if self._feed is not None and self._feed.end > self._began + len(self._read):
            self.read_on()
        return self._read

    def put(self, tick: int, value: float | None) -> None:
        """Set the value at ``tick``, later than all before; skipped ticks are ``MISSING``."""
        values = self._values
        if tick != self._began + len(values):
            self._skip_to(tick)
        values.append(MISSING if value is None else value)
        if len(values) > self.timeline.limit:
            self._forget()

    def extend(self, tick: int, floats: bytes) -> None:
        """Set a value for each of some C floats, the first at ``tick``."""
        values = self._values
        if tick != self._began + len(values):
            self._skip_to(tick)
        values.frombytes(floats)
        if len(values) > self.timeline.limit:
            self._forget()

    @property
    def first(self) -> int:
        """The tick of the oldest value; -1 before the first."""
        return self._began if self._values else -1

    @property
    def end(self) -> int:
        """One past the tick of the newest value."""
        return len(self._values) + self._began

    @property
    def last(self) -> float | None:
        """The newest value; None if it is missing or there is none yet."""
        return self.at(self.end - 1)

    def at(self, tick: int) -> float | None:
        """Return the value at ``tick``; None if it is unknown."""
        values = self._values
        index = tick - self._began
        if not 0 <= index < len(values):
            return None
        value = values[index]
        return None if value != value else value

    def latest(self, tick: int) -> float | None:
        """Return the newest value at or before ``tick`` within the series; None without one."""
        return self.at(min(tick, self.end - 1))

    def extremes(self, start: int, end: int, most: float = math.inf) -> tuple[float, float] | None:
        """Return the lowest and the highest value of ticks ``start`` to ``end`` (not included).

        Values above ``most`` are ignored.
        """
        found = self._extremes(start, end)
        if found is None or found[1] <= most:
            return found
        values = [value for value in self.values(start, end) if value <= most]
        return (min(values), max(values)) if values else None

    def thinned(
        self, ticks: Sequence[int], most: float = math.inf
    ) -> list[tuple[float, float] | None]:
        """Return the extremes of each slice between neighbouring ``ticks``; None without a value.

        Screen, figures and browsers thin many values to few like this: no peak is lost.
        """
        if ticks[0] < ticks[-1]:
            # This query prepares all slices at once, not one by one.
            self._extremes(ticks[0], ticks[-1])
        return [
            self.extremes(*pair, most) if pair[0] < pair[1] else None for pair in pairwise(ticks)
        ]

    def median(self, start: int, end: int, most: float = math.inf) -> float | None:
        """Return the median of ticks ``start`` to ``end`` (not included); None without a value.

        For more than 47 ticks it is the median of 47 spread over them: its rank differs from half
        by up to some 20 % of the values. Values above ``most`` are left out.
        """
        values = self._values
        index = max(start - self._began, 0)
        ticks = min(end - self._began, len(values)) - index
        found: Sequence[float] = values[index : index + max(ticks, 0)]
        if ticks > _SPREAD:
            found = _picked(ticks)(found)
        # NaN, a missing value, makes a sum NaN too; it can't be sorted.
        if not sum(found) < math.inf:
            found = [value for value in found if value == value]
        found = sorted(found)
        if found and found[-1] > most:
            found = found[: bisect_right(found, most)]
        return found[len(found) // 2] if found else None

    def shares(self, start: int, end: int, numbers: int) -> tuple[float, ...] | None:
        """Return the share of each number among ticks ``start`` to ``end`` (not included).

        Numbers count from 0. Of 256 ticks or more only some are counted. None without a value.
        """
        every = self._values
        index = max(start - self._began, 0)
        stop = min(end - self._began, len(every))
        values = every[index : max(stop, index) : max((stop - index) // _COUNTED, 1)]
        counts = [values.count(number) for number in range(numbers)]
        total = sum(counts)
        return tuple(count / total for count in counts) if total else None

    def build(self, most: int) -> bool:
        """Prepare ``extremes`` for up to ``most`` more values; return False if few are left."""
        values = self._values
        if len(values) - self._pyramid.covered < _WAITING:
            return False
        self._pyramid.extend(values, most)
        return True

    def _extremes(self, start: int, end: int) -> tuple[float, float] | None:
        values = self._values
        index = max(start - self._began, 0)
        stop = min(end - self._began, len(values))
        if stop - index <= 2 * FANOUT:
            return extremes(values[index:stop]) if index < stop else None
        # The pyramid of a recording is built step by step, not all at once.
        self._pyramid.extend(values, 4 * (stop - index))
        if self._pyramid.covered < stop // FANOUT * FANOUT:
            return extremes(values[index:stop])
        return self._pyramid.extremes(values, index, stop)

    def rates(
        self, stretches: Sequence[tuple[float, float]], least_s: float = 0.0
    ) -> list[float | None]:
        """Return the growth of a counter per second in each stretch from one moment to another.

        If it began within a stretch, the rate is the mean since then; None if that is less than
        ``least_s``.
        """
        timeline, values, begin = self.timeline, self._values, self._began
        first, end = max(begin, timeline.first), begin + len(values)
        least = max(least_s, _INSTANT_S)
        found: list[float | None] = [
            (values[last - begin] - values[start - begin]) / seconds
            if seconds >= least and start >= first and last < end
            else None
            for start, last, seconds in timeline.between(stretches)
        ]
        for at, (start, last, _) in enumerate(timeline.between(stretches)):
            if start < first < last < end:
                seconds = timeline.time(last) - timeline.time(first)
                if seconds >= least:
                    found[at] = (values[last - begin] - values[first - begin]) / seconds
        # NaN, a missing value, is not equal to itself.
        return [rate if rate == rate else None for rate in found]

    def values(self, start: int, end: int) -> list[float]:
        """Return the known values of ticks ``start`` to ``end`` (not included)."""
        values = self._values
        window = values[max(start - self._began, 0) : max(end - self._began, 0)]
        return [value for value in window if value == value]

    def all(self) -> list[float]:
        """Return all known values."""
        return [value for value in self._values if value == value]

    @property
    def newest(self) -> float | None:
        """The newest known value; None if there is none."""
        return next((value for value in reversed(self._values) if value == value), None)

    def window(self, start: int, end: int) -> Sequence[float]:
        """Return ticks ``start`` to ``end`` (not included), ``MISSING`` for unknown values."""
        missing, values = array("f", (MISSING,)), self._values
        known = values[max(start - self._began, 0) : max(end - self._began, 0)]
        before = missing * min(max(self._began - start, 0), end - start)
        return before + known + missing * (end - start - len(before) - len(known))

    def _skip_to(self, tick: int) -> None:
        if not self._read:
            self._began = tick
        elif tick > (end := self._began + len(self._read)):
            self._read.extend(array("f", (MISSING,)) * (tick - end))

    def _forget(self) -> None:
        while len(self._read) > self.timeline.limit:
            forgotten = self.timeline.limit // 4
            del self._read[:forgotten]
            self._began += forgotten
            self._pyramid.clear()


@lru_cache(maxsize=256)
def _picked(ticks: int) -> Callable[[Sequence[float]], tuple[float, ...]]:
    """Return a function that picks those values of ``ticks`` from which a median is computed."""
    return itemgetter(*(int(at * ticks) for at in _PLACES))

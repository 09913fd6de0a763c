"""The lowest and highest values of blocks of a series, in levels of growing blocks."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Sequence

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

    def grow(self, values: array[float], most: int) -> None:
        """Process up to ``most`` new values, or all of them."""
        if len(values) - self.covered < FANOUT:
            return
        below_low = below_high = values
        level = 0
        while len(below_low) >= FANOUT:
            if level == len(self._lows):
                self._lows.append(array("f"))
                self._highs.append(array("f"))
            _grow(self._lows[level], below_low, most, min)
            _grow(self._highs[level], below_high, most, max)
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


def _grow(
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

"""A histogram of times: eight places for each doubling, so that a time is known to about 6 %."""

from __future__ import annotations

from collections.abc import Sequence

_BITS = 3
_MOST = 24
"""Number of doublings above 8 us: everything above 134 s is in the last place."""

PLACES = (_MOST + 1) << _BITS


def place(microseconds: int) -> int:
    """Return the place of a time in microseconds."""
    if microseconds < 1 << _BITS:
        return max(0, microseconds)
    octave = microseconds.bit_length() - _BITS - 1
    if octave >= _MOST:
        return PLACES - 1
    return ((octave + 1) << _BITS) + (microseconds >> octave) - (1 << _BITS)


def bounds(at: int) -> tuple[int, int]:
    """Return the bounds in microseconds of the times in a place."""
    octave, step = divmod(at, 1 << _BITS)
    if octave == 0:
        return step, step + 1
    low = (step + (1 << _BITS)) << (octave - 1)
    return low, low + (1 << (octave - 1))


def percentile(counts: Sequence[int], share: float) -> float | None:
    """Return the time in microseconds that ``share`` of all do not exceed; None without any."""
    left = share * sum(counts)
    if not sum(counts):
        return None
    for at, count in enumerate(counts):
        if count and count >= left:
            low, high = bounds(at)
            return low + (high - low) * left / count
        left -= count
    return float(bounds(len(counts) - 1)[1])

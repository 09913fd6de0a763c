"""Percentiles of measured values."""

from __future__ import annotations

from collections.abc import Sequence


def percentile(values: Sequence[float], percent: float) -> float | None:
    """Return the percentile of ``values``, None if there are none; 0 is the least of them.

    Between two values it is linear, as in most tools: Hyndman and Fan, "Sample Quantiles in
    Statistical Packages", 1996, definition 7.
    """
    if not values:
        return None
    ordered = sorted(values)
    position = (len(ordered) - 1) * percent / 100
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return round(ordered[below] + (ordered[above] - ordered[below]) * (position - below), 6)

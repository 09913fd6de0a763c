"""Means, percentiles and rates, rounded for results."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from ccplay.model.values import Monitored


def rate_bps(size: int, seconds: float) -> float | None:
    """Return bytes over seconds in bit/s; None if no time has passed."""
    return round(size * 8 / seconds, 1) if seconds > 0 and math.isfinite(seconds) else None


def milliseconds(microseconds: float | None) -> float | None:
    """Return microseconds as milliseconds with three decimals."""
    return None if microseconds is None else round(microseconds / 1000, 3)


def mean(values: Sequence[float]) -> float | None:
    """Return the mean of values; None if there are none."""
    return round(fmean(values), 3) if values else None


def percentile(values: Sequence[float], percent: float) -> float | None:
    """Return the percentile of ``values``; None if there are none; 0 is the lowest value.

    It is linear between two values, as in most tools: Hyndman and Fan, "Sample Quantiles in
    Statistical Packages", 1996, definition 7.
    """
    if not values:
        return None
    ordered = sorted(values)
    position = (len(ordered) - 1) * percent / 100
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return round(ordered[below] + (ordered[above] - ordered[below]) * (position - below), 6)


def percentiles_ms(microseconds: Sequence[float], *percents: float) -> list[float | None]:
    """Return percentiles of times in milliseconds; None if there are none."""
    return [milliseconds(percentile(microseconds, each)) for each in percents]


def delays(seen: Monitored | None) -> dict[str, Any]:
    """Return the one-way delays of monitored traffic by their names in results."""
    if seen is None:
        return {}
    return {
        "delay_mean_ms": milliseconds(seen.delay_mean_us),
        "delay_min_ms": milliseconds(seen.delay_min_us),
        "delay_max_ms": milliseconds(seen.delay_max_us),
    }

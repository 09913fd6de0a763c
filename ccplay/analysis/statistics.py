"""Statistics of measurements: mean, spread, confidence interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import msgspec

CONFIDENCE = 0.95

_EXACT = 1000
"""Greatest number of degrees of freedom for which t is found by search, in a time that grows with
them: a stranger's result may claim any number."""


class Statistic(msgspec.Struct, frozen=True, kw_only=True):
    """The mean of repeats, with its 95 % confidence interval by Student's t."""

    n: int
    mean: float
    sd: float | None
    """Standard deviation of the sample (n - 1); null for one value."""
    low: float | None
    high: float | None

    @property
    def half_width(self) -> float | None:
        """Return half the width of the interval; None for a single value."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2


def statistic(values: Sequence[float]) -> Statistic:
    """Return the statistic of at least one value.

    Student's t assumes independent repeats, and is exact if the values are normally distributed;
    "Student", "The probable error of a mean", 1908.
    """
    n = len(values)
    mean = math.fsum(values) / n
    if n < 2:
        return Statistic(n=n, mean=mean, sd=None, low=None, high=None)
    sd = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    half = student_t(n - 1) * sd / math.sqrt(n)
    return Statistic(n=n, mean=mean, sd=sd, low=mean - half, high=mean + half)


def student_t(freedom: int, confidence: float = CONFIDENCE) -> float:
    """Return the t for which a share ``confidence`` of Student's distribution is between -t and t.

    Raises ``ValueError`` for less than one degree of freedom.
    """
    if freedom < 1:
        raise ValueError("Student's t needs at least one degree of freedom")
    if freedom > _EXACT:
        return _far_out(freedom, confidence)
    low, high = 0.0, 1.0
    while _within(high, freedom) < confidence:
        high *= 2
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if _within(middle, freedom) < confidence:
            low = middle
        else:
            high = middle
    return high


def _far_out(freedom: int, confidence: float) -> float:
    """Return Student's t for many degrees of freedom, exact to nine digits from a thousand on.

    Abramowitz and Stegun, 26.7.5: an expansion around the normal distribution.
    """
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return z + first / freedom + second / freedom**2


def _within(t: float, freedom: int) -> float:
    """Return the share of Student's distribution between -t and t.

    Abramowitz and Stegun, "Handbook of Mathematical Functions", 26.7.3 and 26.7.4: exact for whole
    degrees of freedom.
    """
    angle = math.atan(t / math.sqrt(freedom))
    square = math.cos(angle) ** 2
    odd = freedom % 2 == 1
    term = math.cos(angle) if odd else 1.0
    total = 0.0
    for k in range(1, freedom // 2 + 1):
        total += term
        term *= square * (2 * k / (2 * k + 1) if odd else (2 * k - 1) / (2 * k))
    if odd:
        return 2 / math.pi * (angle + math.sin(angle) * total)
    return math.sin(angle) * total

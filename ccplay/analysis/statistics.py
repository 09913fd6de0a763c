"""Statistics of measurements: mean, spread, confidence interval, and the means of machines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist, fmean

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


# --- the means of machines that made runs ---------------------------------------------------------

Measured = tuple[str, str, float]
"""Case, machine and value of a run."""


class MachineEffect(msgspec.Struct, frozen=True, kw_only=True):
    """The means of a metric by machine, over the cases that several machines ran."""

    metric: str = msgspec.field(name="figure")
    machines: dict[str, float]
    """Difference of each machine's mean from the mean of all machines, as a share of the case's
    mean."""
    half_widths: dict[str, float] = {}
    """Half the width of each mean's 95 % confidence interval; without machines that ran once."""
    differs: bool
    """Whether the intervals of two machines do not overlap."""

    def __str__(self) -> str:
        shares = ", ".join(
            f"{name} {share:+.2%}{f' ± {half:.2%}' if half else ''}"
            for name, share in sorted(self.machines.items(), key=lambda pair: -pair[1])
            for half in (self.half_widths.get(name),)
        )
        says = "depends on the machine" if self.differs else "does not differ clearly by machine"
        return f"{self.metric} {says}: {shares} of the mean"


def machine_effects(metrics: Mapping[str, Sequence[Measured]]) -> list[MachineEffect]:
    """Return the machines' means of every metric that several machines measured in one case."""
    found = (_effect(name, runs) for name, runs in metrics.items())
    return [each for each in found if each is not None]


def _effect(metric: str, runs: Sequence[Measured]) -> MachineEffect | None:
    """Compare the machines' means of one metric, each value over the mean of its case.

    In the mean of a case every machine counts once, however many runs it made. Cases that only one
    machine ran are left out: what differs in them may be the case.
    """
    by_case: dict[str, dict[str, list[float]]] = {}
    for case, machine, value in runs:
        by_case.setdefault(case, {}).setdefault(machine, []).append(value)
    shares: dict[str, list[float]] = {}
    for own in by_case.values():
        middle = fmean(map(fmean, own.values()))
        for machine, values in own.items() if len(own) > 1 and middle else ():
            shares.setdefault(machine, []).extend(value / middle - 1 for value in values)
    if not shares:
        return None
    means = {name: statistic(shares[name]) for name in sorted(shares)}
    known = [each for each in means.values() if each.low is not None and each.high is not None]
    return MachineEffect(
        metric=metric,
        machines={name: round(each.mean, 6) for name, each in means.items()},
        half_widths={n: round(each.half_width, 6) for n, each in means.items() if each.half_width},
        differs=max((each.low or 0.0 for each in known), default=0.0)
        > min((each.high or 0.0 for each in known), default=0.0),
    )

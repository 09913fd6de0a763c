"""Statistics of measurements: mean, spread, confidence interval, and differences of machines."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import NormalDist

import msgspec

# --- statistics of measurements: mean, spread, confidence interval --------------------------------

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


# --- tests whether machines that made runs differ: a two-way analysis of variance -----------------
# A value is modelled as the mean of its case times one plus an effect of its machine. The
# hypothesis of no effect is tested by F: the residual squares with and without the effect, for
# designs that need not be balanced; Searle, "Linear Models", 1971, chapter 7.

LEVEL = 0.05
"""Probability below which an effect is reported, shared by all metrics that are tested."""

_ROUNDS = 500
_CLOSE = 1e-12

Measured = tuple[str, str, float]
"""Case, machine and value of a run."""


class MachineEffect(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of the machine on a metric, over all cases."""

    metric: str = msgspec.field(name="figure")
    machines: dict[str, float]
    """Difference of each machine's mean from the mean of all machines, as a share of the case's
    mean."""
    f: float
    freedom: tuple[int, int]
    """Degrees of freedom of F."""
    p: float
    """Probability of this F or a greater one if machines have no effect."""
    differs: bool
    """Whether ``p`` is below ``LEVEL`` over the number of metrics tested (Bonferroni)."""

    def __str__(self) -> str:
        least = min(self.machines, key=lambda name: self.machines[name])
        most = max(self.machines, key=lambda name: self.machines[name])
        test = f"F({self.freedom[0]}, {self.freedom[1]}) = {self.f:.3g}, p = {self.p:.2g}"
        if not self.differs:
            return f"{self.metric}: no effect of the machine was found; {test}"
        return (
            f"{self.metric} depends on the machine: {most} {self.machines[most]:+.2%}, "
            f"{least} {self.machines[least]:+.2%} of the mean; {test}"
        )


def machine_effects(metrics: Mapping[str, Sequence[Measured]]) -> list[MachineEffect]:
    """Return the effect of the machine on every metric for which it can be tested."""
    found = [each for name, runs in metrics.items() if (each := _effect(name, runs)) is not None]
    level = LEVEL / max(len(found), 1)
    return [msgspec.structs.replace(each, differs=each.p < level) for each in found]


def _effect(metric: str, runs: Sequence[Measured]) -> MachineEffect | None:
    """Test one metric; return None if no case or machine can be compared."""
    means = _means((case, value) for case, _, value in runs)
    scaled = [(c, m, value / means[c] - 1.0) for c, m, value in runs if means[c]]
    cases = {case for case, _, _ in scaled}
    machines = sorted({machine for _, machine, _ in scaled})
    groups = _groups((case, machine) for case, machine, _ in scaled)
    one, other = len(machines) - groups, len(scaled) - len(cases) - len(machines) + groups
    if len(machines) < 2 or one < 1 or other < 1:
        return None
    by_case, by_machine = _fit(scaled)
    without = math.fsum(value**2 for _, _, value in scaled)
    with_ = math.fsum((value - by_case[c] - by_machine[m]) ** 2 for c, m, value in scaled)
    if without == 0.0:
        return None
    f = (without - with_) / one / (with_ / other) if with_ > _CLOSE * without else math.inf
    middle = math.fsum(by_machine.values()) / len(machines)
    return MachineEffect(
        metric=metric,
        machines={name: round(by_machine[name] - middle, 6) for name in machines},
        f=round(min(max(f, 0.0), 1e9), 4),
        freedom=(one, other),
        p=f_tail(max(f, 0.0), one, other),
        differs=False,
    )


def _fit(scaled: Sequence[Measured]) -> tuple[dict[str, float], dict[str, float]]:
    """Return the least squares of a sum of effects of case and machine, fitted in turn."""
    by_case = dict.fromkeys((case for case, _, _ in scaled), 0.0)
    by_machine = dict.fromkeys((machine for _, machine, _ in scaled), 0.0)
    for _ in range(_ROUNDS):
        before = dict(by_machine)
        by_case = _means((c, value - by_machine[m]) for c, m, value in scaled)
        by_machine = _means((m, value - by_case[c]) for c, m, value in scaled)
        if max(abs(by_machine[name] - before[name]) for name in before) < _CLOSE:
            break
    return by_case, by_machine


def _means(values: Iterable[tuple[str, float]]) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for name, value in values:
        found.setdefault(name, []).append(value)
    return {name: math.fsum(each) / len(each) for name, each in found.items()}


def _groups(pairs: Iterable[tuple[str, str]]) -> int:
    """Return the number of groups of cases and machines that no run connects."""
    parent: dict[tuple[str, str], tuple[str, str]] = {}

    def root(node: tuple[str, str]) -> tuple[str, str]:
        parent.setdefault(node, node)
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for case, machine in pairs:
        parent[root(("case", case))] = root(("machine", machine))
    return sum(root(node) == node for node in list(parent))


def f_tail(f: float, one: int, other: int) -> float:
    """Return the probability that F with these degrees of freedom is greater than ``f``.

    Abramowitz and Stegun, "Handbook of Mathematical Functions", 26.6.2.
    """
    return 0.0 if math.isinf(f) else _beta(other / (other + one * f), other / 2, one / 2)


def _beta(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function, by its continued fraction (26.5.8)."""
    if x <= 0.0 or x >= 1.0:
        return max(0.0, min(x, 1.0))
    if x > (a + 1) / (a + b + 2):
        return 1.0 - _beta(1.0 - x, b, a)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front += a * math.log(x) + b * math.log1p(-x)
    return math.exp(front) / a / _fraction(lambda m: _term(m, x, a, b))


def _term(m: int, x: float, a: float, b: float) -> float:
    half = m // 2
    if m % 2 == 0:
        return half * (b - half) * x / ((a + m - 1) * (a + m))
    return -(a + half) * (a + b + half) * x / ((a + m - 1) * (a + m))


def _fraction(term: Callable[[int], float]) -> float:
    """Return 1 + term(1) / (1 + term(2) / (1 + …, after Lentz."""
    value, up, down = 1.0, 1.0, 0.0
    for m in range(1, _ROUNDS):
        down = 1.0 / (1.0 + term(m) * down or _CLOSE)
        up = 1.0 + term(m) / up or _CLOSE
        value *= up * down
        if abs(up * down - 1.0) < _CLOSE:
            break
    return value

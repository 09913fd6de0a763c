"""A comparison of two results: differences of metrics, and whether they exceed noise."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ccplay.analysis.results import CaseStatistics, Result
from ccplay.analysis.statistics import Statistic, student_t
from ccplay.errors import UsageError
from ccplay.model.quoting import quote
from ccplay.report.data.naming import words
from ccplay.report.data.settings import Setting, Settings, differing

FORMAT = 1
"""Version of the format of a comparison."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One metric of both experiments, and how B differs from A."""

    metric: str = msgspec.field(name="figure")
    """Path in a run's result, such as ``flows.1.goodput_bps``."""
    a: Statistic | None
    """Statistic in A; null if A does not have the metric."""
    b: Statistic | None
    difference: float | None
    """B's mean minus A's; null if either is missing."""
    percent: float | None
    """Difference in percent of A's mean; null if that mean is 0 or either is missing."""
    low: float | None
    """Lower end of the 95 % confidence interval of the difference; null without repeats."""
    high: float | None
    clear: bool | None
    """Whether the confidence interval of the difference excludes 0; null without repeats."""


class CaseComparison(msgspec.Struct, frozen=True, kw_only=True):
    """A case of A, and the case of B that it is compared with."""

    a: str
    b: str
    runs_a: int
    runs_b: int
    untrustworthy: int
    """Number of runs of both cases that can't be trusted."""
    settings: list[Setting] = []
    """Settings that differ between the cases; empty if those of either case are unknown."""
    verdict: str = ""
    """Verdict on the reported metrics in one sentence; empty if none can be compared."""
    reported: list[str]
    """Metrics that are shown by default."""
    metrics: list[Difference] = msgspec.field(name="figures")


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The object that ``ccplay compare --json`` prints."""

    format: int = FORMAT
    a: str
    """Name of A: a recording or a run directory."""
    b: str
    cases: list[CaseComparison]
    only_a: list[str] = []
    """Names of cases that only A has."""
    only_b: list[str] = []


def compare(
    a: Result,
    b: Result,
    names: tuple[str, str],
    made_of: tuple[Mapping[str, Settings], Mapping[str, Settings]] = ({}, {}),
) -> Comparison:
    """Compare the cases of two experiments that have the same name, or the only case of each.

    ``made_of`` has the settings of each experiment's cases, by name. Raises ``UsageError`` if the
    experiments have no case in common.
    """
    mine, theirs = ({case.name: case for case in each.statistics} for each in (a, b))
    pairs = [(case, theirs[name]) for name, case in mine.items() if name in theirs]
    if len(mine) == len(theirs) == 1:
        pairs = list(zip(mine.values(), theirs.values(), strict=True))
    if not pairs:
        raise UsageError(
            f"{names[0]} and {names[1]} have no case in common: "
            f"{_listed(mine)} here, {_listed(theirs)} there"
        )
    return Comparison(
        a=names[0],
        b=names[1],
        cases=[_compare(one, other, made_of) for one, other in pairs],
        only_a=[name for name in mine if name not in {one.name for one, _ in pairs}],
        only_b=[name for name in theirs if name not in {other.name for _, other in pairs}],
    )


def welch(a: Statistic, b: Statistic) -> tuple[float, float] | None:
    """Return the 95 % confidence interval of the difference of two means, B's minus A's.

    Welch's t does not assume equal variances: B. L. Welch, "The generalization of Student's
    problem when several different population variances are involved", 1947. The degrees of freedom
    are rounded down, so the interval is slightly too wide. None if either has no repeats.
    """
    if a.sd is None or b.sd is None or a.n < 2 or b.n < 2:
        return None
    one, other = a.sd**2 / a.n, b.sd**2 / b.n
    difference = b.mean - a.mean
    if not one + other:
        return difference, difference
    # By shares of the sum, because the square of a tiny variance is 0.
    share = one / (one + other)
    freedom = 1 / (share**2 / (a.n - 1) + (1 - share) ** 2 / (b.n - 1))
    half = student_t(math.floor(freedom + 1e-9)) * math.sqrt(one + other)
    return difference - half, difference + half


def _compare(
    a: CaseStatistics,
    b: CaseStatistics,
    made_of: tuple[Mapping[str, Settings], Mapping[str, Settings]],
) -> CaseComparison:
    names = dict.fromkeys([*a.metrics, *b.metrics])
    metrics = [_differ(each, a.metrics.get(each), b.metrics.get(each)) for each in names]
    reported = list(dict.fromkeys([*a.reported, *b.reported]))
    mine, theirs = made_of[0].get(a.name), made_of[1].get(b.name)
    return CaseComparison(
        a=a.name,
        b=b.name,
        runs_a=a.runs,
        runs_b=b.runs,
        untrustworthy=a.untrustworthy + b.untrustworthy,
        settings=differing(mine, theirs) if mine and theirs else [],
        verdict=verdict([each for each in metrics if each.metric in reported]),
        reported=reported,
        metrics=metrics,
    )


def _differ(metric: str, a: Statistic | None, b: Statistic | None) -> Difference:
    difference = None if a is None or b is None else b.mean - a.mean
    interval = None if a is None or b is None else welch(a, b)
    return Difference(
        metric=metric,
        a=a,
        b=b,
        difference=difference,
        percent=None
        if a is None or difference is None or not a.mean
        else 100 * difference / abs(a.mean),
        low=interval and interval[0],
        high=interval and interval[1],
        clear=None if interval is None else not interval[0] <= 0 <= interval[1],
    )


_NAMED = 3
"""Largest number of metrics that a verdict names."""
_DOUBLE = 99.5
"""Smallest change in percent that is written as a factor, which is then easier to read."""


def verdict(metrics: Sequence[Difference]) -> str:
    """Return a sentence on how the metrics of a case differ; empty if none can be compared."""
    known = [each for each in metrics if each.difference is not None]
    if not known:
        return ""
    repeated = [each for each in known if each.clear is not None]
    clear = _greatest(each for each in repeated if each.clear)
    if clear:
        rest = len(repeated) - len(clear)
        others = f"; {rest} of {len(repeated)} metrics do not differ clearly" if rest else ""
        return f"Clearly different: in B {_changes(clear)}{others}."
    if len(repeated) == 1:
        return f"{_the(repeated[0].metric).capitalize()} does not differ clearly."
    if repeated:
        return f"None of the {len(repeated)} metrics differs clearly."
    changed = _greatest(each for each in known if each.difference)
    if not changed:
        return "No metric differs."
    return f"In B {_changes(changed)}; without repeats on both sides this may be chance."


def _greatest(metrics: Iterable[Difference]) -> list[Difference]:
    return sorted(metrics, key=lambda each: -abs(each.percent or 0.0))


def _changes(metrics: Sequence[Difference]) -> str:
    """Return how some metrics change: ``the goodput of flow 1 is 12 % higher and …``."""
    first, *others = metrics[:_NAMED]
    changes = [f"{_the(first.metric)} is {_change(first)}"]
    changes += [f"{_the(each.metric)} {_change(each)}" for each in others]
    last = changes.pop() if len(changes) > 1 else ""
    rest = len(metrics) - _NAMED
    if rest > 0:
        return f"{', '.join([*changes, last])} ({rest} more differ)"
    return f"{', '.join(changes)} and {last}" if last else changes[0]


def _change(each: Difference) -> str:
    much = each.percent is not None and abs(each.percent) >= _DOUBLE
    if much and each.a and each.b and each.b.mean / each.a.mean > 0:
        return f"{each.b.mean / each.a.mean:.2g} times as high"
    by = "" if each.percent is None else f"{abs(each.percent):.2g} % "
    return f"{by}{'higher' if (each.difference or 0.0) > 0 else 'lower'}"


def _the(metric: str) -> str:
    text = words(metric).text
    return text if text[:1].isupper() else f"the {text}"


def _listed(names: Iterable[str]) -> str:
    first: Sequence[str] = [quote(name) for name in names]
    return ", ".join(first[:3]) + (" …" if len(first) > 3 else "") if first else "none"

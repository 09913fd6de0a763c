"""Findings of a report: what was measured, expected and published, and the verdicts."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ccplay.analysis.metrics import why_unmeasured
from ccplay.analysis.results import CaseResult, CaseStatistics, Check, Result
from ccplay.analysis.statistics import Statistic
from ccplay.analysis.summary import queueing_delays_us
from ccplay.report.data.naming import (
    Unit,
    Words,
    by_family,
    some_of,
    unit,
    words,
    write,
    write_bounds,
)
from ccplay.scenario.values import Published
from ccplay.state.lab_state import LabState
from ccplay.traffic import TRAFFIC
from ccplay.traffic.plot import Times

# --- verdicts on runs: expectations that held, and algorithms that misbehaved ---------------------


class Failure(msgspec.Struct, frozen=True):
    """A run in which an expectation did not hold."""

    run: CaseResult
    value: str
    """Measured value with its unit."""


class Verdict(msgspec.Struct, frozen=True):
    """An expectation, and its outcome in all runs that were checked for it."""

    check: Check
    """The expectation, and its outcome in the first of the runs."""
    runs: list[CaseResult]
    """Runs that were checked."""
    failed: list[Failure]

    @property
    def text(self) -> str:
        """Bounds of the expectation with their unit."""
        return write_bounds(self.check.metric, self.check.text)

    @property
    def cases(self) -> list[str]:
        """Names of the cases that were checked."""
        return list(dict.fromkeys(run.name for run in self.runs))

    @property
    def value(self) -> str:
        """Value measured in the first of the runs, with its unit."""
        return _value(self.runs[0], self.check)

    @property
    def held(self) -> int:
        """Number of runs in which the expectation held."""
        return len(self.runs) - len(self.failed)


def verdicts(runs: Sequence[CaseResult]) -> list[Verdict]:
    """Return the verdict on each expectation of these runs, one even if several cases share it."""
    groups: dict[tuple[str, str, str], list[tuple[CaseResult, Check]]] = {}
    for run in runs:
        for check in run.checks:
            groups.setdefault((check.metric, check.text, check.why), []).append((run, check))
    return [
        Verdict(
            members[0][1],
            [run for run, _ in members],
            [Failure(run, _value(run, check)) for run, check in members if not check.ok],
        )
        for members in groups.values()
    ]


def run_name(run: CaseResult) -> str:
    """Return a run's name: its case, its repeat, and its attempt if it is not the first."""
    again = f", attempt {run.attempt}" if run.attempt > 1 else ""
    return f"{run.name}, run {run.repeat}{again}"


def _value(run: CaseResult, check: Check) -> str:
    if check.value is None:
        return f"not measured ({why_unmeasured(check.metric, [run])})"
    return write(check.metric, check.value)


def unmeasured(cases: Sequence[CaseStatistics], runs: Sequence[CaseResult]) -> list[str]:
    """Return a sentence for each reported metric that no run of a case measured, with the reason.

    Cases are named where not all of ``cases`` lack the metric.
    """
    found: dict[tuple[str, str], list[str]] = {}
    for case in cases:
        own = [r for r in runs if r.name == case.name and not r.errors and not r.interrupted]
        for metric in case.reported:
            if metric not in case.metrics:
                why = why_unmeasured(metric, own)
                found.setdefault((metric, why), []).append(case.name)
    return [
        f"{where}: {text}" if (where := some_of(names, cases)) else text
        for (metric, why), names in found.items()
        for text in [f"{metric} was not measured: {why}"]
    ]


def misbehaviours(run: CaseResult) -> list[str]:
    """Return how algorithms misbehaved: ``flow 1: mine keeps cwnd at 1, from 3.2 s on``."""
    problems: dict[str, None] = {}
    for flow in run.flows:
        for each in flow.misbehaved:
            end = " s on" if each.until is None else f" to {each.until:.1f} s"
            problems[f"flow {flow.id}: {each.cc} {each.wrong}, from {each.t:.1f}{end}"] = None
    return list(problems)


# --- distributions of the times of packets and transfers, for one run or several together ---------

POINTS = 400
"""Largest number of quantiles that represent the values of a run."""


def _srtt_us(state: LabState) -> list[float]:
    flows = (flow for flow in state.flows.values() if flow.kind == "flow")
    return [value for flow in flows for value in flow.series["srtt_us"].all() if value > 0]


def _queueing_delays_us(state: LabState) -> list[float]:
    queue = state.queues.get(next(iter(_observed(state)), ""))
    return [] if queue is None or not state.flows else queueing_delays_us(state, queue)


def _observed(state: LabState) -> Sequence[str]:
    return state.hello.network.observed if state.hello else []


_RTT = Times(
    "rtt",
    "RTT (ms)",
    "share of samples",
    "Smoothed RTT of the long-lived flows over all samples of all runs.",
    {"": _srtt_us},
)
_DELAY = Times(
    "delay",
    "queueing delay (ms)",
    "share of samples",
    "Backlog over rate at the bottleneck, over all samples of all runs.",
    {"": _queueing_delays_us},
)
_SOJOURN = Times(
    "sojourn",
    "sojourn time (ms)",
    "share of packets",
    "Sojourn time of each packet in a software discipline, of all runs, to within 6 %.",
    {"": lambda _: []},
)
"""Times of which only counts are kept: see ``counted``."""
_OF_TRAFFIC = {kind.name: kind.times for kind in TRAFFIC}
TIMES = (_RTT, *(each for times in _OF_TRAFFIC.values() for each in times), _DELAY, _SOJOURN)
"""Times whose distributions a report draws, in its order."""


class Distribution(msgspec.Struct, frozen=True):
    """A cumulative distribution: for each value the share of values that do not exceed it."""

    values: list[float]
    shares: list[float]
    count: int
    """Number of values measured."""

    def quantile(self, share: float) -> float:
        """Return the value that ``share`` of all values do not exceed."""
        if not self.values:
            return 0.0
        return self.values[min(bisect_left(self.shares, share), len(self.values) - 1)]


def distribution(values: Sequence[float]) -> Distribution | None:
    """Return the distribution of values, thinned but with both extremes; None without values."""
    if not values:
        return None
    ordered = sorted(values)
    n = len(ordered)
    if n > POINTS:
        picks = sorted({round(i * (n - 1) / (POINTS - 1)) for i in range(POINTS)})
    else:
        picks = list(range(n))
    return Distribution([ordered[i] for i in picks], [(i + 1) / n for i in picks], n)


def together(parts: Sequence[Distribution]) -> Distribution:
    """Return one distribution of all values of several, each weighted by its number of values."""
    steps: list[tuple[float, float]] = []
    for part in parts:
        before = 0.0
        for value, share in zip(part.values, part.shares, strict=True):
            steps.append((value, (share - before) * part.count))
            before = share
    steps.sort()
    total = sum(weight for _, weight in steps)
    width = max(len(steps) // (2 * POINTS), 1)
    values, shares, sum_until = [], [], 0.0
    for number, (value, weight) in enumerate(steps):
        sum_until += weight
        if number % width == 0 or number == len(steps) - 1:
            values.append(value)
            shares.append(min(sum_until / total, 1.0))
    return Distribution(values, shares, sum(part.count for part in parts))


def distributions(state: LabState) -> dict[tuple[str, str], Distribution]:
    """Return the distributions of a run in ms by name and panel of ``TIMES``.

    ``rtt`` is srtt over all sweeps of all connections. Queueing delays and sojourn times are those
    of the first observed link: the delay in each sweep while there was traffic, the sojourn times
    of all packets, if a discipline in software measured them. Those without values are left out.
    """
    times_us: dict[tuple[str, str], list[float]] = {}
    for each in (_RTT, _DELAY):
        times_us[each.name, ""] = [us for read in each.panels.values() for us in read(state)]
    for traffic in state.traffic.values():
        for times in _OF_TRAFFIC[traffic.kind]:
            for panel, read in times.panels.items():
                times_us.setdefault((times.name, panel), []).extend(read(traffic))
    found = {key: distribution([us * 1e-3 for us in own]) for key, own in times_us.items()}
    for link in _observed(state)[:1]:
        found[_SOJOURN.name, ""] = counted(state.sojourns.of(link))
    return {key: each for key, each in found.items() if each is not None}


def counted(packets: Mapping[int, int]) -> Distribution | None:
    """Return the distribution in ms of packets' times, from counts of packets by time in µs."""
    total, sum_until = sum(packets.values()), 0
    if not total:
        return None
    values, shares = [], []
    for upto_us, count in sorted(packets.items()):
        sum_until += count
        values.append(upto_us * 1e-3)
        shares.append(sum_until / total)
    return Distribution(values, shares, total)


# --- findings of an experiment: every reported metric by case, beside published values ------------


class Finding(msgspec.Struct, frozen=True):
    """One metric of one case."""

    case: CaseStatistics
    metric: str
    statistic: Statistic | None
    """Statistic of the metric; None if no run measured it."""
    published: list[float]
    """Published values of this case alone."""
    notes: list[str]
    """Reasons why our value may differ from the published ones."""

    @property
    def difference(self) -> float | None:
        """Relative difference of our mean from the published mean; None if either is missing."""
        if self.statistic is None or not self.published:
            return None
        theirs = sum(self.published) / len(self.published)
        return self.statistic.mean / theirs - 1 if theirs else None

    @property
    def within(self) -> bool | None:
        """Whether the published mean is in our confidence interval; None if either is missing."""
        if self.statistic is None or not self.published:
            return None
        low, high = self.statistic.low, self.statistic.high
        if low is None or high is None:
            return None
        return low <= sum(self.published) / len(self.published) <= high


class FamilyFinding(msgspec.Struct, frozen=True):
    """Published values of a metric for a whole family of cases."""

    family: str
    metric: str
    published: list[float]
    notes: list[str]


class MetricColumn(msgspec.Struct, frozen=True):
    """A metric with all its values in one unit."""

    metric: str
    words: Words
    unit: Unit

    @property
    def unit_name(self) -> str:
        """Name of the unit, or of the things counted."""
        return self.unit.name or self.words.counts

    def ours(self, found: Finding | None) -> str:
        """Return our mean with half of its confidence interval as text; a dash if unmeasured."""
        if found is None or found.statistic is None:
            return "–"
        return self.unit.write_statistic(found.statistic)

    def spread(self, found: Finding | None) -> str:
        """Return the standard deviation over runs as text; empty for a single run."""
        if found is None or found.statistic is None or found.statistic.sd is None:
            return ""
        return self.unit.write(found.statistic.sd)

    def theirs(self, found: Finding | FamilyFinding | None) -> str:
        """Return published values as text: a single one, or their range."""
        return "" if found is None else self.unit.write_range(found.published)

    def beside(self, found: Finding | None) -> str:
        """Return the difference of our value from the published one as text: ``-12 %``."""
        if found is None or found.difference is None:
            return ""
        return f"{found.difference * 100:+.0f} %".replace("-", "−")


def findings(result: Result) -> list[Finding]:
    """Return every reported metric of every case, and those with published values."""
    found = []
    shared = published_by_case(result.statistics)
    for case in result.statistics:
        theirs = published_of(case, shared[case.name])
        others = (each.metric for each in case.published)
        found += [
            Finding(
                case=case,
                metric=metric,
                statistic=case.metrics.get(metric),
                published=values(theirs, metric),
                notes=_notes(theirs, metric),
            )
            for metric in dict.fromkeys((*case.reported, *others))
        ]
    return found


def family_findings(result: Result) -> list[FamilyFinding]:
    """Return the values published for whole families, once for each family and metric."""
    shared = {
        name: published_of_all(family) for (name, _), family in by_family(result.statistics).items()
    }
    return [
        FamilyFinding(name, metric, values(theirs, metric), _notes(theirs, metric))
        for name, theirs in shared.items()
        for metric in dict.fromkeys(each.metric for each in theirs)
    ]


def _notes(published: Sequence[Published], metric: str) -> list[str]:
    return [each.note for each in published if each.metric == metric and each.note]


def columns(found: Iterable[Finding]) -> list[MetricColumn]:
    """Return the metrics of the findings in order, each with its unit."""
    means: dict[str, list[float]] = {}
    for each in found:
        values = means.setdefault(each.metric, [])
        if each.statistic is not None:
            values.append(each.statistic.mean)
    return [
        MetricColumn(metric, words(metric), unit(metric, values))
        for metric, values in means.items()
    ]


def citations(result: Result) -> list[str]:
    """Return the sources of published values; if there are several, each after its cases."""
    found = sources(result.statistics)
    if len(found) == 1:
        return list(found)
    return [f"{some_of(names, result.statistics)}: {source}" for source, names in found.items()]


def agreement(result: Result) -> str:
    """Return a sentence on how close our values are to published ones; empty without any."""
    differing = {
        (each.case.name, each.metric): each.difference
        for each in findings(result)
        if each.difference is not None
    }
    if not differing:
        return ""
    (case, metric), difference = max(differing.items(), key=lambda pair: abs(pair[1]))
    what = f"{words(metric).text} ({case})"
    beside = f"{abs(difference) * 100:.0f} % {'above' if difference > 0 else 'below'}"
    farthest = f"ours is {beside} the published value for {what}."
    if len(differing) > 1:
        farthest = f"the largest difference is in {what}: ours is {beside}."
    inside = [each.within for each in findings(result) if each.within is not None]
    if not inside:
        return farthest[0].upper() + farthest[1:]
    if len(inside) == 1:
        lies = "lies" if inside[0] else "does not lie"
        return f"The published value {lies} in the 95 % confidence interval of ours; {farthest}"
    held = f"{sum(inside)} of {len(inside)} published values lie"
    return f"{held} in the 95 % confidence intervals of ours; {farthest}"


def published_of_all(family: Sequence[CaseStatistics]) -> list[Published]:
    """Return the values published for a whole family, shared by every point of its matrix.

    Shown beside each point, they would look like values of that point alone.
    """
    if not family or not all(case.parameters for case in family):
        return []
    first, *others = family
    return [
        each
        for each in first.published
        if not each.curve and all(each in case.published for case in others)
    ]


def published_by_case(cases: Sequence[CaseStatistics]) -> dict[str, list[Published]]:
    """Return the values published for the whole family of each case."""
    return {
        case.name: theirs
        for family in by_family(cases).values()
        for theirs in (published_of_all(family),)
        for case in family
    }


def published_of(case: CaseStatistics, shared: Sequence[Published]) -> list[Published]:
    """Return the values published for this case alone, without those of its family."""
    return [each for each in case.published if each not in shared]


def sources(cases: Sequence[CaseStatistics]) -> dict[str, list[str]]:
    """Return the sources of the published values, each with the names of its cases."""
    found: dict[str, list[str]] = {}
    for case in cases:
        for source in dict.fromkeys(each.source for each in case.published if each.source):
            found.setdefault(source, []).append(case.name)
    return found


def values(published: Sequence[Published], metric: str) -> list[float]:
    """Return all published values of a metric."""
    return [value for each in published if each.metric == metric for value in each.values]

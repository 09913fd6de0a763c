"""Findings of an experiment: every reported metric by case, beside published values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ccplay.analysis.results import CaseStatistics, PublishedResult, Result
from ccplay.analysis.statistics import Statistic
from ccplay.report.data.amounts import Unit, unit
from ccplay.report.data.families import by_family, some_of
from ccplay.report.data.naming import Words, words


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


class Reading(msgspec.Struct, frozen=True):
    """Published values of a metric for a whole family of cases."""

    family: str
    metric: str
    published: list[float]
    notes: list[str]


class Column(msgspec.Struct, frozen=True):
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

    def theirs(self, found: Finding | Reading | None) -> str:
        """Return published values as text: a single one, or their range."""
        if found is None or not found.published:
            return ""
        low, high = (self.unit.write(each(found.published)) for each in (min, max))
        return low if low == high else f"{low} to {high}"

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


def readings(result: Result) -> list[Reading]:
    """Return the values published for whole families, once for each family and metric."""
    shared = {
        name: published_of_all(family) for (name, _), family in by_family(result.statistics).items()
    }
    return [
        Reading(name, metric, values(theirs, metric), _notes(theirs, metric))
        for name, theirs in shared.items()
        for metric in dict.fromkeys(each.metric for each in theirs)
    ]


def _notes(published: Sequence[PublishedResult], metric: str) -> list[str]:
    return [each.note for each in published if each.metric == metric and each.note]


def columns(found: Iterable[Finding]) -> list[Column]:
    """Return the metrics of the findings in order, each with its unit."""
    means: dict[str, list[float]] = {}
    for each in found:
        values = means.setdefault(each.metric, [])
        if each.statistic is not None:
            values.append(each.statistic.mean)
    return [Column(metric, words(metric), unit(metric, values)) for metric, values in means.items()]


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


def published_of_all(family: Sequence[CaseStatistics]) -> list[PublishedResult]:
    """Return the values published for a whole family, shared by every point of its matrix.

    Shown beside each point, they would look like values of that point alone.
    """
    if not family or not all(case.parameters for case in family):
        return []
    first, *others = family
    return [each for each in first.published if all(each in case.published for case in others)]


def published_by_case(cases: Sequence[CaseStatistics]) -> dict[str, list[PublishedResult]]:
    """Return the values published for the whole family of each case."""
    return {
        case.name: theirs
        for family in by_family(cases).values()
        for theirs in (published_of_all(family),)
        for case in family
    }


def published_of(case: CaseStatistics, shared: Sequence[PublishedResult]) -> list[PublishedResult]:
    """Return the values published for this case alone, without those of its family."""
    return [each for each in case.published if each not in shared]


def sources(cases: Sequence[CaseStatistics]) -> dict[str, list[str]]:
    """Return the sources of the published values, each with the names of its cases."""
    found: dict[str, list[str]] = {}
    for case in cases:
        for source in dict.fromkeys(each.source for each in case.published if each.source):
            found.setdefault(source, []).append(case.name)
    return found


def values(published: Sequence[PublishedResult], metric: str) -> list[float]:
    """Return all published values of a metric."""
    return [value for each in published if each.metric == metric for value in each.values]

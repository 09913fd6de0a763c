"""Published values: of one case, or of a whole matrix."""

from __future__ import annotations

from collections.abc import Sequence

from ccplay.analysis.results import CaseStatistics, PublishedResult


def common(family: Sequence[CaseStatistics]) -> list[PublishedResult]:
    """Return the values published of a whole family, which every point of its matrix has.

    Shown beside each point, they would look like values of that point.
    """
    if not family or not all(case.parameters for case in family):
        return []
    first, *others = family
    return [each for each in first.published if all(each in case.published for case in others)]


def own(case: CaseStatistics, family: Sequence[CaseStatistics]) -> list[PublishedResult]:
    """Return the values published of this case alone."""
    shared = common(family)
    return [each for each in case.published if each not in shared]


def sources(cases: Sequence[CaseStatistics]) -> dict[str, list[str]]:
    """Return the sources of the published values, each with the names of its cases."""
    found: dict[str, list[str]] = {}
    for case in cases:
        for source in dict.fromkeys(each.source for each in case.published if each.source):
            found.setdefault(source, []).append(case.name)
    return found


def values(published: Sequence[PublishedResult], metric: str) -> list[float]:
    """Return all readings of a metric."""
    return [value for each in published if each.figure == metric for value in each.values]

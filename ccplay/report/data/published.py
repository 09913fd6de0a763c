"""What others published: of one case, or of all points of a matrix without saying of which."""

from __future__ import annotations

from collections.abc import Sequence

from ccplay.analysis.results import CaseStatistics, PublishedResult


def common(family: Sequence[CaseStatistics]) -> list[PublishedResult]:
    """Return what was published of a whole family: every point of its matrix has it alike.

    To put it beside each point would say that each was published with this value.
    """
    if not family or not all(case.parameters for case in family):
        return []
    first, *others = family
    return [each for each in first.published if all(each in case.published for case in others)]


def own(case: CaseStatistics, family: Sequence[CaseStatistics]) -> list[PublishedResult]:
    """Return what was published of this very case."""
    shared = common(family)
    return [each for each in case.published if each not in shared]


def sources(cases: Sequence[CaseStatistics]) -> dict[str, list[str]]:
    """Return where what was published of these cases can be read, each with its cases' names."""
    found: dict[str, list[str]] = {}
    for case in cases:
        for source in dict.fromkeys(each.source for each in case.published if each.source):
            found.setdefault(source, []).append(case.name)
    return found


def values(published: Sequence[PublishedResult], figure: str) -> list[float]:
    """Return all readings of a figure."""
    return [value for each in published if each.figure == figure for value in each.values]

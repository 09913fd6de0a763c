"""Families of cases: the points of one matrix, which share a name and axes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ccplay.analysis.results import CaseStatistics

_MOST_NAMED = 3
"""Largest number of cases that a list names; the others are counted."""


def by_family(
    cases: Iterable[CaseStatistics],
) -> dict[tuple[str, tuple[str, ...]], list[CaseStatistics]]:
    """Return cases grouped by the common part of their names and by their axes."""
    families: dict[tuple[str, tuple[str, ...]], list[CaseStatistics]] = {}
    for case in cases:
        families.setdefault((family_of(case), tuple(case.parameters)), []).append(case)
    return families


def family_of(case: CaseStatistics) -> str:
    """Return the name of a case without its point in the matrix; empty if nothing is left."""
    if not case.parameters:
        return ""
    # The point is the end of the name: ``CASE, delay 50 ms, limit 10``.
    words = case.name.split(", ")
    return ", ".join(words[: max(len(words) - len(case.parameters), 0)])


def some_of(names: Sequence[str], cases: Sequence[CaseStatistics]) -> str:
    """Return the names of some cases as text, whole families by one name; empty for all cases."""
    if {case.name for case in cases} <= set(names):
        return ""
    shown: list[str] = []
    for (family, _), members in by_family(cases).items():
        inside = [case.name for case in members if case.name in names]
        shown += [family] if family and len(inside) == len(members) else inside
    more = f" and {len(shown) - _MOST_NAMED} more" if len(shown) > _MOST_NAMED else ""
    return ", ".join(shown[:_MOST_NAMED]) + more

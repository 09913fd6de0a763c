"""The findings, checks and troubles of a report's page as rows of text."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ccplay.analysis.metrics import metric_of
from ccplay.analysis.results import (
    CaseStatistics,
    Result,
)
from ccplay.report.data.families import by_family, some_of
from ccplay.report.data.findings import Column, Finding, Reading, columns, findings, readings
from ccplay.report.data.material import Run, as_written
from ccplay.report.data.naming import words
from ccplay.report.data.verdicts import Verdict, misbehaviours, run_name, unmeasured, verdicts
from ccplay.state.columns import UNKNOWN


class Cell(msgspec.Struct, frozen=True):
    """Our value of a metric in a case and the published ones, as text."""

    ours: str
    spread: str
    """Standard deviation; empty for a single run."""
    theirs: str
    beside: str


class CaseRow(msgspec.Struct, frozen=True):
    """The row of a case in a family's table."""

    labels: list[str]
    runs: int
    cells: list[Cell]


class Family(msgspec.Struct, frozen=True):
    """The table of a family of cases, which share a name and axes."""

    name: str
    heads: list[str]
    columns: list[Column]
    rows: list[CaseRow]
    published: list[str]
    """Published values of the family as a whole, a cell per column; empty if there are none."""


def families(result: Result) -> list[Family]:
    """Return the findings as tables: a row per case, a column per metric."""
    by_case: dict[str, dict[str, Finding]] = {}
    for found in findings(result):
        by_case.setdefault(found.case.name, {})[found.metric] = found
    whole: dict[str, dict[str, Reading]] = {}
    for reading in readings(result):
        whole.setdefault(reading.family, {})[reading.metric] = reading
    return [
        _family(name, cases, by_case, whole.get(name, {}) if axes else {})
        for (name, axes), cases in by_family(result.statistics).items()
    ]


def _family(
    name: str,
    cases: Sequence[CaseStatistics],
    by_case: dict[str, dict[str, Finding]],
    whole: dict[str, Reading],
) -> Family:
    axes = list(cases[0].parameters)
    heads = columns(found for case in cases for found in by_case.get(case.name, {}).values())
    rows = []
    for case in cases:
        mine = by_case.get(case.name, {})
        cells = [_cell(column, mine.get(column.metric)) for column in heads]
        labels = [as_written(case.parameters[axis]) for axis in axes] or [case.name]
        rows.append(CaseRow(labels, case.runs, cells))
    published = [column.theirs(whole.get(column.metric)) for column in heads] if whole else []
    return Family(name, axes or ["case"], heads, rows, published)


def _cell(column: Column, found: Finding | None) -> Cell:
    return Cell(
        column.ours(found), column.spread(found), column.theirs(found), column.beside(found)
    )


def notes(result: Result) -> list[str]:
    """Return the reasons why our values may differ from published ones, each once for a metric."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for each in findings(result):
        for note in each.notes:
            grouped.setdefault((words(each.metric).text, note), []).append(each.case.name)
    of_families = [
        ", ".join(part for part in (each.family, words(each.metric).text) if part) + f": {note}"
        for each in readings(result)
        for note in each.notes
    ]
    return of_families + [
        f"{first}{f' and {len(others)} more' if others else ''}, {metric}: {note}"
        for (metric, note), (first, *others) in grouped.items()
    ]


class Expected(msgspec.Struct, frozen=True):
    """An expectation of the scenario, and its outcome."""

    cases: str
    """Names of the cases that were checked; empty for all cases."""
    words: str
    """Printed name of the metric."""
    verdict: Verdict
    failed: list[str]
    """Runs in which the expectation did not hold, with their values."""


def checks(result: Result) -> list[Expected]:
    """Return each expectation once, with the runs in which it did not hold."""
    return [
        Expected(
            some_of(each.cases, result.statistics),
            words(each.metric).text,
            each,
            [f"{run_name(failure.run)}: {failure.value}" for failure in each.failed],
        )
        for each in verdicts(result.cases)
    ]


def troubles(result: Result) -> list[str]:
    """Return the reasons to doubt the values: failures, and runs that can't be trusted."""
    problems = [str(each) for each in result.machine_effects if each.differs]
    problems += unmeasured(result.statistics, result.cases)
    for run in result.cases:
        name = f"{run.name}, run {run.repeat}"
        problems += [f"{name}: {each}" for each in (*run.errors, *misbehaviours(run))]
        if run.interrupted:
            problems.append(f"{name}: interrupted")
        if not run.health.trustworthy:
            problems.append(f"{name}: {'; '.join(run.health.reasons)}")
    if result.discarded:
        problems.append(
            f"{len(result.discarded)} runs were repeated because their lab did not keep time; "
            "see below."
        )
    return problems


def values(run: Run, heads: Sequence[Column]) -> list[str]:
    """Return the values of metrics in one run as text."""
    return [
        UNKNOWN if (value := metric_of(run.result, each.metric)) is None else each.unit.write(value)
        for each in heads
    ]

"""Repeated runs as tables: a row per case, a column per metric, means with their intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from ccplay.analysis.results import CaseResult, CaseStatistics, PublishedResult, Result
from ccplay.analysis.statistics import CONFIDENCE
from ccplay.report.data.amounts import Unit, unit
from ccplay.report.data.families import by_family, family_of, some_of
from ccplay.report.data.findings import published_of, published_of_all, sources, values
from ccplay.report.data.verdicts import (
    Verdict,
    misbehaviours,
    run_name,
    unmeasured,
    verdicts,
)
from ccplay.report.terminal.column_heads import GAP, Column, deal, table

_UNKNOWN = "–"
_MOST_FAILURES = 3
"""Largest number of failed runs listed under an expectation; the others are counted."""
_SUFFIXES = ("_bps", "_ms", "_s")
"""Endings of metric names that stand for a unit."""


class _CaseRow(msgspec.Struct, frozen=True):
    """A row of a table: the measured values of a case, or the published ones."""

    case: CaseStatistics
    published: list[PublishedResult] | None = None
    """Published results; None for measured values."""


def in_families(result: Result) -> list[CaseStatistics]:
    """Return the cases to show as rows of a common table rather than with tables of their own."""
    repeated = any(run.repeat > 1 for run in result.cases)
    return [case for case in result.statistics if repeated or case.parameters]


def family_tables(result: Result, width: int) -> list[RenderableType]:
    """Return the tables of every family of cases, several per family if ``width`` is too small.

    The last lines apply to all tables.
    """
    cases = in_families(result)
    families: dict[tuple[object, ...], list[CaseStatistics]] = {}
    for key, members in by_family(cases).items():
        for case in members:
            families.setdefault((key, tuple(case.reported)), []).append(case)
    shown = [_family(each, result, width) for each in families.values()]
    return [*shown, *_closing(cases, result)]


def _family(cases: Sequence[CaseStatistics], result: Result, width: int) -> RenderableType:
    rows = list(_rows(cases))
    head = Text(family_of(cases[0]), style="bold")
    labels = _labels(rows)
    if len({case.runs for case in cases}) == 1:
        head.append(f"  {run_count(cases[0].runs)} each", style="dim")
    else:
        labels.append(_label("n", rows, lambda case: str(case.runs)))
    metrics = [_metric(metric, cases, rows) for metric in cases[0].reported]
    theirs = [number for number, row in enumerate(rows) if row.published is not None]
    parts = [
        Padding(table(labels, some, theirs), (1, 0, 0, GAP))
        for some in deal(labels, metrics, width, GAP)
    ]
    names = {case.name for case in cases}
    remarks = _remarks(cases, [run for run in result.cases if run.name in names])
    return Group(*([head] if head.plain else []), *parts, *([Text(), *remarks] if remarks else []))


def _rows(cases: Sequence[CaseStatistics]) -> Iterator[_CaseRow]:
    """Yield the rows of a table; values published for all cases follow once."""
    shared = published_of_all(cases)
    for case in cases:
        yield _CaseRow(case)
        if published := published_of(case, shared):
            yield _CaseRow(case, published)
    if shared:
        yield _CaseRow(cases[0], shared)


def _labels(rows: Sequence[_CaseRow]) -> list[Column]:
    """Return the columns that label rows: the axes of the matrix, or the case."""
    axes = rows[0].case.parameters
    first, *others = [_label(axis, rows, _value_of(axis)) for axis in axes] or [
        _label("case", rows, lambda case: case.name)
    ]
    named = [
        cell if row.published is None else "published"
        for cell, row in zip(first.cells, rows, strict=True)
    ]
    return [Column(first.head, named), *others]


def _label(head: str, rows: Sequence[_CaseRow], label: Callable[[CaseStatistics], str]) -> Column:
    return Column(head, [label(row.case) if row.published is None else "" for row in rows])


def _metric(metric: str, cases: Sequence[CaseStatistics], rows: Sequence[_CaseRow]) -> Column:
    means = [case.metrics[metric].mean for case in cases if metric in case.metrics]
    fitting = unit(metric, means)
    group, _, last = metric.rpartition(".")
    return Column(
        _head(last, fitting), [_cell(metric, row, fitting) for row in rows], group, fitting.name
    )


def _head(name: str, fitting: Unit) -> str:
    """Return a metric's name, one word per line, without its unit."""
    ending = next((each for each in _SUFFIXES if fitting.name and name.endswith(each)), "")
    return name.removesuffix(ending).replace("_", "\n")


def _cell(metric: str, row: _CaseRow, fitting: Unit) -> str:
    """Return measured or published values as text: a single value, or their range."""
    if row.published is not None:
        theirs = values(row.published, metric)
        ends = dict.fromkeys(fitting.write(each(theirs)) for each in (min, max) if theirs)
        return " to ".join(ends)
    if (found := row.case.metrics.get(metric)) is None:
        return _UNKNOWN
    few = f" (n {found.n})" if found.n < row.case.runs else ""
    return fitting.write_statistic(found) + few


def _value_of(axis: str) -> Callable[[CaseStatistics], str]:
    def value_of(case: CaseStatistics) -> str:
        value = case.parameters[axis]
        return str(value).lower() if isinstance(value, bool) else str(value)

    return value_of


def run_count(count: int) -> str:
    """Return a number of runs as text: ``1 run``."""
    return f"{count} run{'s' if count != 1 else ''}"


# --- remarks on a family, and on all --------------------------------------------------------------


def _remarks(cases: Sequence[CaseStatistics], runs: Sequence[CaseResult]) -> list[RenderableType]:
    notes = dict.fromkeys(
        f"published {each.metric}: {each.note}"
        for case in cases
        for each in case.published
        if each.note
    )
    remarks: list[RenderableType] = [_line(f"published: {each}", "dim") for each in sources(cases)]
    remarks += [_line(line, "dim") for line in notes]
    remarks += [_line(f"warning: {each}", "yellow") for each in unmeasured(cases, runs)]
    for run in runs:
        name = run_name(run)
        remarks += [_line(f"{name}: error: {error}", "red") for error in run.errors]
        remarks += [_line(f"warning: {name}: {each}", "yellow") for each in misbehaviours(run)]
        if not run.health.trustworthy and not run.interrupted:
            reasons = ", ".join(run.health.reasons)
            remarks.append(_line(f"warning: {name}: {reasons}", "yellow"))
    return remarks


def _closing(cases: Sequence[CaseStatistics], result: Result) -> list[RenderableType]:
    """Return lines on the meaning of ± and the verdicts on the scenario's expectations."""
    names = {case.name for case in cases}
    lines = check_lines([run for run in result.cases if run.name in names], cases)
    if any(found.n > 1 for case in cases for found in case.metrics.values()):
        meaning = (
            f"± is the half width of the mean's {CONFIDENCE:.0%} confidence interval (Student's t)"
        )
        lines.insert(0, (meaning, "dim"))
    return [Group(*(_line(*each) for each in lines))] if lines else []


def check_lines(
    runs: Sequence[CaseResult], cases: Sequence[CaseStatistics] = ()
) -> list[tuple[str, str]]:
    """Return lines with their styles: each expectation, its reason, and the runs in which it held.

    Cases are named only if an expectation concerns not all of ``cases``.
    """
    return [
        line
        for verdict in verdicts(runs)
        for line in _check_lines(verdict, some_of(verdict.cases, cases))
    ]


def _check_lines(verdict: Verdict, where: str) -> Iterator[tuple[str, str]]:
    style = "red" if verdict.failed else "green"
    reason = f" ({verdict.why})" if verdict.why else ""
    metric = f"{where}: {verdict.metric}" if where else verdict.metric
    if verdict.total == 1:
        held = "failed" if verdict.failed else "held"
        yield f"{metric} is {verdict.value}, expected {verdict.text}: {held}{reason}", style
        return
    held = f"held in {verdict.held} of {verdict.total} runs"
    yield f"{metric}, expected {verdict.text}: {held}{reason}", style
    for each in verdict.failed[:_MOST_FAILURES]:
        yield f"  failed: {run_name(each.run)}: {each.value}", "red"
    if len(verdict.failed) > _MOST_FAILURES:
        yield f"  … and {len(verdict.failed) - _MOST_FAILURES} more", "red"


def _line(text: str, style: str) -> Padding:
    return Padding(Text(text, style=style), (0, 0, 0, GAP))

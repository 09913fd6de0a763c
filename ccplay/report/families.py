"""Repeated runs as tables: a row a case, a column a figure, means with how sure they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ccplay.measure.results import CaseResult, CaseStatistics, Check, Result
from ccplay.measure.statistics import CONFIDENCE
from ccplay.report.amounts import Unit, unit, write
from ccplay.report.misbehaviour import misbehaviours

_UNKNOWN = "–"
_GAP = 2
_MOST_TOLD = 3


@dataclass(frozen=True, slots=True)
class _Column:
    """What stands below one head: for each case a cell, and what was published beside it."""

    head: str
    cells: list[str]
    published: list[str]

    @property
    def width(self) -> int:
        texts = (self.head, *self.cells, *self.published)
        return max(cell_len(line) for text in texts for line in text.split("\n"))


def in_families(result: Result) -> list[CaseStatistics]:
    """Return the cases that are better shown as rows together than each with tables of its own."""
    repeated = any(run.repeat > 1 for run in result.cases)
    return [case for case in result.statistics if repeated or case.parameters]


def family_tables(result: Result, width: int) -> list[RenderableType]:
    """Return a table, or several where ``width`` is short, for every family of cases."""
    families: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[CaseStatistics]] = {}
    for case in in_families(result):
        key = (family_of(case), tuple(case.parameters), tuple(case.reported))
        families.setdefault(key, []).append(case)
    return [
        _family(name, cases, [run for run in result.cases if run.name in _names(cases)], width)
        for (name, _, _), cases in families.items()
    ]


def family_of(case: CaseStatistics) -> str:
    """Return the name of a case without its point in the matrix; empty where that is all of it."""
    if not case.parameters:
        return ""
    # The words of a point are its last ones: ``CASE, delay 50 ms, limit 10``.
    words = case.name.split(", ")
    return ", ".join(words[: max(len(words) - len(case.parameters), 0)])


def _names(cases: Iterable[CaseStatistics]) -> set[str]:
    return {case.name for case in cases}


def _family(
    name: str, cases: Sequence[CaseStatistics], runs: Sequence[CaseResult], width: int
) -> RenderableType:
    labels = [*_labels(cases), _column("n", [str(each.runs) for each in cases])]
    figures = [_figure(figure, cases) for figure in cases[0].reported]
    parts = [
        Padding(_table(labels, some), (1 if name or number else 0, 0, 0, _GAP))
        for number, some in enumerate(_fitting(labels, figures, width))
    ]
    head = [Text(name, style="bold")] if name else []
    return Group(*head, *parts, Text(), *_remarks(cases, runs))


def _labels(cases: Sequence[CaseStatistics]) -> list[_Column]:
    """Return what names each row: the values of the matrix, or the case."""
    axes = cases[0].parameters
    if axes:
        columns = [_column(axis, [_word(each.parameters[axis]) for each in cases]) for axis in axes]
    else:
        columns = [_column("case", [each.name for each in cases])]
    # The word stands below the first label.
    columns[0].published[:] = ["published"] * len(cases)
    return columns


def _column(head: str, cells: list[str]) -> _Column:
    return _Column(head, cells, [""] * len(cells))


def _figure(figure: str, cases: Sequence[CaseStatistics]) -> _Column:
    means = [case.figures[figure].mean for case in cases if figure in case.figures]
    fitting = unit(figure, means)
    group, _, last = figure.rpartition(".")
    head = "\n".join(word for word in (f"{group}." if group else "", last, fitting.name) if word)
    return _Column(
        head,
        [_measured(figure, case, fitting) for case in cases],
        [_published(figure, case, fitting) for case in cases],
    )


def _measured(figure: str, case: CaseStatistics, fitting: Unit) -> str:
    if (found := case.figures.get(figure)) is None:
        return _UNKNOWN
    few = f" (n {found.n})" if found.n < case.runs else ""
    return fitting.write_statistic(found) + few


def _published(figure: str, case: CaseStatistics, fitting: Unit) -> str:
    """Return what others measured of a figure: one value, or the least and the greatest."""
    values = [value for each in case.published if each.figure == figure for value in each.values]
    if not values:
        return ""
    low, high = fitting.write(min(values)), fitting.write(max(values))
    return low if low == high else f"{low} to {high}"


def _fitting(
    labels: Sequence[_Column], figures: Sequence[_Column], width: int
) -> list[list[_Column]]:
    """Deal figures to as many tables as it takes for each to fit."""
    room = width - _GAP - sum(each.width + _GAP for each in labels)
    tables: list[list[_Column]] = [[]]
    left = room
    for figure in figures:
        if tables[-1] and figure.width > left:
            tables.append([])
            left = room
        tables[-1].append(figure)
        left -= figure.width + _GAP
    return tables


def _table(labels: Sequence[_Column], figures: Sequence[_Column]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="dim")
    for number, each in enumerate((*labels, *figures)):
        plain = number < len(labels) - 1
        table.add_column(
            escape(each.head),
            justify="left" if plain else "right",
            vertical="bottom",
            no_wrap=number > 0,
        )
    for row, cells in enumerate(zip(*(each.cells for each in (*labels, *figures)), strict=True)):
        table.add_row(*map(escape, cells))
        if any(each.published[row] for each in figures):
            published = (each.published[row] for each in (*labels, *figures))
            table.add_row(*map(escape, published), style="dim")
    return table


def _word(value: str | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# --- what there is to say of a family -----------------------------------------------------------


def _remarks(cases: Sequence[CaseStatistics], runs: Sequence[CaseResult]) -> list[RenderableType]:
    lines = [f"± is half of the {CONFIDENCE:.0%} confidence interval of the mean (Student's t)"]
    notes = dict.fromkeys(
        f"published {each.figure}: {each.note}"
        for case in cases
        for each in case.published
        if each.note
    )
    told: list[RenderableType] = [_line(line, "dim") for line in (*lines, *notes)]
    told += [_line(line, style) for line, style in check_lines(runs)]
    for run in runs:
        told += [_line(f"{_of(run)}: error: {error}", "red") for error in run.errors]
        wrong = misbehaviours(run)
        told += [_line(f"take care: {_of(run)}: {each}", "yellow") for each in wrong]
        if not run.health.trustworthy and not run.interrupted:
            reasons = ", ".join(run.health.reasons)
            told.append(_line(f"take care: {_of(run)}: {reasons}", "yellow"))
    return told


def check_lines(runs: Sequence[CaseResult]) -> list[tuple[str, str]]:
    """Return a line and its style for every expectation: in how many runs it held, and why."""
    groups: dict[tuple[str, str, str], list[tuple[CaseResult, Check]]] = {}
    for run in runs:
        for check in run.checks:
            key = (check.figure, check.text, check.why)
            groups.setdefault(key, []).append((run, check))
    return [line for key, members in groups.items() for line in _check_lines(*key, members)]


def _check_lines(
    figure: str, text: str, why: str, members: Sequence[tuple[CaseResult, Check]]
) -> Iterator[tuple[str, str]]:
    failed = [(run, check) for run, check in members if not check.ok]
    style = "red" if failed else "green"
    reason = f" ({why})" if why else ""
    if len(members) == 1:
        held = "failed" if failed else "held"
        value = _value(members[0][1])
        yield f"{figure} is {value}, expected {text}: {held}{reason}", style
        return
    held = f"held in {len(members) - len(failed)} of {len(members)} runs"
    yield f"{figure}, expected {text}: {held}{reason}", style
    for run, check in failed[:_MOST_TOLD]:
        yield f"  failed: {_of(run)}: {_value(check)}", "red"
    if len(failed) > _MOST_TOLD:
        yield f"  … and {len(failed) - _MOST_TOLD} more", "red"


def _value(check: Check) -> str:
    return "missing" if check.value is None else write(check.figure, check.value)


def _of(run: CaseResult) -> str:
    again = f", attempt {run.attempt}" if run.attempt > 1 else ""
    return f"{run.name}, run {run.repeat}{again}"


def _line(text: str, style: str) -> Padding:
    return Padding(Text(text, style=style), (0, 0, 0, _GAP))

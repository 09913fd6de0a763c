"""Tables of results: the rows that terminal and page print, and the files of a report."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import msgspec

from ccplay.analysis.results import INTERFACES, QUEUES, CaseResult, QueueResult, Result
from ccplay.analysis.statistics import Statistic
from ccplay.model.columns import ResultTable
from ccplay.report.data.findings import family_findings, findings, verdicts
from ccplay.report.data.naming import in_order
from ccplay.traffic import KINDS, TRAFFIC

# --- the tables of runs, as described by each kind of traffic, by queues and by interfaces --------

Rows: TypeAlias = list[tuple[CaseResult, object]]
"""Rows of a table of results, each with its run."""

_BUSY_PACKETS = 2


def result_tables(runs: Sequence[CaseResult]) -> list[tuple[ResultTable, Rows]]:
    """Return the tables of runs with their rows; empty ones are left out.

    Connections come first, then queues, other traffic and interfaces.
    """
    found: dict[ResultTable, Rows] = {}
    for connection in (True, False):
        for kind in (each for each in TRAFFIC if each.connection is connection):
            for table in KINDS[kind.name].tables:
                found.setdefault(table, []).extend(_rows(table, runs, kind.group))
        if connection:
            found[QUEUES] = [(run, queue) for run in runs for queue in _busy(run)]
    found[INTERFACES] = list(_rows(INTERFACES, runs, "interfaces"))
    return [(table, rows) for table, rows in found.items() if rows]


def _rows(
    table: ResultTable, runs: Sequence[CaseResult], group: str
) -> Iterator[tuple[CaseResult, object]]:
    """Yield rows by run, then by name, because the first flow to start differs between runs."""
    for run in runs:
        members = {each.id: each for each in getattr(run, group)}
        names = in_order(members) if group != "interfaces" else members
        yield from ((run, row) for name in names for row in table.rows(members[name]))


def _busy(run: CaseResult) -> list[QueueResult]:
    """Return the queues in which packets waited or were dropped; the first queue if there is none.

    This leaves out an idle return path.
    """
    return [q for q in run.queues if q.drops or (q.qlen_p99 or 0) >= _BUSY_PACKETS] or run.queues[
        :1
    ]


# --- tables of a report as files: plain rows, with units in column names --------------------------

Cell: TypeAlias = str | int | float | bool | None
_OBEYED = ("=", "+", "-", "@", "\t", "\r")
"""First characters of cells that spreadsheets treat as formulas."""
MOST_IN_MARKDOWN = 2000
"""Largest number of rows of a table that is also written as Markdown, which people read."""


class ReportTable(msgspec.Struct, frozen=True):
    """A table of cells."""

    name: str
    columns: list[str]
    rows: list[list[Cell]]

    @classmethod
    def of(cls, name: str, rows: Sequence[Mapping[str, Cell]]) -> ReportTable:
        """Return a table with the columns of all rows, in order of appearance."""
        columns = list(dict.fromkeys(key for row in rows for key in row))
        return cls(name, columns, [[row.get(key) for key in columns] for row in rows])

    def files(self) -> Iterator[tuple[str, str]]:
        """Yield the extension and the text of each of the table's files."""
        if len(self.rows) <= MOST_IN_MARKDOWN:
            yield "md", self.markdown()
        yield "csv", self.csv()
        yield "json", self.json()

    def csv(self) -> str:
        """Return the table as CSV (RFC 4180), with numbers in full; unknown values are empty."""
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\r\n")
        writer.writerow(map(harmless, self.columns))
        writer.writerows(map(harmless, row) for row in self.rows)
        return text.getvalue()

    def json(self) -> str:
        """Return the table as JSON: a list of objects, one per row."""
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return msgspec.json.format(msgspec.json.encode(rows)).decode() + "\n"

    def markdown(self) -> str:
        """Return the table as Markdown, with fractions to six significant digits."""
        head = [_markdown(each) for each in self.columns]
        rule = [
            "---:"
            if all(
                isinstance(row[i], int | float | None) and not isinstance(row[i], bool)
                for row in self.rows
            )
            else "---"
            for i in range(len(head))
        ]
        lines = [head, rule, *([_markdown(cell) for cell in row] for row in self.rows)]
        return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def harmless(cell: Cell) -> Cell:
    """Return a cell that no spreadsheet evaluates, because a name may look like a formula."""
    if isinstance(cell, str) and cell.startswith(_OBEYED):
        return f"'{cell}"
    return cell


def _markdown(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:.6g}"
    text = str(cell).lower() if isinstance(cell, bool) else str(cell)
    if text.isalnum():
        return text
    for sign in "\\`*_[]<>|":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())


def tables(result: Result) -> Iterator[ReportTable]:
    """Yield all tables of a report; empty ones are left out."""
    makers: dict[str, Callable[[], Sequence[Mapping[str, Cell]]]] = {
        "findings": lambda: _findings(result),
        "statistics": lambda: _statistics(result),
        "checks": lambda: _checks(result),
        **{kind: partial(_members, result.cases, kind) for kind in _MEMBERS},
        "checkpoints": lambda: _checkpoints(result.cases),
        "health": lambda: _health([*result.cases, *result.discarded]),
    }
    for name, make in makers.items():
        if rows := make():
            yield ReportTable.of(name, rows)


_LISTS = {"queues", "interfaces", "directions", *(kind.group for kind in TRAFFIC)}
_MEMBERS = tuple(name for name in CaseResult.__struct_fields__ if name in _LISTS)


def _findings(result: Result) -> list[dict[str, Cell]]:
    """Return a row per metric of a case; values published for a family have rows of their own."""
    ours: list[dict[str, Cell]] = [
        {
            "case": each.case.name,
            **each.case.parameters,
            "figure": each.metric,
            **_statistic_cells(each.statistic),
            "published": _numbers(each.published),
            "difference": each.difference,
            "notes": " ".join(each.notes) or None,
        }
        for each in findings(result)
    ]
    theirs: list[dict[str, Cell]] = [
        {
            "case": each.family,
            "figure": each.metric,
            "n": 0,
            "published": _numbers(each.published),
            "notes": " ".join(each.notes) or None,
        }
        for each in family_findings(result)
    ]
    return ours + theirs


def _statistic_cells(found: Statistic | None) -> dict[str, Cell]:
    if found is None:
        return {"n": 0, "mean": None, "sd": None, "ci95_low": None, "ci95_high": None}
    interval: dict[str, Cell] = {"ci95_low": found.low, "ci95_high": found.high}
    return {"n": found.n, "mean": found.mean, "sd": found.sd, **interval}


def _numbers(values: Sequence[float]) -> str | None:
    return ", ".join(f"{value:g}" for value in values) or None


def _statistics(result: Result) -> list[dict[str, Cell]]:
    return [
        {"case": case.name, **case.parameters, "figure": metric, **_statistic_cells(found)}
        for case in result.statistics
        for metric, found in case.metrics.items()
    ]


def _checks(result: Result) -> list[dict[str, Cell]]:
    """Return a row per case and expectation."""
    runs: dict[str, list[CaseResult]] = {}
    for run in result.cases:
        runs.setdefault(run.name, []).append(run)
    return [
        {
            "case": case,
            "figure": each.check.metric,
            "expected": each.text,
            "why": each.check.why,
            "held_in_runs": each.held,
            "of_runs": len(each.runs),
            "failed": "; ".join(f"run {f.run.repeat}: {f.value}" for f in each.failed) or None,
        }
        for case, own in runs.items()
        for each in verdicts(own)
    ]


def _members(runs: Iterable[CaseResult], kind: str) -> list[dict[str, Cell]]:
    return [
        {**_run(run), **_flat(msgspec.to_builtins(each))}
        for run in runs
        for each in getattr(run, kind, ())
    ]


def _checkpoints(runs: Iterable[CaseResult]) -> list[dict[str, Cell]]:
    return [
        {**_run(run), **_flat(msgspec.to_builtins(run.checkpoint))}
        for run in runs
        if run.checkpoint is not None
    ]


def _health(runs: Iterable[CaseResult]) -> list[dict[str, Cell]]:
    return [
        {**_run(run), "attempt": run.attempt, **_flat(msgspec.to_builtins(run.health))}
        for run in runs
    ]


def _run(run: CaseResult) -> dict[str, Cell]:
    return {"case": run.name, **run.parameters, "repeat": run.repeat}


def _flat(value: Mapping[str, Any], prefix: str = "") -> dict[str, Cell]:
    """Return a nested object's cells by dotted path, such as ``bytes.1``; lists become text."""
    cells: dict[str, Cell] = {}
    for key, each in value.items():
        if isinstance(each, Mapping):
            cells |= _flat(each, f"{prefix}{key}.")
        elif isinstance(each, list):
            cells[prefix + key] = "; ".join(_word(part) for part in each) or None
        else:
            cells[prefix + key] = each
    return cells


def _word(part: Any) -> str:
    return " ".join(str(each) for each in part.values()) if isinstance(part, dict) else str(part)

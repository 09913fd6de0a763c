"""Tables of runs on a report's page: results, and the health of each run's lab."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from ccplay.analysis.results import Result
from ccplay.report.data.result_tables import Rows, result_tables
from ccplay.state.columns import UNKNOWN, Table

MOST_ROWS = 60
"""Largest number of rows in a table on the page; its file has all rows."""
Head: TypeAlias = tuple[str, str]
"""Name and unit of a column."""


class Grid(msgspec.Struct, frozen=True):
    """A table of text."""

    title: str
    heads: list[Head]
    rows: list[list[str]]
    left: list[bool]
    """Whether each column has words, which are left-aligned, rather than numbers."""
    left_out: int = 0


def grids(result: Result) -> list[Grid]:
    """Return the tables of runs that have rows."""
    several = len(result.cases) > 1
    return [_grid(table, rows, several) for table, rows in result_tables(result.cases)]


def _grid(table: Table, rows: Rows, several: bool) -> Grid:
    extra: list[Head] = [("case", ""), ("run", "")] if several else []
    cells = [
        ([run.name, str(run.repeat)] if several else [])
        + [column.cell(row) for column in table.columns]
        for run, row in rows[:MOST_ROWS]
    ]
    return Grid(
        table.title,
        [*extra, *((column.title, column.unit) for column in table.columns)],
        cells,
        [*(head[0] == "case" for head in extra), *(column.is_words for column in table.columns)],
        max(len(rows) - MOST_ROWS, 0),
    )


def health(result: Result) -> Grid:
    """Return the timing of each run's lab."""
    heads: list[Head] = [
        ("case", ""),
        ("run", ""),
        ("lab", ""),
        ("samples", ""),
        ("missed", ""),
        ("late", "worst p99, ms"),
        ("cores busy", "%"),
        ("steal", "%"),
        ("delay late", "p99, ms"),
    ]
    rows = []
    for run in [*result.cases, *result.discarded][: 4 * MOST_ROWS]:
        found = run.health
        again = f" (attempt {run.attempt})" if run in result.discarded else ""
        rows.append(
            [
                run.name,
                f"{run.repeat}{again}",
                "kept time" if found.trustworthy else "; ".join(found.reasons),
                f"{found.ticks:,}",
                f"{found.missed:,}",
                _or(found.late_p99_us, lambda us: f"{us / 1000:.1f}"),
                _or(found.host_cpu, _percent),
                _or(found.steal, _percent),
                _or(found.delay_late_p99_us, lambda us: f"{us / 1000:.2f}"),
            ]
        )
    return Grid("", heads, rows, [])


def _or(value: float | None, write: Callable[[float], str]) -> str:
    return UNKNOWN if value is None else write(value)


def _percent(share: float) -> str:
    return f"{share * 100:.0f}"

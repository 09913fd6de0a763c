"""The tables of runs, as described by each kind of traffic, by queues and by interfaces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from ccplay.analysis.results import INTERFACES, QUEUES, CaseResult, QueueResult
from ccplay.model.traffic import TRAFFIC
from ccplay.report.data.naming import in_order
from ccplay.state.columns import Table
from ccplay.state.kinds import KEPT

Rows: TypeAlias = list[tuple[CaseResult, object]]
"""Rows of a table of results, each with its run."""

_BUSY_PACKETS = 2


def result_tables(runs: Sequence[CaseResult]) -> list[tuple[Table, Rows]]:
    """Return the tables of runs with their rows; empty ones are left out.

    Connections come first, then queues, other traffic and interfaces.
    """
    found: dict[Table, Rows] = {}
    for connection in (True, False):
        for kind in (each for each in TRAFFIC if each.connection is connection):
            for table in KEPT[kind.name].tables:
                found.setdefault(table, []).extend(_rows(table, runs, kind.group))
        if connection:
            found[QUEUES] = [(run, queue) for run in runs for queue in _busy(run)]
    found[INTERFACES] = list(_rows(INTERFACES, runs, "interfaces"))
    return [(table, rows) for table, rows in found.items() if rows]


def _rows(
    table: Table, runs: Sequence[CaseResult], group: str
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

"""A result as tables without empty columns, for terminals 80 or 120 columns wide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rich.console import (
    Console,
    ConsoleOptions,
    Group,
    JustifyMethod,
    RenderableType,
    RenderResult,
)
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ccplay.analysis.checkpoint import Checkpoint
from ccplay.analysis.results import CaseResult, Machine, Result
from ccplay.report.data.result_tables import Rows, result_tables
from ccplay.report.data.verdicts import misbehaviours, unmeasured
from ccplay.report.terminal.repeats_table import check_lines, family_tables, in_families, run_count
from ccplay.state.columns import UNKNOWN, Column
from ccplay.state.columns import Table as Described


def show(result: Result, console: Console) -> None:
    """Print a whole result."""
    if result.machine is not None:
        console.print(Text(_machine_line(result.machine), style="dim"))
    if result.machines:
        runs = Counter(run.machine for run in result.cases)
        machines = ", ".join(
            f"{each.name} ({run_count(runs[each.name])})" for each in result.machines
        )
        console.print(Text(f"measured on {machines}", style="dim"))
    of_case = {each.name: each for each in result.statistics}
    together = {case.name for case in in_families(result)}
    for case in result.cases:
        if case.name not in together:
            console.print()
            console.print(case_table(case))
            for each in unmeasured([of_case[case.name]], [case]) if case.name in of_case else ():
                console.print(Text(f"  warning: {each}", style="yellow"))
    for family in family_tables(result, console.width):
        console.print()
        console.print(family)
    for effect in result.machine_effects:
        if effect.differs:
            console.print(Text(f"\nwarning: {effect}", style="yellow"))


def case_table(case: CaseResult) -> RenderableType:
    """Return one run of a case: a heading, a table for each kind of traffic, and remarks."""
    head = Text(case.name, style="bold")
    head.append(f"  {case.duration_s:.1f} s", style="dim")
    if case.interrupted:
        head.append("  interrupted: metrics until then", style="bold yellow")
    tables = [_table(*each) for each in result_tables([case]) if each[0].in_brief]
    body = [Padding(table, (1, 0, 0, 2)) for table in tables]
    race = [] if case.checkpoint is None else [_checkpoint(case.checkpoint)]
    return Group(head, *body, *race, *_remarks(case))


def _checkpoint(at: Checkpoint) -> Padding:
    """Return each flow's bytes when the first flow was done."""
    words = [f"{name} has {size:,} bytes" for name, size in at.bytes.items()]
    line = Text(f"checkpoint at {at.elapsed_s:.2f} s: flow {', flow '.join(words)}")
    if at.ratio is not None:
        line.append(f"; ratio {at.ratio:.2f}")
    return Padding(line, (1, 0, 0, 2))


def _remarks(case: CaseResult) -> list[Text]:
    """Return remarks: outcomes of expectations, errors, and reasons to doubt the metrics."""
    remarks = [Text(f"  {line}", style=style) for line, style in check_lines([case])]
    remarks += [Text(f"  error: {error}", style="red") for error in case.errors]
    remarks += [Text(f"  warning: {each}", style="yellow") for each in misbehaviours(case)]
    remarks += [Text(f"  warning: {reason}", style="yellow") for reason in case.health.reasons]
    return remarks


def _table(table: Described, rows: Rows) -> RenderableType:
    """Return a table without the columns that have no known value."""
    columns = [each for each in table.columns if each.in_brief]
    cells = [[column.brief_cell(row) for _, row in rows] for column in columns]
    known = [
        (column, texts)
        for column, texts in zip(columns, cells, strict=True)
        if any(each != UNKNOWN for each in texts)
    ]
    return _Fitting(known)


_LESS = ("time", "bytes", "jitter", "retr", "path")
"""Heads of the columns that are left out if space is short, the least important first."""

_GAP = 2
"""Blanks between two columns."""


class _Fitting:
    """A table that leaves out less important columns rather than cut what tells rows apart."""

    def __init__(self, columns: Sequence[tuple[Column, Sequence[str]]]) -> None:
        self._columns = list(columns)

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        """Show the columns that have room; only the second one wraps."""
        kept = self._columns
        for head in _LESS:
            if _least_width(kept) <= options.max_width:
                break
            kept = [each for each in kept if each[0].brief_title != head]
        shown = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="dim")
        for index, (column, texts) in enumerate(kept):
            justify: JustifyMethod = "left" if column.is_words else "right"
            least = _longest_word([column.brief_title, *texts]) if index == 1 else None
            shown.add_column(
                column.brief_title, justify=justify, no_wrap=index != 1, min_width=least
            )
        for row in zip(*(texts for _, texts in kept), strict=True):
            shown.add_row(*(escape(cell) for cell in row))
        yield shown


def _least_width(columns: Sequence[tuple[Column, Sequence[str]]]) -> int:
    """Return the columns that a table needs if only its second column wraps, between words."""
    widths = [
        _longest_word([column.brief_title, *texts])
        if index == 1
        else max(map(len, [column.brief_title, *texts]))
        for index, (column, texts) in enumerate(columns)
    ]
    return sum(widths) + _GAP * len(widths)


def _longest_word(texts: Iterable[str]) -> int:
    return max(len(word) for text in texts for word in text.split() or [""])


def _machine_line(machine: Machine) -> str:
    words = [f"Linux {machine.kernel}"]
    if machine.cpus:
        words.append(f"{machine.cpus} cores")
    words += [machine.privilege, *(f"delay by {engine}" for engine in machine.delay_engines)]
    words.append(f"offloads {'on' if machine.offloads else 'off'}")
    return " · ".join(words)

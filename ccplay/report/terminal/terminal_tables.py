"""Results as tables for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, Group, JustifyMethod, RenderableType, RenderResult
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ccplay.analysis.results import CaseResult, CaseStatistics, Checkpoint, Machine, Result
from ccplay.analysis.statistics import CONFIDENCE
from ccplay.analysis.summary import Receiver, Second
from ccplay.model.columns import UNKNOWN, Column, ResultTable
from ccplay.report.data.findings import (
    Verdict,
    misbehaviours,
    published_of,
    published_of_all,
    run_name,
    sources,
    unmeasured,
    values,
    verdicts,
)
from ccplay.report.data.material import as_written
from ccplay.report.data.naming import Unit, by_family, family_of, some_of, unit
from ccplay.report.data.report_tables import Rows, result_tables
from ccplay.scenario.values import Published
from ccplay.state.lab_state import LabState
from ccplay.units import format_rate

# --- tables for a terminal in which columns share heads: each group and unit is written once ------

GAP = 2
"""Cells between two columns."""
_RULE = "─"


class HeadedColumn(msgspec.Struct, frozen=True):
    """The column below one head."""

    head: str
    """Words of the head, one per line."""
    cells: list[str]
    group: str = ""
    """Name of the group that the column shares with its neighbours: ``flows.1``; empty for none."""
    unit: str = ""


class _Span(msgspec.Struct, frozen=True):
    """Neighbouring columns that share a head, by their indices."""

    text: str
    first: int
    last: int


def split_columns(
    labels: Sequence[HeadedColumn], metrics: Sequence[HeadedColumn], width: int, indent: int
) -> list[list[HeadedColumn]]:
    """Split metrics into tables, each of which fits beside the labels into ``width`` cells."""
    room = width - indent - sum(each + GAP for each in _widths(labels))
    tables: list[list[HeadedColumn]] = [[]]
    for metric in metrics:
        wider = [*tables[-1], metric]
        if tables[-1] and sum(_widths(wider)) + GAP * (len(wider) - 1) > room:
            tables.append([metric])
        else:
            tables[-1] = wider
    return tables


def table(
    labels: Sequence[HeadedColumn], metrics: Sequence[HeadedColumn], faint: Sequence[int]
) -> Table:
    """Return a table without empty rows; its first column wraps if space is short.

    ``faint`` are the indices of rows of published metrics, which are drawn dim.
    """
    made = Table(box=None, pad_edge=False, padding=0, header_style="dim")
    first, *others = labels
    made.add_column(Text(first.head), vertical="bottom")
    beside = [_named(each) for each in others]
    widths = _widths(metrics)
    heads = _heads(metrics, widths)
    for head in [each.head for each in beside] + ["\n".join(lines) for lines in heads]:
        made.add_column(Text(head), no_wrap=True, vertical="bottom")
    for row, label in enumerate(first.cells):
        measured = [each.cells[row] for each in metrics]
        if any(measured):
            cells = [" " * GAP + _right(*each) for each in zip(measured, widths, strict=True)]
            texts = (label, *(each.cells[row] for each in beside), *cells)
            made.add_row(*map(Text, texts), style="dim" if row in faint else "")
    return made


def _named(label: HeadedColumn) -> HeadedColumn:
    """Return a column of left-aligned labels with its gap, all of one width."""
    [width] = _widths([label])

    def put(text: str) -> str:
        return " " * GAP + set_cell_size(text, width)

    return HeadedColumn(put(label.head), [put(cell) for cell in label.cells])


def _right(text: str, width: int) -> str:
    return " " * (width - cell_len(text)) + text


def _widths(columns: Sequence[HeadedColumn]) -> list[int]:
    """Return the widths of columns, wide enough for their own texts and for shared heads."""
    found = [
        max(cell_len(text) for text in (*each.head.split("\n"), *each.cells)) for each in columns
    ]
    for span in _spans(columns, lambda each: (each.group, each.unit)):
        found[span.first] += max(cell_len(columns[span.first].unit) - _room(span, found), 0)
    for span in _spans(columns, lambda each: each.group):
        words = _broken(span.text, _room(span, found))
        found[span.first] += max(max(map(cell_len, words)) - _room(span, found), 0)
    return found


def _spans(
    columns: Sequence[HeadedColumn], key: Callable[[HeadedColumn], object]
) -> Iterator[_Span]:
    """Yield spans of neighbouring columns with the same key."""
    first = 0
    for at in range(1, len(columns) + 1):
        if at == len(columns) or key(columns[at]) != key(columns[first]):
            yield _Span(columns[first].group, first, at - 1)
            first = at


def _room(span: _Span, widths: Sequence[int]) -> int:
    return sum(widths[span.first : span.last + 1]) + GAP * (span.last - span.first)


def _broken(name: str, room: int) -> list[str]:
    """Return the lines of a group's name, broken at its dots if it is wider than ``room``."""
    if cell_len(name) <= room:
        return [name]
    *words, last = name.split(".")
    return [*(f"{word}." for word in words), last]


# --- heads --------------------------------------------------------------------------------------


def _heads(columns: Sequence[HeadedColumn], widths: Sequence[int]) -> list[list[str]]:
    """Return the lines above the columns: groups, own words, units."""
    groups = _groups(columns, widths)
    words = [each.head.split("\n") for each in columns]
    deepest = max(map(len, words), default=0)
    own = [
        [" " * (GAP + width)] * (deepest - len(lines))
        + [" " * GAP + _right(line, width) for line in lines]
        for lines, width in zip(words, widths, strict=True)
    ]
    return [[*g, *o, *u] for g, o, u in zip(groups, own, _units(columns, widths), strict=True)]


def _groups(columns: Sequence[HeadedColumn], widths: Sequence[int]) -> list[list[str]]:
    """Return lines with each group's name, and a rule over groups of several columns."""
    spans = list(_spans(columns, lambda each: each.group))
    named = [_broken(span.text, _room(span, widths)) for span in spans]
    deepest = max((len(lines) for lines in named if any(lines)), default=0)
    found: list[list[str]] = [[] for _ in columns]
    for span, lines in zip(spans, named, strict=True):
        room = _room(span, widths)
        several = span.last > span.first
        placed = [*lines[:-1], _ruled(lines[-1], room)]
        placed = placed if several else [_right(line, room) for line in lines]
        for line in [*[""] * (deepest - len(lines)), *placed][:deepest]:
            _cut(found, span, widths, line)
    return found


def _units(columns: Sequence[HeadedColumn], widths: Sequence[int]) -> list[list[str]]:
    """Return a line with each unit once, at the right end of the columns that share it."""
    found: list[list[str]] = [[] for _ in columns]
    if any(each.unit for each in columns):
        for span in _spans(columns, lambda each: (each.group, each.unit)):
            unit, room = columns[span.first].unit, _room(span, widths)
            line = _ruled(unit, room, right=True) if span.last > span.first else unit
            _cut(found, span, widths, _right(line, room))
    return found


def _ruled(text: str, room: int, *, right: bool = False) -> str:
    """Return a text extended to a width with a rule, if there is room for one."""
    rule = _RULE * (room - cell_len(text) - 1)
    if not text or not rule:
        return text
    return f"{rule} {text}" if right else f"{text} {rule}"


def _cut(found: list[list[str]], span: _Span, widths: Sequence[int], line: str) -> None:
    """Append to each column of a span its part of a line, with the gap before it."""
    rest = " " * GAP + line
    for at in range(span.first, span.last + 1):
        size = GAP + widths[at]
        found[at].append(set_cell_size(rest[:size], size))
        rest = rest[size:]


# --- repeated runs as tables: a row per case, a column per metric, means with their intervals -----

_UNKNOWN = "–"
_MOST_FAILURES = 3
"""Largest number of failed runs listed under an expectation; the others are counted."""
_SUFFIXES = ("_bps", "_ms", "_s")
"""Endings of metric names that stand for a unit."""


class _CaseRow(msgspec.Struct, frozen=True):
    """A row of a table: the measured values of a case, or the published ones."""

    case: CaseStatistics
    published: list[Published] | None = None
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
        labels.append(_label("n", rows, [str(row.case.runs) for row in rows]))
    metrics = [_metric(metric, cases, rows) for metric in cases[0].reported]
    theirs = [number for number, row in enumerate(rows) if row.published is not None]
    parts = [
        Padding(table(labels, some, theirs), (1, 0, 0, GAP))
        for some in split_columns(labels, metrics, width, GAP)
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


def _labels(rows: Sequence[_CaseRow]) -> list[HeadedColumn]:
    """Return the columns that label rows: the axes of the matrix, or the case."""
    axes = rows[0].case.parameters
    first, *others = [
        _label(axis, rows, [as_written(row.case.parameters[axis]) for row in rows]) for axis in axes
    ] or [_label("case", rows, [row.case.name for row in rows])]
    named = [
        cell if row.published is None else "published"
        for cell, row in zip(first.cells, rows, strict=True)
    ]
    return [HeadedColumn(first.head, named), *others]


def _label(head: str, rows: Sequence[_CaseRow], texts: Sequence[str]) -> HeadedColumn:
    """Return a column with the labels of the rows of measured values."""
    pairs = zip(rows, texts, strict=True)
    return HeadedColumn(head, [text if row.published is None else "" for row, text in pairs])


def _metric(metric: str, cases: Sequence[CaseStatistics], rows: Sequence[_CaseRow]) -> HeadedColumn:
    means = [case.metrics[metric].mean for case in cases if metric in case.metrics]
    fitting = unit(metric, means)
    group, _, last = metric.rpartition(".")
    return HeadedColumn(
        _head(last, fitting), [_cell(metric, row, fitting) for row in rows], group, fitting.name
    )


def _head(name: str, fitting: Unit) -> str:
    """Return a metric's name, one word per line, without its unit."""
    ending = next((each for each in _SUFFIXES if fitting.name and name.endswith(each)), "")
    return name.removesuffix(ending).replace("_", "\n")


def _cell(metric: str, row: _CaseRow, fitting: Unit) -> str:
    """Return a measured value or the published ones as text."""
    if row.published is not None:
        return fitting.write_range(values(row.published, metric))
    if (found := row.case.metrics.get(metric)) is None:
        return _UNKNOWN
    few = f" (n {found.n})" if found.n < row.case.runs else ""
    return fitting.write_statistic(found) + few


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
    reason = f" ({verdict.check.why})" if verdict.check.why else ""
    metric = f"{where}: {verdict.check.metric}" if where else verdict.check.metric
    if len(verdict.runs) == 1:
        held = "failed" if verdict.failed else "held"
        yield f"{metric} is {verdict.value}, expected {verdict.text}: {held}{reason}", style
        return
    held = f"held in {verdict.held} of {len(verdict.runs)} runs"
    yield f"{metric}, expected {verdict.text}: {held}{reason}", style
    for each in verdict.failed[:_MOST_FAILURES]:
        yield f"  failed: {run_name(each.run)}: {each.value}", "red"
    if len(verdict.failed) > _MOST_FAILURES:
        yield f"  … and {len(verdict.failed) - _MOST_FAILURES} more", "red"


def _line(text: str, style: str) -> Padding:
    return Padding(Text(text, style=style), (0, 0, 0, GAP))


# --- A result as tables without empty columns, for terminals 80 or 120 columns wide ---------------


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
    return Group(head, *body, *race, *_run_remarks(case))


def _checkpoint(at: Checkpoint) -> Padding:
    """Return each flow's bytes when the first flow was done."""
    words = [f"{name} has {size:,} bytes" for name, size in at.bytes.items()]
    line = Text(f"checkpoint at {at.elapsed_s:.2f} s: flow {', flow '.join(words)}")
    if at.ratio is not None:
        line.append(f"; ratio {at.ratio:.2f}")
    return Padding(line, (1, 0, 0, 2))


def _run_remarks(case: CaseResult) -> list[Text]:
    """Return remarks: outcomes of expectations, errors, and reasons to doubt the metrics."""
    remarks = [Text(f"  {line}", style=style) for line, style in check_lines([case])]
    remarks += [Text(f"  error: {error}", style="red") for error in case.errors]
    remarks += [Text(f"  warning: {each}", style="yellow") for each in misbehaviours(case)]
    remarks += [Text(f"  warning: {reason}", style="yellow") for reason in case.health.reasons]
    return remarks


def _table(table: ResultTable, rows: Rows) -> RenderableType:
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


# --- the receiver's table for runs without a screen, printed when due -----------------------------

_CLOCK, _BYTES, _RATE = 9, 16, 13
"""Widths of the columns in cells."""

_OFTEN_S = 0.1


class ReceiverLines:
    """The lines of a receiver's table, each yielded once.

    ``fresh`` is called after every event and at the end of a run.
    """

    def __init__(self) -> None:
        self._flows: tuple[str, ...] = ()
        self._printed = 0
        self._finished = False
        self._looked = 0.0

    def fresh(self, state: LabState, *, at_once: bool = False) -> Iterator[str]:
        """Yield the lines that are due; ``at_once`` checks even shortly after the last check."""
        # Lines are due about once a second, but events arrive by the hundred.
        if state.now - self._looked < _OFTEN_S and not at_once:
            return
        self._looked = state.now
        table = Receiver(state, state.now)
        lines = list(self._due(table))
        if lines and table.flows != self._flows:
            self._flows = table.flows
            yield _receiver_head(table, state)
        yield from lines

    def _due(self, table: Receiver) -> Iterator[str]:
        finish = None if self._finished else table.checkpoint()
        # The line of the checkpoint comes before that of a second that ended later.
        for row in table.rows(after=self._printed):
            if finish is not None and finish.elapsed_s <= row.elapsed_s:
                yield self._checkpoint(finish, table)
                finish = None
            self._printed = row.elapsed_s
            yield _second(row)
        if finish is not None:
            yield self._checkpoint(finish, table)

    def _checkpoint(self, finish: Checkpoint, table: Receiver) -> str:
        self._finished = True
        return _receiver_checkpoint(finish, table)


def _receiver_head(table: Receiver, state: LabState) -> str:
    names = (f"flow {name} {state.flows[name].cc}" for name in table.flows)
    return "receiver".rjust(_CLOCK) + "".join(
        name.rjust(_BYTES).ljust(_BYTES + _RATE) for name in names
    )


def _second(row: Second) -> str:
    cells = "".join(
        _receiver_cell(amount, "" if rate is None else format_rate(rate))
        for amount, rate in zip(row.bytes, row.rates_bps, strict=True)
    )
    return f"{row.elapsed_s} s".rjust(_CLOCK) + cells


def _receiver_checkpoint(finish: Checkpoint, table: Receiver) -> str:
    cells = "".join(
        _receiver_cell(finish.bytes.get(name), "done" if name == finish.first else "")
        for name in table.flows
    )
    ratio = "" if finish.ratio is None else f", ratio {finish.ratio:.3f}"
    return f"{finish.elapsed_s:.2f} s".rjust(_CLOCK) + cells + f"   checkpoint{ratio}"


def _receiver_cell(amount: int | None, rate: str) -> str:
    return ("-" if amount is None else f"{amount:,}").rjust(_BYTES) + rate.rjust(_RATE)

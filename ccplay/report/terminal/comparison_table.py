"""A comparison as tables, for terminals 80 or 120 columns wide."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ccplay.analysis.statistics import CONFIDENCE, Statistic
from ccplay.report.data.charts import CaseComparison, Comparison, Difference
from ccplay.report.data.material import Setting
from ccplay.report.data.naming import Unit, unit, words

_UNKNOWN = "–"
_CLEAR = "*"
_COUNT = Unit(1.0, "")
_WIDE = 100
"""Smallest width of the terminal in cells at which columns have two cells between them, not one."""

_SHARES = ("loss", "utilisation")
"""Names of metrics that are shares of 1 in a result and are shown in percent."""

_CARRIED = re.compile(r"interfaces\..*\.(sent|received)(_bytes)?")
"""Counters of an interface's traffic, except its drops and losses."""

_HUGE = 1000
"""Smallest change in percent that is written as a factor, which is then easier to read."""


def show(
    comparison: Comparison, console: Console, *, every: bool = False, counters: bool = True
) -> None:
    """Print a comparison: the metrics that are shown by default, or ``every`` one.

    Without ``counters``, the traffic of interfaces is left out, because metrics of queues show it.
    """
    for line in _head(comparison):
        console.print(line)
    settings = {tuple(case.settings) for case in comparison.cases}
    common = settings.pop() if len(settings) == 1 else ()
    if common:
        console.print()
        console.print(_settings(common))
    for case in comparison.cases:
        console.print()
        # For two recordings, the lines above already name the runs.
        named = len(comparison.cases) > 1 or case.a == case.b or case.runs_a > 1
        gap = 2 if console.width >= _WIDE else 1
        shown = [
            each
            for each in case.metrics
            if each.metric in case.reported
            or ((every or not case.reported) and (counters or not _CARRIED.fullmatch(each.metric)))
        ]
        for part in _case(case, gap, common, named=named, shown=shown):
            console.print(part)
    for name, cases in (("A", comparison.only_a), ("B", comparison.only_b)):
        if cases:
            console.print(Text(f"\nonly in {name}: {', '.join(cases)}", style="dim"))


def _head(comparison: Comparison) -> Iterator[Text]:
    for name, what in (("A", comparison.a), ("B", comparison.b)):
        yield Text.assemble((f"{name}  ", "bold"), what)


def _settings(settings: Sequence[Setting]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for head in ("different settings", "A", "B"):
        table.add_column(head, overflow="fold")
    for each in settings:
        table.add_row(Text(each.name), *(Text(text or _UNKNOWN) for text in (each.a, each.b)))
    return table


def _case(
    case: CaseComparison,
    gap: int,
    common: Sequence[Setting],
    *,
    named: bool,
    shown: Sequence[Difference],
) -> Iterator[RenderableType]:
    repeated = case.runs_a > 1 or case.runs_b > 1
    if named:
        name = case.a if case.a == case.b else f"{case.a} (A), {case.b} (B)"
        line = Text(name, style="bold")
        if repeated:
            line.append(f"  {case.runs_a} and {case.runs_b} runs", style="dim")
        yield line
    if case.settings and not common:
        yield Padding(_settings(case.settings), (0, 0, 1, 2))
    if case.verdict:
        yield Padding(Text(case.verdict), (0, 0, 0, 2))
    differing = [each for each in shown if each.difference != 0]
    if differing:
        yield Padding(_table(differing, gap, repeated=repeated), (0, 0, 0, 2))
    yield from _remarks(case, shown, differing)


def _table(metrics: Sequence[Difference], gap: int, *, repeated: bool) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="dim")
    table.add_column("", min_width=20)
    for head in ("A", "B", "B − A", "%"):
        table.add_column(head, justify="right", no_wrap=True)
    for subject, members in _by_subject(metrics):
        if subject:
            table.add_row(Text(subject, style="bold"))
        for each in members:
            table.add_row(*_row(each, indent=bool(subject), repeated=repeated))
    return table


def _by_subject(metrics: Iterable[Difference]) -> list[tuple[str, list[Difference]]]:
    """Group metrics by subject; those of the whole run come first."""
    groups: dict[tuple[str, str], list[Difference]] = {("", ""): []}
    for each in metrics:
        name = words(each.metric).name
        groups.setdefault((each.metric.partition(".")[0] if name else "", name), []).append(each)
    # The longest name is the clearest: drops have ``queue r → h``, a queue length ``r → h``.
    subjects = [
        max((words(each.metric).subject for each in group), key=len, default="")
        for group in groups.values()
    ]
    return list(zip(subjects, groups.values(), strict=True))


def _row(each: Difference, *, indent: bool, repeated: bool) -> list[Text]:
    wording = words(each.metric)
    both = [value for value in (each.a, each.b) if value is not None]
    found = _unit(each.metric, [value.mean for value in both])
    name = Text(f"{'  ' * indent}{wording.quantity}")
    if (of := found.name or wording.counts) and of not in wording.quantity.split():
        name.append(f" {of}", style="dim")
    style = "bold" if each.clear else ""
    counted = found == _COUNT and all(v.n == 1 and v.mean == int(v.mean) for v in both)
    written = [_mean(value, None if counted else found) for value in (each.a, each.b)]
    difference = _difference(each, found, min(map(_decimals, written)))
    percent = _percent(each) + (_CLEAR if each.clear else " ") * repeated
    return [name, *map(Text, written), Text(difference, style=style), Text(percent, style)]


def _unit(metric: str, means: Sequence[float]) -> Unit:
    share = metric.rpartition(".")[2] in _SHARES
    return Unit(0.01, "%") if share else unit(metric, means)


def _mean(value: Statistic | None, found: Unit | None) -> str:
    """Return a value as text; without a unit it is written as a count."""
    if value is None:
        return _UNKNOWN
    return found.write_statistic(value) if found else f"{value.mean:.0f}"


def _difference(each: Difference, found: Unit, decimals: int) -> str:
    """Return a difference as text, with its interval or with ``decimals``, those of the values."""
    if each.difference is None:
        return _UNKNOWN
    if each.low is None or each.high is None or each.low == each.high:
        difference = each.difference / found.scale
        text = f"{difference:.{decimals}f}"
        return _signed(text if float(text) else f"{Decimal(f'{difference:.1g}'):f}")
    return _signed(
        found.write_statistic(
            Statistic(n=2, mean=each.difference, sd=0.0, low=each.low, high=each.high)
        )
    )


def _decimals(written: str) -> int:
    return len(written.partition(" ")[0].partition(".")[2])


def _percent(each: Difference) -> str:
    if each.percent is None or each.a is None or each.b is None:
        return _UNKNOWN
    if abs(each.percent) >= _HUGE and each.b.mean / each.a.mean > 0:
        return f"×{each.b.mean / each.a.mean:.0f}"
    return _signed(f"{each.percent:.0f}" if abs(each.percent) >= 9.95 else f"{each.percent:.1f}")


def _signed(number: str) -> str:
    return number.replace("-", "−", 1) if number.startswith("-") else f"+{number}"


def _remarks(
    case: CaseComparison, shown: Sequence[Difference], differing: Sequence[Difference]
) -> Iterator[RenderableType]:
    lines = []
    if same := len(shown) - len(differing):
        lines.append(f"{same} metrics are equal" if same > 1 else "1 metric is equal")
    if hidden := len(case.metrics) - len(shown):
        lines.append(f"{hidden} more metric{'s' * (hidden > 1)} with --all")
    if lines:
        yield _paragraph("; ".join(lines))
    if any(each.clear is not None for each in differing):
        chance = round(1 / (1 - CONFIDENCE))
        yield _paragraph(
            f"± is half the width of the {CONFIDENCE * 100:.0f} % confidence interval (Student's "
            f"t; of a difference, Welch's). {_CLEAR} marks a difference whose interval excludes 0; "
            f"by chance this happens to one of {chance} metrics that do not differ."
        )
    elif differing:
        yield _paragraph(
            "Without repeats on both sides, differences can't be told from noise. Repeat the runs: "
            "ccplay run … --repeats 5 --out DIR, then compare two such directories."
        )
    if case.untrustworthy:
        runs = "run has" if case.untrustworthy == 1 else "runs have"
        yield _paragraph(
            f"warning: {case.untrustworthy} {runs} a lab that could not keep time", "yellow"
        )


def _paragraph(text: str, style: str = "dim") -> Padding:
    return Padding(Text(text, style=style), (0, 0, 0, 2))

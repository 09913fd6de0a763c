"""Compares two results: settings that differ, differences of metrics, and both as tables."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import msgspec
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ccplay.analysis.results import CaseStatistics, Result
from ccplay.analysis.statistics import CONFIDENCE, Statistic, student_t
from ccplay.errors import UsageError
from ccplay.model.base import Command
from ccplay.model.commands import Build
from ccplay.model.events import Applied
from ccplay.model.quantities import quote
from ccplay.report.data.material import Settings
from ccplay.report.data.naming import Unit, unit, words
from ccplay.scenario import writing
from ccplay.scenario.document import spell
from ccplay.state.lab_state import LabState
from ccplay.traffic import TRAFFIC

# --- the settings that differ between two runs ----------------------------------------------------

_NEAR_S = 0.1
"""Seconds by which moments that count as equal may differ, because the start of a command's program
takes a varying time."""
_END_S = 1.0
"""Seconds before the end of a recording in which stops of traffic are part of the end."""
_FILLED_IN = ("src", "dst")
"""Keys for which the lab fills in defaults if a scenario leaves them out."""
_SUBJECTS = (*(kind.name for kind in TRAFFIC), "capture", "host", "link")
_MOMENT = "at"
_ENDS = ("duration", "until", "recorded")
"""Settings of a run's end. A recording has only its length, a run only what its scenario sets."""
_NEAR_LENGTH_S = 0.5
"""Seconds by which the lengths of two recordings that count as equal may differ."""


class DifferingSetting(msgspec.Struct, frozen=True, kw_only=True):
    """A setting that differs between two runs, A and B."""

    name: str
    """Name of the setting: ``links.bottleneck.queue.limit``, or of a step ``start-flow 1, cc``."""
    a: str | None
    """Value in A; null if A does not have the setting."""
    b: str | None


def settings_of_run(
    build: Build,
    steps: Iterable[tuple[float, str | None, Command]],
    ends: Mapping[str, str] | None = None,
) -> Settings:
    """Return the settings of a network, of its timeline and of its end.

    A step is its moment in seconds, the name that it counts from (None: the start), and its
    command. ``ends`` has settings named in ``_ENDS``.
    """
    found = dict(ends or {})
    found |= _flat(tomllib.loads("\n".join(writing.network(build))), ())
    seen: dict[str, int] = {}
    for at_s, after, command in steps:
        fields = writing.step(Applied(t=at_s, command=command), 0.0)
        del fields[_MOMENT]
        name = " ".join(
            [str(fields.pop("do")), *(str(fields.pop(key)) for key in _SUBJECTS if key in fields)]
        )
        seen[name] = number = seen.get(name, 0) + 1
        name += f" #{number}" if number > 1 else ""
        fields[_MOMENT] = f"{at_s:.3f} s" + (f" after {after}" if after else "")
        found |= {f"{name}, {key}": text for key, text in _flat(fields, ())}
    return found


def settings_of_recording(state: LabState) -> Settings:
    """Return the settings of a recorded session; empty if its network was never ready."""
    ready_at = state.ready_at
    if state.hello is None or state.hello.build is None or ready_at is None:
        return {}
    done = [
        (each.t - each.took_s - ready_at, None, each.command)
        for each in state.applied
        if not each.renewed
        and not (
            str(each.command.__struct_config__.tag).startswith("stop-")
            and each.t > state.now - _END_S
        )
    ]
    return settings_of_run(state.hello.build, done, {"recorded": f"{state.now - ready_at:.1f} s"})


def differing(a: Settings, b: Settings) -> list[DifferingSetting]:
    """Return the settings that differ in the order of A, then steps that only A or only B has.

    Such a step is reported as one setting.
    """
    found = []
    lone: dict[str, None] = {}
    steps_a, steps_b = ({name.partition(", ")[0] for name in each} for each in (a, b))
    for name in dict.fromkeys([*a, *b]):
        step, _, key = name.partition(", ")
        if name in _ENDS and (name not in a or name not in b):
            continue
        if step not in steps_a or step not in steps_b:
            lone[step] = None
        elif not _alike(key or name, a.get(name), b.get(name)):
            found.append(DifferingSetting(name=name, a=a.get(name), b=b.get(name)))
    return found + [
        DifferingSetting(name=step, a=_whole(step, a), b=_whole(step, b)) for step in lone
    ]


def _alike(key: str, one: str | None, other: str | None) -> bool:
    if key in _FILLED_IN and (one is None or other is None):
        return True
    if key == _MOMENT and one is not None and other is not None:
        (t, _, after), (u, _, behind) = one.partition(" s"), other.partition(" s")
        return after == behind and abs(float(t) - float(u)) < _NEAR_S
    if key == "recorded" and one is not None and other is not None:
        lengths = [float(each.removesuffix(" s")) for each in (one, other)]
        return abs(lengths[0] - lengths[1]) <= _NEAR_LENGTH_S
    return one == other


def _whole(step: str, settings: Settings) -> str | None:
    """Return a step or the value of a setting as text; None if missing."""
    parts = {
        name.removeprefix(step).removeprefix(", "): text
        for name, text in settings.items()
        if name == step or name.startswith(f"{step}, ")
    }
    if not parts:
        return None
    return ", ".join(f"{key} {text}".strip() for key, text in parts.items())


def _flat(value: Any, place: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(inner, (*place, key))
    elif isinstance(value, str):
        yield spell(place), value
    else:
        yield spell(place), msgspec.json.encode(value).decode()


# --- A comparison of two results: differences of metrics, and whether they exceed noise -----------

FORMAT = 1
"""Version of the format of a comparison."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One metric of both experiments, and how B differs from A."""

    metric: str = msgspec.field(name="figure")
    """Path in a run's result, such as ``flows.1.goodput_bps``."""
    a: Statistic | None
    """Statistic in A; null if A does not have the metric."""
    b: Statistic | None
    difference: float | None = None
    """B's mean minus A's; null if either is missing."""
    percent: float | None = None
    """Difference in percent of A's mean; null if that mean is 0 or either is missing."""
    low: float | None = None
    """Lower end of the 95 % confidence interval of the difference; null without repeats."""
    high: float | None = None
    clear: bool | None = None
    """Whether the confidence interval of the difference excludes 0; null without repeats."""


class CaseComparison(msgspec.Struct, frozen=True, kw_only=True):
    """A case of A, and the case of B that it is compared with."""

    a: str
    b: str
    runs_a: int
    runs_b: int
    untrustworthy: int
    """Number of runs of both cases that can't be trusted."""
    settings: list[DifferingSetting] = []
    """Settings that differ between the cases; empty if those of either case are unknown."""
    verdict: str = ""
    """Verdict on the reported metrics in one sentence; empty if none can be compared."""
    reported: list[str]
    """Metrics that are shown by default."""
    metrics: list[Difference] = msgspec.field(name="figures")


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The object that ``ccplay compare --json`` prints."""

    format: int = FORMAT
    a: str
    """Name of A: a recording or a run directory."""
    b: str
    cases: list[CaseComparison]
    only_a: list[str] = []
    """Names of cases that only A has."""
    only_b: list[str] = []


def compare(
    a: Result,
    b: Result,
    names: tuple[str, str],
    made_of: tuple[Mapping[str, Settings], Mapping[str, Settings]] = ({}, {}),
) -> Comparison:
    """Compare the cases of two experiments that have the same name, or the only case of each.

    ``made_of`` has the settings of each experiment's cases, by name. Raises ``UsageError`` if the
    experiments have no case in common.
    """
    mine, theirs = ({case.name: case for case in each.statistics} for each in (a, b))
    pairs = [(case, theirs[name]) for name, case in mine.items() if name in theirs]
    if len(mine) == len(theirs) == 1:
        pairs = list(zip(mine.values(), theirs.values(), strict=True))
    if not pairs:
        raise UsageError(
            f"{names[0]} and {names[1]} have no case in common: "
            f"{_listed(mine)} here, {_listed(theirs)} there"
        )
    return Comparison(
        a=names[0],
        b=names[1],
        cases=[_compare(one, other, made_of) for one, other in pairs],
        only_a=[name for name in mine if name not in {one.name for one, _ in pairs}],
        only_b=[name for name in theirs if name not in {other.name for _, other in pairs}],
    )


def welch(a: Statistic, b: Statistic) -> tuple[float, float] | None:
    """Return the 95 % confidence interval of the difference of two means, B's minus A's.

    Welch's t does not assume equal variances: B. L. Welch, "The generalization of Student's
    problem when several different population variances are involved", 1947. The degrees of freedom
    are rounded down, so the interval is slightly too wide. None if either has no repeats.
    """
    if a.sd is None or b.sd is None or a.n < 2 or b.n < 2:
        return None
    one, other = a.sd**2 / a.n, b.sd**2 / b.n
    difference = b.mean - a.mean
    if not one + other:
        return difference, difference
    # By shares of the sum, because the square of a tiny variance is 0.
    share = one / (one + other)
    freedom = 1 / (share**2 / (a.n - 1) + (1 - share) ** 2 / (b.n - 1))
    half = student_t(math.floor(freedom + 1e-9)) * math.sqrt(one + other)
    return difference - half, difference + half


def _compare(
    a: CaseStatistics,
    b: CaseStatistics,
    made_of: tuple[Mapping[str, Settings], Mapping[str, Settings]],
) -> CaseComparison:
    names = dict.fromkeys([*a.metrics, *b.metrics])
    metrics = [_differ(each, a.metrics.get(each), b.metrics.get(each)) for each in names]
    reported = list(dict.fromkeys([*a.reported, *b.reported]))
    mine, theirs = made_of[0].get(a.name), made_of[1].get(b.name)
    return CaseComparison(
        a=a.name,
        b=b.name,
        runs_a=a.runs,
        runs_b=b.runs,
        untrustworthy=a.untrustworthy + b.untrustworthy,
        settings=differing(mine, theirs) if mine and theirs else [],
        verdict=verdict([each for each in metrics if each.metric in reported]),
        reported=reported,
        metrics=metrics,
    )


def _differ(metric: str, a: Statistic | None, b: Statistic | None) -> Difference:
    if a is None or b is None:
        return Difference(metric=metric, a=a, b=b)
    difference, interval = b.mean - a.mean, welch(a, b)
    low, high = interval or (None, None)
    return Difference(
        metric=metric,
        a=a,
        b=b,
        difference=difference,
        percent=100 * difference / abs(a.mean) if a.mean else None,
        low=low,
        high=high,
        clear=None if interval is None else not interval[0] <= 0 <= interval[1],
    )


_NAMED = 3
"""Largest number of metrics that a verdict names."""
_DOUBLE = 99.5
"""Smallest change in percent that is written as a factor, which is then easier to read."""


def verdict(metrics: Sequence[Difference]) -> str:
    """Return a sentence on how the metrics of a case differ; empty if none can be compared."""
    known = [each for each in metrics if each.difference is not None]
    if not known:
        return ""
    repeated = [each for each in known if each.clear is not None]
    clear = _greatest(each for each in repeated if each.clear)
    if clear:
        rest = len(repeated) - len(clear)
        others = f"; {rest} of {len(repeated)} metrics do not differ clearly" if rest else ""
        return f"Clearly different: in B {_changes(clear)}{others}."
    if len(repeated) == 1:
        return f"{_the(repeated[0].metric).capitalize()} does not differ clearly."
    if repeated:
        return f"None of the {len(repeated)} metrics differs clearly."
    changed = _greatest(each for each in known if each.difference)
    if not changed:
        return "No metric differs."
    return f"In B {_changes(changed)}; without repeats on both sides this may be chance."


def _greatest(metrics: Iterable[Difference]) -> list[Difference]:
    return sorted(metrics, key=lambda each: -abs(each.percent or 0.0))


def _changes(metrics: Sequence[Difference]) -> str:
    """Return how some metrics change: ``the goodput of flow 1 is 12 % higher and …``."""
    first, *others = metrics[:_NAMED]
    changes = [f"{_the(first.metric)} is {_change(first)}"]
    changes += [f"{_the(each.metric)} {_change(each)}" for each in others]
    last = changes.pop() if len(changes) > 1 else ""
    rest = len(metrics) - _NAMED
    if rest > 0:
        return f"{', '.join([*changes, last])} ({rest} more differ)"
    return f"{', '.join(changes)} and {last}" if last else changes[0]


def _change(each: Difference) -> str:
    much = each.percent is not None and abs(each.percent) >= _DOUBLE
    if much and each.a and each.b and each.b.mean / each.a.mean > 0:
        return f"{each.b.mean / each.a.mean:.2g} times as high"
    by = "" if each.percent is None else f"{abs(each.percent):.2g} % "
    return f"{by}{'higher' if (each.difference or 0.0) > 0 else 'lower'}"


def _the(metric: str) -> str:
    text = words(metric).text
    return text if text[:1].isupper() else f"the {text}"


def _listed(names: Iterable[str]) -> str:
    first: Sequence[str] = [quote(name) for name in names]
    return ", ".join(first[:3]) + (" …" if len(first) > 3 else "") if first else "none"


# --- a comparison as tables, for terminals 80 or 120 columns wide --------------------------------

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


def show_comparison(
    comparison: Comparison, console: Console, *, every: bool = False, counters: bool = True
) -> None:
    """Print a comparison: the metrics that are shown by default, or ``every`` one.

    Without ``counters``, the traffic of interfaces is left out, because metrics of queues show it.
    """
    for name, what in (("A", comparison.a), ("B", comparison.b)):
        console.print(Text.assemble((f"{name}  ", "bold"), what))
    settings = {tuple(case.settings) for case in comparison.cases}
    common = settings.pop() if len(settings) == 1 else ()
    if common:
        console.print()
        console.print(_settings_table(common))
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


def _settings_table(settings: Sequence[DifferingSetting]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for head in ("different settings", "A", "B"):
        table.add_column(head, overflow="fold")
    for each in settings:
        table.add_row(Text(each.name), *(Text(text or _UNKNOWN) for text in (each.a, each.b)))
    return table


def _case(
    case: CaseComparison,
    gap: int,
    common: Sequence[DifferingSetting],
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
        yield Padding(_settings_table(case.settings), (0, 0, 1, 2))
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
    share = each.metric.rpartition(".")[2] in _SHARES
    found = Unit(0.01, "%") if share else unit(each.metric, [value.mean for value in both])
    name = Text(f"{'  ' * indent}{wording.quantity}")
    if (of := found.name or wording.counts) and of not in wording.quantity.split():
        name.append(f" {of}", style="dim")
    style = "bold" if each.clear else ""
    counted = found == _COUNT and all(v.n == 1 and v.mean == int(v.mean) for v in both)
    written = [
        _UNKNOWN
        if value is None
        else f"{value.mean:.0f}"
        if counted
        else found.write_statistic(value)
        for value in (each.a, each.b)
    ]
    decimals = min(len(text.partition(" ")[0].partition(".")[2]) for text in written)
    difference = _difference(each, found, decimals)
    percent = _percent(each) + (_CLEAR if each.clear else " ") * repeated
    return [name, *map(Text, written), Text(difference, style=style), Text(percent, style)]


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

"""Criteria of an evaluation: loaded for a subject, and judged by what their runs measured."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from ccplay.analysis.metrics import metric_of, why_unmeasured
from ccplay.analysis.results import CaseResult, Machine, Result
from ccplay.analysis.statistics import statistic
from ccplay.assets import assets
from ccplay.errors import UsageError
from ccplay.experiment.plan import counts_in_means
from ccplay.files.reading import read_regular
from ccplay.model.quantities import Plain, did_you_mean, quote
from ccplay.report.data.naming import Unit, unit, words
from ccplay.scenario.library import criteria
from ccplay.scenario.matrix import word_of
from ccplay.scenario.reading import load
from ccplay.scenario.values import Asked, Case, Criterion, CriterionMeasure, Scenario
from ccplay.scenario.writing import toml

# --- the criteria of a subject --------------------------------------------------------------------

Verdict: TypeAlias = Literal["pass", "unclear", "not judged", "fail", "not evaluated"]
_WORST: tuple[Verdict, ...] = ("not evaluated", "pass", "unclear", "not judged", "fail")
"""Verdicts, the worst last; ``not judged`` rests on runs that can't be trusted."""
VERDICTS: tuple[Verdict, ...] = ("pass", "fail", "unclear", "not judged", "not evaluated")
"""Verdicts in the order in which they are counted."""
_REMEDY = "the same command makes them again; use a machine that does nothing else"

LEFT_OUT = "left-out.csv"
"""File beside the criteria with what an RFC asks for and no scenario measures."""
_MOST_LEFT_OUT = 100_000
BESIDE = "beside"
"""Word for the algorithm that the one under test competes with."""


class Subject(msgspec.Struct, frozen=True):
    """An algorithm or a discipline in an evaluation."""

    name: str
    value: Plain
    """Value in the matrix: the name of an algorithm, or the table of a queue."""

    @property
    def kind(self) -> str:
        """What it is: ``algorithm`` or ``discipline``."""
        return "algorithm" if self.value == self.name else "discipline"


def subject_of(name: str, kind: str) -> Subject:
    """Return the algorithm or the discipline of a name."""
    return Subject(name, name if kind == "algorithm" else {"kind": name})


class LeftOut(Asked, frozen=True, kw_only=True):
    """What an RFC asks for and no scenario measures."""

    subject: str = "algorithm"
    """``algorithm`` or ``discipline``."""
    why: str

    def as_result(self) -> CriterionResult:
        """Return it as a criterion that was not evaluated."""
        return CriterionResult(
            **_asked(self), name="", title="", sentence="", verdict="not evaluated", why=self.why
        )


def _asked(of: Asked) -> dict[str, Any]:
    """Return what an RFC asks for, by the names of the fields."""
    return {name: getattr(of, name) for name in Asked.__struct_fields__}


def find_criteria(kind: str, only: Sequence[str] = ()) -> dict[str, Path]:
    """Return the files of the criteria of algorithms or of disciplines, by name.

    ``only`` names some of them. Raises ``UsageError`` for a name that there is not.
    """
    found = {
        name: path
        for name, path in criteria().items()
        if (each := load(path).criterion) is not None and each.subject == kind
    }
    for name in only:
        if name not in found:
            raise UsageError(f"there is no criterion {quote(name)}{did_you_mean(name, found)}")
    return {name: path for name, path in found.items() if not only or name in only}


def left_out(kind: str) -> list[LeftOut]:
    """Return what is asked of algorithms or disciplines and not measured, with the reasons."""
    file = assets("scenarios") / "evaluation" / LEFT_OUT
    text = read_regular(file, _MOST_LEFT_OUT).decode()
    rows = [msgspec.convert(row, LeftOut) for row in csv.DictReader(text.splitlines())]
    return [each for each in rows if each.subject == kind]


def load_criterion(
    path: Path, subjects: Sequence[Subject], against: Sequence[str], *, quick: bool
) -> Scenario:
    """Return the scenario of a criterion for these subjects, the first of which is judged.

    Raises ``ScenarioError``.
    """
    plain = load(path)
    criterion = plain.criterion
    if criterion is None:
        raise UsageError(f"{path} is not a criterion: it has no table [evaluation]")
    settings = [f"{key}={toml(each)}" for key, each in criterion.quick.items()] if quick else []
    axis = f"matrix.{criterion.subject}"
    settings.append(f"{axis}.values={toml([each.value for each in subjects])}")
    if any(each.value != each.name for each in subjects):
        settings.append(f"{axis}.names={toml([each.name for each in subjects])}")
    if criterion.beside:
        settings.append(f"matrix.{criterion.beside}.values={toml(list(against))}")
    loaded = load(path, settings)
    if quick:
        loaded = replace(loaded, cases=tuple(replace(e, repeats=1) for e in loaded.cases))
    return loaded


def references(criterion: Criterion) -> list[str]:
    """Return the algorithms whose values the measures of a criterion need."""
    named = [name for each in criterion.measures for name in (each.minus, each.over)]
    return [name for name in dict.fromkeys(named) if name and name != BESIDE]


# --- what was measured, and the verdict -----------------------------------------------------------

FORMAT = 1
"""Version of the shape of an evaluation in JSON, whose keys are stable."""


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """A measure at one point of the matrix, and whether it is within its bounds."""

    at: dict[str, str] = {}
    """Values of the other axes."""
    value: float | None
    """Mean over the runs; null if a run did not measure it."""
    low: float | None = None
    """Lower end of the 95 % confidence interval; null for a single run."""
    high: float | None = None
    alone: float | None = None
    """Mean of the metric itself where ``value`` is relative to that of another algorithm."""
    runs: int
    untrustworthy: int = 0
    """Number of runs that could not be trusted even after repetition."""
    verdict: Verdict
    why: str = ""
    """Why there is no value, or no clear verdict."""
    recording: str | None = None
    """Path of the recording of its first run, relative to the evaluation's directory."""


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """A measure of one subject: its worst figure, and all of them."""

    metric: str
    text: str
    """Name for people."""
    bound: str
    """Bounds as text, which are ours."""
    reason: str
    """Reason for the bound."""
    worst: Figure
    figures: list[Figure]


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """All measures of one subject, and the verdict: that of the worst."""

    subject: str
    verdict: Verdict
    measures: list[Measured]

    @property
    def deciding(self) -> Measured:
        """The measure that decided the verdict; the first of several."""
        return next(each for each in self.measures if each.worst.verdict == self.verdict)


class CriterionResult(Asked, frozen=True, kw_only=True):
    """A criterion with the verdict on the subject under test, and on those beside it."""

    name: str
    title: str
    sentence: str
    remark: str = ""
    verdict: Verdict
    value: float | None = None
    """Figure of the first measure at its worst point."""
    low: float | None = None
    high: float | None = None
    metric: str = ""
    why: str = ""
    """Why it was not evaluated, or is not clear."""
    judged: list[Judged] = msgspec.field(default_factory=list)
    """The subject under test, then the others."""
    command: str = ""
    """Command that repeats the runs."""


class ChangedCriterion(msgspec.Struct, frozen=True, kw_only=True):
    """A criterion in an earlier evaluation and now."""

    name: str
    before: Verdict
    now: Verdict
    metric: str = ""
    """Metric that changed; that of the first measure if none did."""
    value_before: float | None
    value: float | None
    change: Literal["better", "worse", "not clear"]
    """Direction of a change that the intervals allow to state; of several, the worse one."""


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    """An evaluation: a verdict on each criterion."""

    format: int = FORMAT
    subject: str
    """Algorithm or discipline under test."""
    kind: str
    against: list[str]
    quick: bool
    machine: Machine | None = None
    criteria: list[CriterionResult]
    left_out: list[LeftOut] = []
    changes: list[ChangedCriterion] = []
    """Comparison with an earlier evaluation."""

    def counts(self, subject: str = "") -> str:
        """Return how many criteria have each verdict, as text: ``29 pass, 1 fail``.

        Without a ``subject`` they are those of the one under test.
        """
        found: list[Verdict] = [each.verdict for each in self.criteria]
        if subject:
            judged = [one for each in self.criteria for one in each.judged]
            found = [each.verdict for each in judged if each.subject == subject]
        counts = ((found.count(each), each) for each in VERDICTS)
        return ", ".join(f"{count} {name}" for count, name in counts if count)

    @property
    def failed_musts(self) -> list[str]:
        """Names of the criteria with MUST that failed."""
        return [e.name for e in self.criteria if e.level == "MUST" and e.verdict == "fail"]


class _Point(msgspec.Struct, frozen=True):
    """The runs of one subject at one point of the other axes."""

    at: dict[str, str]
    runs: list[CaseResult]


def judge(
    scenario: Scenario, result: Result, subjects: Sequence[Subject], folder: str = ""
) -> list[Judged]:
    """Return the verdicts on all subjects by the runs of a criterion, kept in ``folder``."""
    criterion = scenario.criterion
    assert criterion is not None  # noqa: S101 - ``load_criterion`` has looked
    points = _points(scenario.cases, result, criterion, folder)
    judged = []
    for each in subjects:
        if each.name not in points:
            continue
        measures = [
            _measured(measure, criterion, each.name, points) for measure in criterion.measures
        ]
        verdict = max((one.worst.verdict for one in measures), key=_WORST.index)
        judged.append(Judged(subject=each.name, verdict=verdict, measures=measures))
    return judged


def _points(
    cases: Iterable[Case], result: Result, criterion: Criterion, folder: str
) -> dict[str, dict[tuple[tuple[str, str], ...], _Point]]:
    """Return the runs by subject and point of the other axes."""
    runs: dict[str, list[CaseResult]] = {}
    for run in result.cases:
        if run.recording is not None:
            place = f"{folder}/{run.recording}"
            run = replace(run, recording=place)  # noqa: PLW2901
        runs.setdefault(run.name, []).append(run)
    found: dict[str, dict[tuple[tuple[str, str], ...], _Point]] = {}
    for case in cases:
        at = {name: word_of(value) for name, value in case.parameters.items()}
        subject = at.pop(criterion.subject)
        key = tuple(sorted(at.items()))
        found.setdefault(subject, {})[key] = _Point(at, runs.get(case.name, []))
    return found


def _measured(
    measure: CriterionMeasure,
    criterion: Criterion,
    subject: str,
    points: Mapping[str, Mapping[tuple[tuple[str, str], ...], _Point]],
) -> Measured:
    figures = []
    for key, point in points[subject].items():
        if not measure.at.items() <= point.at.items():
            continue
        other = measure.minus or measure.over
        if other == BESIDE:
            other = point.at[criterion.beside]
        reference = points.get(other, {}).get(key) if other else None
        if other and reference is None:
            figures.append(_unclear(point, f"{other} was not measured"))
        elif other == subject:
            figures.append(_figure(measure, point, None, 1.0 if measure.over else 0.0))
        else:
            figures.append(_figure(measure, point, reference))
    if not figures:
        figures = [Figure(value=None, runs=0, verdict="unclear", why="no point was measured")]
    worst = max(figures, key=lambda each: (_WORST.index(each.verdict), -_margin(measure, each)))
    return Measured(
        metric=measure.metric,
        text=measure.text or words(measure.metric).text,
        bound=_bound(measure),
        reason=measure.why,
        worst=worst,
        figures=figures,
    )


def _unclear(point: _Point, why: str) -> Figure:
    return Figure(at=point.at, value=None, runs=len(point.runs), verdict="unclear", why=why)


def _figure(
    measure: CriterionMeasure, point: _Point, reference: _Point | None, known: float | None = None
) -> Figure:
    """Return the figure at a point, relative to a reference if there is one."""
    counted = [run for run in point.runs if counts_in_means(run)]
    if not counted:
        errors = [error for run in point.runs for error in run.errors]
        return _unclear(point, errors[0] if errors else "no run was finished")
    values = [metric_of(run, measure.metric) for run in counted]
    beside = [run for run in reference.runs if counts_in_means(run)] if reference else []
    busy = [run for run in (*counted, *beside) if not run.health.trustworthy]
    doubt = ""
    if busy:
        reason = next(iter(busy[0].health.reasons), "the machine was busy")
        doubt = f"{len(busy)} of its runs can't be trusted, since {reason}: {_REMEDY}"
    half: float | None
    if known is not None:
        value, half = known, 0.0
    elif None in values:
        why = why_unmeasured(measure.metric, counted)
        return Figure(
            at=point.at,
            value=None,
            runs=len(counted),
            untrustworthy=len(busy),
            verdict="not judged" if busy else "fail",
            why=doubt or why,
        )
    else:
        found = statistic([each for each in values if each is not None])
        value, half = found.mean, found.half_width
    known_values = [each for each in values if each is not None]
    if reference is not None:
        others = [e for run in beside if (e := metric_of(run, measure.metric)) is not None]
        if not others or (measure.over and not statistic(others).mean):
            return _unclear(point, "what it is compared with was not measured")
        theirs = statistic(others)
        value, half = _relative(measure, (value, half), (theirs.mean, theirs.half_width))
    low, high = (None, None) if half is None else (value - half, value + half)
    verdict, why = _verdict(measure, value, low, high), ""
    if busy:
        verdict, why = "not judged", doubt
    elif verdict == "unclear":
        why = "the interval includes the bound: more repeats decide"
    return Figure(
        at=point.at,
        value=_short(value),
        low=_short(low),
        high=_short(high),
        alone=_short(statistic(known_values).mean) if known_values else None,
        runs=len(counted),
        untrustworthy=len(busy),
        verdict=verdict,
        why=why,
        recording=counted[0].recording,
    )


def _relative(
    measure: CriterionMeasure, ours: tuple[float, float | None], theirs: tuple[float, float | None]
) -> tuple[float, float | None]:
    """Return a difference or ratio with half of its interval; errors add up as of independents."""
    (value, half), (other, other_half) = ours, theirs
    if measure.minus:
        both = None if half is None or other_half is None else math.hypot(half, other_half)
        return value - other, both
    ratio = value / other
    if half is None or other_half is None:
        return ratio, None
    share = math.hypot(half / value if value else 0.0, other_half / other)
    return ratio, abs(ratio) * share


def _verdict(
    measure: CriterionMeasure, value: float, low: float | None, high: float | None
) -> Verdict:
    """Return the verdict on an interval; on the value alone if it is of a single run."""
    least, most = _bounds(measure)
    low, high = (value if low is None else low), (value if high is None else high)
    if least <= low and high <= most:
        return "pass"
    return "fail" if high < least or low > most else "unclear"


def _margin(measure: CriterionMeasure, figure: Figure) -> float:
    """Return the distance of a value from the nearest bound; negative beyond it."""
    if figure.value is None:
        return -math.inf
    least, most = _bounds(measure)
    return min(figure.value - least, most - figure.value)


def _bounds(measure: CriterionMeasure) -> tuple[float, float]:
    least = -math.inf if measure.low is None else measure.low
    return least, math.inf if measure.high is None else measure.high


def _short(value: float | None) -> float | None:
    """Return a value with six significant digits."""
    return None if value is None else float(f"{value:.6g}")


def write_value(metric: str, bound: str, value: float | None) -> str:
    """Return a value with its unit; a ratio with ×."""
    if value is None:
        return "–"
    if bound.endswith("×"):
        return f"{value:.2f}×"
    fitting = unit(metric, (value,))
    return f"{fitting.write(value)} {fitting.name}".rstrip()


def write_figure(measured: Measured, figure: Figure | None = None) -> str:
    """Return a figure of a measure, by default the worst, with its interval: ``23.1 ± 1.2 ms``."""
    figure = figure or measured.worst
    value, low, high = figure.value, figure.low, figure.high
    if value is None or low is None or high is None or low == high:
        return write_value(measured.metric, measured.bound, value)
    fitting = Unit(1.0, "×") if measured.bound.endswith("×") else unit(measured.metric, (value,))
    text = fitting.write_interval(value, (high - low) / 2)
    return f"{text}×" if fitting.name == "×" else f"{text} {fitting.name}".rstrip()


def _bound(measure: CriterionMeasure) -> str:
    times = "×" if measure.over else ""
    scale = unit(measure.metric, [e for e in (measure.low, measure.high) if e is not None])

    def text(value: float) -> str:
        return f"{value:g}×" if times else f"{value / scale.scale:g} {scale.name}".rstrip()

    parts = []
    if measure.low is not None:
        parts.append(f"at least {text(measure.low)}")
    if measure.high is not None:
        parts.append(f"at most {text(measure.high)}")
    return ", ".join(parts)


def criterion_result(
    name: str, scenario: Scenario, judged: Sequence[Judged], command: str, why: str = ""
) -> CriterionResult:
    """Return the result of a criterion; ``why`` is the reason if it could not be evaluated."""
    criterion = scenario.criterion
    assert criterion is not None  # noqa: S101 - ``load_criterion`` has looked
    ours = judged[0] if judged else None
    first = ours.measures[0].worst if ours else None
    return CriterionResult(
        name=name,
        title=scenario.title,
        **_asked(criterion),
        sentence=criterion.sentence,
        remark=criterion.remark,
        verdict=ours.verdict if ours else "not evaluated",
        value=first.value if first else None,
        low=first.low if first else None,
        high=first.high if first else None,
        metric=criterion.measures[0].metric,
        why=why or (ours.deciding.worst.why if ours else ""),
        judged=list(judged),
        command=command,
    )


def in_order(found: Iterable[CriterionResult]) -> list[CriterionResult]:
    """Return criteria in the order of the sections of their RFCs."""
    return sorted(found, key=section_of)


def section_of(found: CriterionResult) -> tuple[list[int], str]:
    """Return the place of a criterion: its RFC and section, then its name."""
    parts = [found.rfc, *found.section.split(".")]
    return [int(each) for each in parts if each.isdecimal()], found.name


# --- comparison with an earlier evaluation --------------------------------------------------------


def compare(before: Evaluation, now: Evaluation) -> Iterator[ChangedCriterion]:
    """Yield the criteria that both evaluations have, with what became better or worse.

    A figure changed if the intervals do not overlap. If both are of single runs, it changed if its
    verdict did so between pass and fail. A figure that was not judged never did.
    """
    known = {each.name: each for each in before.criteria}
    for each in now.criteria:
        earlier = known.get(each.name)
        if earlier is None or not (earlier.judged and each.judged):
            continue
        old = {one.metric: one for one in earlier.judged[0].measures}
        pairs = [(old[one.metric], one) for one in each.judged[0].measures if one.metric in old]
        changes = [(_change(*pair), pair) for pair in pairs]
        changes.sort(key=lambda found: ("worse", "better", "not clear").index(found[0]))
        for change, (was, is_now) in changes[:1]:
            yield ChangedCriterion(
                name=each.name,
                before=earlier.verdict,
                now=each.verdict,
                metric=is_now.metric,
                value_before=was.worst.value,
                value=is_now.worst.value,
                change=change,
            )


def _change(was: Measured, now: Measured) -> Literal["better", "worse", "not clear"]:
    before, after = was.worst, now.worst
    if "not judged" in (before.verdict, after.verdict):
        return "not clear"
    intervals = (before.low, before.high, after.low, after.high)
    if all(each is None for each in intervals):
        if {before.verdict, after.verdict} == {"pass", "fail"}:
            return "better" if after.verdict == "pass" else "worse"
        return "not clear"
    if before.low is None or before.high is None or after.low is None or after.high is None:
        return "not clear"
    more = after.low > before.high
    if not more and after.high >= before.low:
        return "not clear"
    return "better" if more == now.bound.startswith("at least") else "worse"

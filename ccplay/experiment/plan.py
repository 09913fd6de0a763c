"""The runs of an experiment: their options, their order, and how often each case is run."""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace

from ccplay.analysis.metrics import check_metrics, metric_problem, metrics_of
from ccplay.analysis.results import CaseResult, CaseStatistics, Machine, Result
from ccplay.analysis.statistics import (
    MachineEffect,
    Measured,
    Statistic,
    machine_effects,
    statistic,
)
from ccplay.errors import ScenarioError, UsageError
from ccplay.model.quantities import quote
from ccplay.model.topologies import plan
from ccplay.scenario.evidence import unaliased
from ccplay.scenario.matrix import repeated
from ccplay.scenario.values import Case, Published, Scenario
from ccplay.stream.sinks import Sink
from ccplay.traffic import TRAFFIC

# --- the runs and their order: every case once, then every case again -----------------------------

_LONGEST_SLUG = 60


class PlannedRun(msgspec.Struct, frozen=True):
    """One repeat of one case."""

    case: Case
    """Case as in the file; ``played`` is this repeat of it."""
    repeat: int
    """Number of the repeat, from 1."""

    @property
    def played(self) -> Case:
        """The case with this repeat's jitter, order of starts and seed."""
        return repeated(self.case, self.repeat)

    @property
    def key(self) -> tuple[str, int]:
        """Identity of the run: its case and repeat."""
        return self.case.name, self.repeat

    def __str__(self) -> str:
        return self.case.name if self.case.repeats == 1 else f"{self.case.name}, run {self.repeat}"


def plan_runs(scenario: Scenario) -> list[PlannedRun]:
    """Return all runs, repeat by repeat, so that an interrupted experiment is balanced.

    Cases take turns at each point of a matrix, so that not all heavy ones run in parallel.
    """
    most = max(case.repeats for case in scenario.cases)
    points = list(dict.fromkeys(str(case.parameters) for case in scenario.cases))
    in_turns = sorted(scenario.cases, key=lambda case: points.index(str(case.parameters)))
    return [
        PlannedRun(case, repeat)
        for repeat in range(1, most + 1)
        for case in in_turns
        if repeat <= case.repeats
    ]


def slugs(cases: Sequence[Case]) -> dict[str, str]:
    """Return a unique part of a file name for each case."""
    found: dict[str, str] = {}
    for case in cases:
        slug = slug_of(case.name)
        # A slug of a name never has a dot.
        same = sum(each.partition(".")[0] == slug for each in found.values())
        found[case.name] = f"{slug}.{same + 1}" if same else slug
    return found


def slug_of(name: str) -> str:
    """Return a name in the form used in file names: ``reno-100-packets``."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:_LONGEST_SLUG].strip("-") or "case"


# --- how often each case is run: a fixed number of times, or until a metric is precise enough -----

LEAST_REPEATS = 3
"""Smallest number of repeats; with two, Student's t is 12.7 and the interval is useless."""
MOST_REPEATS = 100
"""Default of ``--max-repeats``."""
_MOST_AHEAD = 200


class FixedSchedule:
    """The runs of a plan that are not finished."""

    def __init__(
        self, runs: Iterable[PlannedRun], finished: Collection[tuple[str, int]] = ()
    ) -> None:
        self._runs = deque(run for run in runs if run.key not in finished)
        self.ahead = min(len({run.case.name for run in self._runs}), _MOST_AHEAD)
        """Number of runs that may start out of order, so that machines share the cases evenly."""

    def next(self) -> PlannedRun | None:
        """Return the next run of the plan."""
        return self._runs.popleft() if self._runs else None

    def add_result(self, result: CaseResult) -> None:
        """Change nothing: the plan is fixed."""

    def remaining_cases(self) -> list[Case]:
        """Return the cases of the rest of the plan."""
        return [run.case for run in self._runs]


class Goal(msgspec.Struct, frozen=True):
    """The required precision of a metric."""

    share: float
    """Largest half width of the 95 % confidence interval, as a share of the mean."""
    metrics: dict[str, str]
    """Name of the metric that needs a precise mean, by case."""
    most: int = MOST_REPEATS
    """Largest number of repeats of a case."""

    def reached(self, values: Sequence[float]) -> bool:
        """Return whether the mean of these values is precise enough."""
        if len(values) < min(LEAST_REPEATS, self.most):
            return False
        found = statistic(values)
        half = found.half_width
        return half is not None and half <= self.share * abs(found.mean)

    def guess(self, values: Sequence[float]) -> int:
        """Estimate the number of values needed: the interval narrows with that number's root."""
        found = statistic(values)
        if found.half_width is None or found.mean == 0:
            return len(values) + 1
        return math.ceil(len(values) * (found.half_width / (self.share * abs(found.mean))) ** 2)


class _CaseProgress(msgspec.Struct):
    """The runs and values of a case so far."""

    case: Case
    begun: set[int] = msgspec.field(default_factory=set)
    ended: int = 0
    values: list[float] = msgspec.field(default_factory=list)


class PrecisionSchedule:
    """Repeats every case until its metric is precise enough or the limit is reached.

    With several jobs a case is run ahead of its results, but at most to twice their number; surplus
    runs are kept and counted.
    """

    def __init__(self, cases: Sequence[Case], goal: Goal, finished: Iterable[CaseResult]) -> None:
        self.goal = goal
        self.ahead = 0
        self._cases = {case.name: _CaseProgress(case) for case in cases}
        for result in finished:
            if result.name in self._cases:
                self._cases[result.name].begun.add(result.repeat)
                self.add_result(result)

    def next(self) -> PlannedRun | None:
        """Return a repeat of the case started least often, of those that need one."""
        open_ = [each for each in self._cases.values() if self._missing(each)]
        if not open_:
            return None
        least = min(open_, key=lambda each: len(each.begun))
        repeat = next(n for n in range(1, self.goal.most + 1) if n not in least.begun)
        least.begun.add(repeat)
        return PlannedRun(least.case, repeat)

    def add_result(self, result: CaseResult) -> None:
        """Count the outcome of a run."""
        if (progress := self._cases.get(result.name)) is None:
            return
        progress.ended += 1
        value = metrics_of(result).get(self.goal.metrics[result.name])
        if counts_in_means(result) and value is not None:
            progress.values.append(value)

    def remaining_cases(self) -> list[Case]:
        """Return the cases of the runs still needed, as far as can be estimated."""
        return [each.case for each in self._cases.values() for _ in range(self._missing(each))]

    def imprecise(self) -> dict[str, Statistic | None]:
        """Return the statistic of every case that missed the goal; None if never measured."""
        return {
            name: statistic(each.values) if each.values else None
            for name, each in self._cases.items()
            if not self.goal.reached(each.values)
        }

    def _missing(self, progress: _CaseProgress) -> int:
        """Return the number of runs to start now."""
        most, values = self.goal.most, progress.values
        least = min(LEAST_REPEATS, most)
        if progress.ended < least:
            wanted = least
        elif not values or self.goal.reached(values):
            # If three runs could not measure it, a fourth won't.
            wanted = 0
        else:
            guess = progress.ended - len(values) + self.goal.guess(values)
            wanted = min(max(guess, progress.ended + 1), 2 * progress.ended, most)
        return max(wanted - len(progress.begun), 0)


Schedule: TypeAlias = FixedSchedule | PrecisionSchedule
"""What decides which run is next."""


# --- run options: what the command line overrides or adds to a scenario ---------------------------


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The run options of a scenario."""

    cases: Sequence[str] = ()
    """Names of the cases to run; none means all."""
    jobs: int = 1
    """Number of parallel labs."""
    repeats: int | None = None
    """Repeats of every case; overrides the file."""
    until_ci: float | None = None
    """Largest half width of the 95 % confidence interval, as a share of the mean."""
    metric: str | None = None
    """Metric for ``until_ci``; None selects the first metric of each case."""
    most: int = MOST_REPEATS
    """Largest number of repeats of a case with ``until_ci``."""
    hz: float | None = None
    """Samples per second; overrides the file."""
    out: Path | None = None
    """Run directory; None keeps no runs."""
    record: Path | None = None
    """File for the stream of a single run."""
    as_json: bool = False
    receiver: bool = False
    """Whether to print every second the bytes delivered by each flow."""
    share: Callable[[str, str], Sink] | None = None
    """Function that opens a sink to share one run, from the name and the title of its case."""
    command: str = ""
    """Command line that resumes after Ctrl-C."""
    away: Literal["", "detach", "attach", "cancel"] = ""
    """Request for an experiment that can continue without this machine; empty if there is none."""


def with_options(scenario: Scenario, wanted: RunOptions) -> Scenario:
    """Return a scenario with the repeats and the sampling rate of these options.

    Raises ``ScenarioError`` if it names a metric that nothing measures.
    """
    check_metrics(scenario)
    often = wanted.repeats if wanted.until_ci is None else wanted.most
    cases = (
        replace(
            case,
            repeats=often or case.repeats,
            build=replace(case.build, sample_hz=wanted.hz or case.build.sample_hz),
        )
        for case in scenario.cases
    )
    return replace(scenario, cases=tuple(cases))


def goal_of(scenario: Scenario, wanted: RunOptions) -> Goal | None:
    """Return the goal for the means of a scenario's cases.

    Raises ``ScenarioError`` if a case does not name a metric, ``UsageError`` if the command line
    names one that it does not measure.
    """
    if wanted.until_ci is None:
        return None
    metrics = {case.name: _metric(case, scenario, wanted) for case in scenario.cases}
    return Goal(wanted.until_ci, metrics, wanted.most)


def _metric(case: Case, scenario: Scenario, wanted: RunOptions) -> str:
    metric = wanted.metric or next(iter(case.metrics), None)
    if metric is not None:
        metric = unaliased(metric, plan(case.build.topology))
    name = f"case {quote(case.name)}"
    if metric is None:
        raise ScenarioError(
            f"{scenario.path.name}: metrics: {name} has none for --until-ci to watch: "
            "name one here, or with --metric checkpoint.ratio"
        )
    if problem := metric_problem(metric, case):
        raise UsageError(f"--metric: {name}: {problem}")
    return metric


_SHOWN = [(f"{kind.group}.", f".{kind.metric}") for kind in TRAFFIC if kind.metric]
_USUAL = (_SHOWN[0], ("checkpoint.ratio", ""), *_SHOWN[1:])
"""Prefixes and suffixes of the names of the most useful metrics, those of flows first."""


def usual_metrics(metrics: Iterable[str]) -> list[str]:
    """Return the metrics to show if the scenario names none, from the measured ones."""
    return [
        metric
        for start, end in _USUAL
        for metric in metrics
        if metric.startswith(start) and metric.endswith(end)
    ]


def counts_in_means(result: CaseResult) -> bool:
    """Return whether a run counts in a mean: it was completed without errors."""
    return not result.interrupted and not result.errors


class _MeasuredRun(NamedTuple):
    """A run and its metrics, which take long to find."""

    result: CaseResult
    metrics: dict[str, float]


class CollectedRuns:
    """The runs so far, in the scenario's order."""

    def __init__(self, scenario: Scenario) -> None:
        self.machine: Machine | None = None
        self.discarded: list[CaseResult] = []
        self._scenario = scenario
        self._order = {case.name: number for number, case in enumerate(scenario.cases)}
        self._runs: dict[tuple[str, int], _MeasuredRun] = {}
        self._broken: set[tuple[str, int]] = set()
        self._machines: dict[str, Machine] = {}

    def add(
        self, result: CaseResult, *, whole: bool = True, machine: Machine | None = None
    ) -> None:
        """Add the last attempt of a run on ``machine``; an interrupted one is not ``whole``."""
        self.machine = self.machine or machine
        if machine is not None and result.machine is not None:
            self._machines.setdefault(result.machine, machine)
        if not whole:
            self._broken.add((result.name, result.repeat))
        self._runs[result.name, result.repeat] = _MeasuredRun(result, metrics_of(result))

    def __bool__(self) -> bool:
        """Whether there is any run."""
        return bool(self._runs)

    def result(self, *, whole_only: bool = False) -> Result:
        """Return all runs as one result, optionally without interrupted ones."""
        runs = sorted(
            (run for key, run in self._runs.items() if not (whole_only and key in self._broken)),
            key=lambda each: (self._order[each.result.name], each.result.repeat),
        )
        own = _by_case(runs)
        statistics = [
            _statistics(
                own[case.name],
                case.metrics,
                [replace(each, source=case.published_in) for each in case.published],
            )
            for case in self._scenario.cases
            if case.name in own
        ]
        return Result(
            scenario=self._scenario.name,
            title=self._scenario.title,
            machine=self.machine,
            cases=[run.result for run in runs],
            statistics=statistics,
            machines=[self._machines[name] for name in sorted(self._machines)],
            machine_effects=_effects(runs, statistics),
            discarded=sorted(
                self.discarded, key=lambda e: (self._order[e.name], e.repeat, e.attempt)
            ),
        )


def _by_case(runs: Iterable[_MeasuredRun]) -> dict[str, list[_MeasuredRun]]:
    """Return the runs of each case, by its name."""
    own: dict[str, list[_MeasuredRun]] = {}
    for run in runs:
        own.setdefault(run.result.name, []).append(run)
    return own


def _statistics(
    runs: Sequence[_MeasuredRun], reported: Sequence[str], published: list[Published]
) -> CaseStatistics:
    """Return the statistics of a case over those of its runs that count."""
    counted = [run for run in runs if counts_in_means(run.result)]
    metrics = dict.fromkeys(metric for run in counted for metric in run.metrics)
    return CaseStatistics(
        name=runs[0].result.name,
        parameters=dict(runs[0].result.parameters),
        runs=len(counted),
        untrustworthy=sum(not run.result.health.trustworthy for run in counted),
        metrics={
            metric: statistic([run.metrics[metric] for run in counted if metric in run.metrics])
            for metric in metrics
        },
        reported=list(reported or usual_metrics(metrics)),
        published=published,
    )


def extend_result(result: Result, later: Iterable[tuple[CaseResult, Machine | None]]) -> Result:
    """Return a result with runs that were finished after it was written."""
    added = list(later)
    if not added:
        return result
    changed = {run.name for run, _ in added}
    before = {each.name: each for each in result.statistics}
    own = _by_case(
        _MeasuredRun(run, metrics_of(run)) for run in (*result.cases, *(run for run, _ in added))
    )
    machines = {each.name: each for each in result.machines}
    machines |= {where.name: where for run, where in added if where is not None and run.machine}
    statistics = []
    for name, runs in own.items():
        runs.sort(key=lambda run: run.result.repeat)
        known = before.get(name)
        if known is None or name in changed:
            reported = known.reported if known else ()
            published = known.published if known else []
            known = _statistics(runs, reported, published)
        statistics.append(known)
    every = [run for runs in own.values() for run in runs]
    return replace(
        result,
        machine=result.machine or added[0][1],
        cases=[run.result for run in every],
        statistics=statistics,
        machines=list(machines.values()),
        machine_effects=_effects(every, statistics),
    )


def _effects(
    runs: Sequence[_MeasuredRun], statistics: Sequence[CaseStatistics]
) -> list[MachineEffect]:
    """Return the machines' means of the metrics shown first; empty if one machine made all runs."""
    if len({run.result.machine for run in runs}) < 2:
        return []
    found: dict[str, list[Measured]] = {
        metric: [] for case in statistics for metric in case.reported
    }
    for run, measured in runs:
        for metric, values in found.items():
            if counts_in_means(run) and run.machine is not None and metric in measured:
                values.append((run.name, run.machine, measured[metric]))
    return machine_effects(found)

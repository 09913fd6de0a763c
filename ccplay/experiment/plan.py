"""The runs of an experiment: their options, their order, and how often each case is run."""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Literal, Protocol

import msgspec
from msgspec.structs import replace

from ccplay.analysis.metrics import check_metrics, metric_problem, metrics_of
from ccplay.analysis.results import CaseResult
from ccplay.analysis.statistics import Statistic, statistic
from ccplay.errors import ScenarioError, UsageError
from ccplay.experiment.grouping import counts
from ccplay.model.quantities import quote
from ccplay.model.topologies import plan
from ccplay.scenario.evidence import unaliased
from ccplay.scenario.matrix import repeated
from ccplay.scenario.values import Case, Scenario
from ccplay.stream.sinks import Sink

# --- the runs and their order: every case once, then every case again -----------------------------

_LONGEST_SLUG = 60


class Run(msgspec.Struct, frozen=True):
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


def plan_runs(scenario: Scenario) -> list[Run]:
    """Return all runs, repeat by repeat, so that an interrupted experiment is balanced.

    Cases take turns at each point of a matrix, so that not all heavy ones run in parallel.
    """
    most = max(case.repeats for case in scenario.cases)
    points = list(dict.fromkeys(str(case.parameters) for case in scenario.cases))
    in_turns = sorted(scenario.cases, key=lambda case: points.index(str(case.parameters)))
    return [
        Run(case, repeat)
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


class Agenda(Protocol):
    """Decides which run is next."""

    ahead: int
    """Number of runs that may be taken out of order, so that machines share the cases evenly."""

    def next(self) -> Run | None:
        """Return the run to start now; None if none is left, or until further results decide."""

    def take(self, result: CaseResult) -> None:
        """Accept the result of a run."""

    def waiting(self) -> list[Case]:
        """Return the cases of all runs yet to start, as far as known."""


class Planned:
    """The runs of a plan that are not finished."""

    def __init__(self, runs: Iterable[Run], finished: Collection[tuple[str, int]] = ()) -> None:
        self._runs = deque(run for run in runs if run.key not in finished)
        self.ahead = min(len({run.case.name for run in self._runs}), _MOST_AHEAD)

    def next(self) -> Run | None:
        """Return the next run of the plan."""
        return self._runs.popleft() if self._runs else None

    def take(self, result: CaseResult) -> None:
        """Change nothing: the plan is fixed."""

    def waiting(self) -> list[Case]:
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


class _Progress(msgspec.Struct):
    """The runs and values of a case so far."""

    case: Case
    begun: set[int] = msgspec.field(default_factory=set)
    ended: int = 0
    values: list[float] = msgspec.field(default_factory=list)


class UntilSure:
    """Repeats every case until its metric is precise enough or the limit is reached.

    With several jobs a case is run ahead of its results, but at most to twice their number; surplus
    runs are kept and counted.
    """

    def __init__(self, cases: Sequence[Case], goal: Goal, finished: Iterable[CaseResult]) -> None:
        self.goal = goal
        self.ahead = 0
        self._cases = {case.name: _Progress(case) for case in cases}
        for result in finished:
            if result.name in self._cases:
                self._cases[result.name].begun.add(result.repeat)
                self.take(result)

    def next(self) -> Run | None:
        """Return a repeat of the case started least often, of those that need one."""
        open_ = [each for each in self._cases.values() if self._missing(each)]
        if not open_:
            return None
        least = min(open_, key=lambda each: len(each.begun))
        repeat = next(n for n in range(1, self.goal.most + 1) if n not in least.begun)
        least.begun.add(repeat)
        return Run(least.case, repeat)

    def take(self, result: CaseResult) -> None:
        """Count the outcome of a run."""
        if (progress := self._cases.get(result.name)) is None:
            return
        progress.ended += 1
        value = metrics_of(result).get(self.goal.metrics[result.name])
        if counts(result) and value is not None:
            progress.values.append(value)

    def waiting(self) -> list[Case]:
        """Return the cases of the runs still needed, as far as can be estimated."""
        return [each.case for each in self._cases.values() for _ in range(self._missing(each))]

    def unsure(self) -> dict[str, Statistic | None]:
        """Return the statistic of every case that missed the goal; None if never measured."""
        return {
            name: statistic(each.values) if each.values else None
            for name, each in self._cases.items()
            if not self.goal.reached(each.values)
        }

    def _missing(self, progress: _Progress) -> int:
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
    return replace(
        scenario, cases=tuple(_with_options(case, often, wanted.hz) for case in scenario.cases)
    )


def _with_options(case: Case, repeats: int | None, hz: float | None) -> Case:
    return replace(
        case,
        repeats=repeats or case.repeats,
        build=msgspec.structs.replace(case.build, sample_hz=hz or case.build.sample_hz),
    )


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

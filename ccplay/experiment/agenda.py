"""How often each case is run: a fixed number of times, or until a metric is precise enough."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

import msgspec

from ccplay.analysis.metrics import metrics_of
from ccplay.analysis.results import CaseResult
from ccplay.analysis.statistics import Statistic, statistic
from ccplay.experiment.grouping import counts
from ccplay.experiment.plan import Run
from ccplay.scenario.values import Case

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

"""Estimates the time left in an experiment from its finished runs."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from ccplay.scenario.values import Case

_AROUND_S = 2.0
"""Seconds to assume for a lab's start and end until one is measured."""


class Forecast:
    """Duration of finished runs by case."""

    def __init__(self) -> None:
        self._took: dict[str, list[float]] = {}

    def learn(self, case: Case, seconds: float) -> None:
        """Record the time of a run, start and end of its lab included."""
        self._took.setdefault(case.name, []).append(seconds)

    def expects(self, case: Case) -> float:
        """Return the expected seconds of a run: the mean of earlier ones, else the file's duration.

        A case that ends early takes less than the file's duration, so this overestimates.
        """
        took = self._took.get(case.name)
        return sum(took) / len(took) if took else case.duration_s + _AROUND_S

    def left(
        self, running: Iterable[tuple[Case, float]], waiting: Iterable[Case], jobs: int
    ) -> float:
        """Return the seconds until all runs are done, each started as soon as a job is free.

        ``running`` has the seconds that each run has taken so far.
        """
        ends = [max(self.expects(case) - since, 0.0) for case, since in running]
        free = [0.0] * max(jobs - len(ends), 0)
        jobs_free_at = ends + free or [0.0]
        heapq.heapify(jobs_free_at)
        for case in waiting:
            heapq.heapreplace(jobs_free_at, jobs_free_at[0] + self.expects(case))
        return max(jobs_free_at)

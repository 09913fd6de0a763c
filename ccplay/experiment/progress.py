"""Progress of an experiment: running and finished runs, and the time left."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterable, Sequence

from ccplay.analysis.metrics import metrics_of
from ccplay.experiment.plan import Run
from ccplay.experiment.pool import Outcome
from ccplay.report.data.findings import misbehaviours
from ccplay.report.data.naming import write
from ccplay.report.terminal.progress import Lane, ProgressDisplay, roughly
from ccplay.scenario.values import Case
from ccplay.state.lab_state import LabState

# --- estimates the time left in an experiment from its finished runs ------------------------------

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


# --- progress of an experiment: running and finished runs, and the time left ----------------------

_UPDATE_EVERY_S = 0.5


class ProgressTracker:
    """Counts runs and reports them to a ``ProgressDisplay``."""

    def __init__(
        self, display: ProgressDisplay, outlook: Callable[[], tuple[Sequence[Case], int]], done: int
    ) -> None:
        """``outlook`` returns the runs to come and the number of parallel ones."""
        self.forecast = Forecast()
        self._display = display
        self._outlook = outlook
        self._done = done
        self._broken = 0
        self._running: dict[tuple[str, int], tuple[Case, float]] = {}
        self._updated_at = 0.0

    @property
    def progress(self) -> tuple[int, int]:
        """Number of finished runs, and of all runs as far as known."""
        coming = len(self._running) + len(self._outlook()[0])
        return self._done, self._done + self._broken + coming

    def open(self) -> None:
        """Report the runs to come."""
        waiting, jobs = self._outlook()
        if self._display.story or not waiting:
            return
        finished = f"{self._done} finished, " if self._done else ""
        beside = f"{min(jobs, len(waiting))} at a time, " if jobs > 1 else ""
        self._display.print(f"{finished}{len(waiting)} to run: {beside}{self._left()}", "dim")

    def begin(self, run: Run, attempt: int, *, where: str = "") -> Lane | None:
        """Report the beginning of an attempt; ``where`` names a bench that is not this machine."""
        self._running[run.key] = (run.case, time.monotonic())
        if where:
            # A cluster may make a thousand at a time.
            return None
        name = f"{run}, again" if attempt > 1 else str(run)
        number = self._done + self._broken + 1
        exact = run.case.until == "duration"
        return self._display.begin(name, run.case.duration_s, number=number, exact=exact)

    def watch(self, lane: Lane | None, state: LabState) -> None:
        """Report the events of a run, and at intervals the progress of all."""
        if lane is not None:
            lane.update(state)
        if (now := time.monotonic()) - self._updated_at >= _UPDATE_EVERY_S:
            self._updated_at = now
            self._display.overall(*self.progress, self._left())

    def end(self, run: Run, lane: Lane | None) -> float:
        """Record the end of an attempt; return its duration."""
        if lane is not None:
            lane.end()
        _, since = self._running.pop(run.key)
        return time.monotonic() - since

    def settle(self, run: Run, outcome: Outcome, *, elsewhere: bool = False) -> None:
        """Report the result of a run whose events were not shown.

        An interrupted run ``elsewhere`` is only counted: it may continue there, one of a thousand.
        """
        self._done += outcome.whole
        self._broken += not outcome.whole
        result = outcome.result
        if self._display.story or (elsewhere and result.interrupted):
            return
        if result.machine is not None:
            # Runs elsewhere report nothing else.
            self._display.overall(*self.progress, self._left())
        self._display.print(self._line(run, outcome))
        if not result.health.trustworthy and not result.interrupted:
            self.warn(f"  warning: {', '.join(result.health.reasons)}")
        for each in misbehaviours(result):
            self.warn(f"  warning: {each}")
        for error in result.errors:
            self._display.print(f"  error: {error}", "red")

    def warn(self, text: str) -> None:
        """Report a warning that concerns more than one run."""
        self._display.print(text, "yellow")

    def _line(self, run: Run, outcome: Outcome) -> str:
        if outcome.result.interrupted:
            return f"{run}: interrupted"
        done, total = self.progress
        line = f"{done:>{len(str(total))}}/{total}  {run}: {outcome.result.duration_s:.1f} s"
        metrics = metrics_of(outcome.result)
        for metric in [each for each in run.case.metrics if each in metrics][:1]:
            line += f", {metric} {write(metric, metrics[metric])}"
        line += f", on {outcome.result.machine}" if outcome.result.machine else ""
        # A terminal shows a bar instead.
        return line if self._display.live or done == total else f"{line}; {self._left()}"

    def _left(self) -> str:
        now = time.monotonic()
        running = [(case, now - since) for case, since in self._running.values()]
        return roughly(self.forecast.left(running, *self._outlook()))

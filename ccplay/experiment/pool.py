"""Runs in parallel on all workers; failed runs are repeated, preferably elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec.structs import replace

from ccplay.analysis.results import CaseResult
from ccplay.analysis.trust import for_want_of_cpu, was_judged
from ccplay.errors import UnsupportedError
from ccplay.experiment.plan import PlannedRun, Schedule
from ccplay.experiment.trial import Handover, RunOrder, RunOutcome, execute
from ccplay.model.commands import Build
from ccplay.scenario.values import Case
from ccplay.state.lab_state import LabState
from ccplay.stream.sinks import Sink
from ccplay.stream.sources import Source

# --- workers: places that make runs. This machine is one; a cluster has many ----------------------

STARTS = max(1, (os.cpu_count() or 1) // 2)
"""Number of labs that may start at a time: a start takes a core from the labs that measure."""

_KEPT = 0.7
"""Share of the jobs that remain after a failure, like CUBIC's beta (RFC 9438, section 4.6)."""

_PATIENCE = 2
"""Number of times that all jobs must succeed before one more is allowed: a failure costs as many
runs."""


class WorkerLostError(Exception):
    """A worker was lost, or refused work, before a run was finished; another has to make it."""


class Worker(Protocol):
    """A place that makes runs, several at a time."""

    job_limit: JobLimit
    """Number of runs in parallel."""

    @property
    def name(self) -> str:
        """Name for messages; empty for this machine."""

    @property
    def machine(self) -> str:
        """Name of the worker's machine, which may have several workers."""

    def lacks(self, order: RunOrder) -> str:
        """Return what the worker's kernel lacks for an order, with the remedy; empty if nothing."""

    async def execute(
        self,
        order: RunOrder,
        record: Path | None,
        *,
        watch: Callable[[LabState], None] = lambda _: None,
        share: Callable[[], Sink | None] = lambda: None,
    ) -> RunOutcome:
        """Make a run; write its recording to ``record``.

        ``watch`` receives the state of runs on this machine after every event; ``share`` opens a
        sink for spectators. Raises ``WorkerLostError`` if another worker has to make the run, and
        what ``trial.execute`` raises.
        """


class Workers:
    """The workers of an experiment; those of a cluster also join and leave."""

    def __init__(self, *workers: Worker) -> None:
        self.changed = asyncio.Event()
        """Event set when a worker has joined or left; the waiting side clears it."""
        self._fixed = workers

    def available(self) -> Sequence[Worker]:
        """Return the workers that accept runs."""
        return self._fixed

    def discard_copy(self, order: RunOrder) -> None:
        """Let workers delete their copy of a run, which is kept here; this machine has none."""


class RemoteWorkers(Workers):
    """Workers that can continue an experiment without this machine, as those of a cluster can."""

    def pause(self) -> None:
        """Send the workers no more regular queries; current runs continue."""
        raise NotImplementedError

    async def hand_over(self, handover: Handover) -> None:
        """Let the workers make the rest of an experiment and keep it, without further queries.

        Raises ``LabError`` if they can't be reached.
        """
        raise NotImplementedError


class JobLimit:
    """The number of runs that a worker makes in parallel, adapted as TCP adapts cwnd.

    The number is reduced when parallel labs starve each other, and grows by one, up to the
    requested number, after as many good runs in a row as would fill the machine twice.
    """

    def __init__(self, most: int) -> None:
        self.jobs = most
        self.most = most
        self._good = 0

    def reduce(self, jobs: int) -> bool:
        """Reduce the number, unless that has been done since a run began among ``jobs``."""
        if jobs == 1 or jobs > self.jobs or self.jobs == 1:
            return False
        self.jobs, self._good = max(1, round(self.jobs * _KEPT)), 0
        return True

    def count_success(self, jobs: int) -> bool:
        """Count a good run that began among ``jobs``; return whether one more is now allowed."""
        if self.jobs == self.most or jobs > self.jobs:
            return False
        self._good += 1
        if self._good < _PATIENCE * self.jobs:
            return False
        self.jobs, self._good = self.jobs + 1, 0
        return True


class StartLimit:
    """A semaphore that limits how many labs start at a time."""

    def __init__(self, starts: int = STARTS) -> None:
        self._semaphore = asyncio.Semaphore(starts)

    @contextlib.asynccontextmanager
    async def slot(self) -> AsyncIterator[Callable[[], None]]:
        """Wait for a slot to start a lab; yield a function that frees it before the block ends."""
        await self._semaphore.acquire()
        with contextlib.ExitStack() as slot:
            slot.callback(self._semaphore.release)
            yield slot.close


class LocalWorker:
    """A worker on this machine, or wherever ``open_source`` starts labs."""

    name = ""
    machine = ""

    def __init__(
        self,
        open_source: Callable[[Build], Source],
        jobs: int,
        stop: asyncio.Event,
        start_limit: StartLimit | None = None,
    ) -> None:
        """Prepare the worker; ``stop`` ends every run, others may share its ``start_limit``."""
        self.job_limit = JobLimit(jobs)
        self._open_source = open_source
        self._stop = stop
        self._start_limit = start_limit or StartLimit()

    def lacks(self, order: RunOrder) -> str:  # noqa: ARG002 - the same for every worker
        """Return nothing: the first lab reports what this kernel lacks."""
        return ""

    async def execute(
        self,
        order: RunOrder,
        record: Path | None,
        *,
        watch: Callable[[LabState], None] = lambda _: None,
        share: Callable[[], Sink | None] = lambda: None,
    ) -> RunOutcome:
        """Make a run as soon as no other lab is starting."""
        async with self._start_limit.slot() as free_slot:

            def watched(state: LabState) -> None:
                if state.ready_at is not None:
                    free_slot()
                watch(state)

            sink = None if self._stop.is_set() else share()
            return await execute(
                order, self._open_source, self._stop, record=record, watch=watched, share=sink
            )


# --- runs in parallel on all workers; failed runs are repeated, preferably elsewhere --------------

MOST_ATTEMPTS = 3
"""Largest number of attempts at a run; the last one runs alone on its machine."""


class Attempt(msgspec.Struct, frozen=True):
    """One attempt at a run."""

    run: PlannedRun
    number: int = 1
    jobs: int = 1
    """Number of runs in parallel on the worker when the attempt began."""
    failed: tuple[CaseResult, ...] = ()
    """Results of earlier attempts."""
    lost: int = 0
    """Number of workers that were lost with this run."""
    avoids: frozenset[str] = frozenset()
    """Machines of earlier attempts, after which others are preferred."""


Measure = Callable[[Attempt, Worker], Awaitable[RunOutcome]]
Done = Callable[[Attempt, RunOutcome], None]


class Pool:
    """Runs an schedule in parallel: each worker makes as many runs as its job_limit allows.

    The repeats of a case are spread evenly over several machines, so that differences between
    machines do not appear as differences between cases.
    """

    def __init__(
        self,
        schedule: Schedule,
        workers: Workers,
        stop: asyncio.Event,
        order: Callable[[PlannedRun], RunOrder],
        *,
        attempts: int = MOST_ATTEMPTS,
        report: Callable[[str], None] = lambda _: None,
        placed: Counter[tuple[str, str]] | None = None,
    ) -> None:
        """``order`` returns the order for a run; ``placed`` counts runs by case and machine."""
        self._schedule = schedule
        self._workers = workers
        self._stop = stop
        self._attempts = attempts
        self._report = report
        self._order = order
        self._lacking: dict[tuple[str, str], str] = {}
        """What each worker lacks for each case, found once for all repeats."""
        self._placed: Counter[tuple[str, str]] = Counter() if placed is None else placed
        self._ready: list[PlannedRun] = []
        self._to_repeat: deque[Attempt] = deque()
        self._running: dict[asyncio.Task[RunOutcome], tuple[Attempt, Worker]] = {}
        self._refused: dict[str, None] = {}

    @property
    def jobs(self) -> int:
        """Number of runs that all workers together may make in parallel now."""
        return sum(worker.job_limit.jobs for worker in self._workers.available())

    @property
    def waiting(self) -> list[Case]:
        """The cases of the runs waiting for a worker, or ended but not processed yet."""
        ended = [attempt for task, (attempt, _) in self._running.items() if task.done()]
        attempts = [*ended, *self._to_repeat]
        return [attempt.run.case for attempt in attempts] + [run.case for run in self._ready]

    async def run(self, measure: Measure, done: Done) -> None:
        """Run until the schedule is done or ``stop`` is set; ``done`` receives each last attempt.

        An exception of ``measure`` or ``done`` ends all labs cleanly and is raised again. Raises
        ``UnsupportedError`` if no worker can make the remaining runs.
        """
        stopped = asyncio.ensure_future(self._stop.wait())
        try:
            while self._start(measure):
                changed = asyncio.ensure_future(self._workers.changed.wait())
                waits = {*self._running, changed, *(() if stopped.done() else (stopped,))}
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
                self._workers.changed.clear()
                for task in [each for each in self._running if each.done()]:
                    self._finish(task, done)
        finally:
            stopped.cancel()
            if self._running:
                self._stop.set()
                for task in self._running:
                    with contextlib.suppress(Exception):
                        await task

    # --- the next runs ----------------------------------------------------------------------------

    def _start(self, measure: Measure) -> bool:
        """Start as many runs as workers have room for; return whether there is more to wait for."""
        if not self._stop.is_set():
            workers = self._workers.available()
            # One run for each worker in turn, as long as any has room.
            while [worker for worker in workers if self._start_on(worker, workers, measure)]:
                pass
            if not self._running and not workers:
                return bool(self._ready or self._to_repeat or self._schedule.remaining_cases())
            if not self._running and (self._ready or self._to_repeat):
                raise UnsupportedError(*self._refused)
        return bool(self._running)

    def _start_on(self, worker: Worker, workers: Sequence[Worker], measure: Measure) -> bool:
        """Start one run on a worker; return whether one was started."""
        if self._stop.is_set() or (attempt := self._choose_attempt(worker, workers)) is None:
            return False
        self._placed[attempt.run.case.name, worker.machine] += 1
        self._running[asyncio.ensure_future(measure(attempt, worker))] = attempt, worker
        return True

    def _choose_attempt(self, worker: Worker, workers: Sequence[Worker]) -> Attempt | None:
        here = [attempt for attempt, where in self._running.values() if where is worker]
        jobs = worker.job_limit.jobs
        if len(here) >= jobs or any(map(self._runs_alone, here)):
            return None
        for attempt in self._to_repeat:
            if self._may_repeat(attempt, worker, workers):
                if self._runs_alone(attempt) and here:
                    return None
                self._to_repeat.remove(attempt)
                return replace(attempt, jobs=jobs)
        run = self._choose_run(worker, workers)
        return None if run is None else Attempt(run, jobs=jobs)

    def _may_repeat(self, attempt: Attempt, worker: Worker, workers: Sequence[Worker]) -> bool:
        """Return whether a worker may repeat a run: workers on other machines are preferred."""
        if not self._can_run(worker, attempt.run):
            return False
        return worker.machine not in attempt.avoids or not any(
            each.machine not in attempt.avoids and self._can_run(each, attempt.run)
            for each in workers
        )

    def _choose_run(self, worker: Worker, workers: Sequence[Worker]) -> PlannedRun | None:
        """Return the next run whose case the worker's machine has made least often."""
        machines = {each.machine for each in workers}
        ahead = 1 if len(workers) == 1 else self._schedule.ahead + self.jobs
        while len(self._ready) < ahead and (run := self._schedule.next()) is not None:
            self._ready.append(run)
        able = [run for run in self._ready if self._can_run(worker, run)]
        # Runs that this worker can't make must not block those that it can.
        while not able and (run := self._schedule.next()) is not None:
            self._ready.append(run)
            able = [run] if self._can_run(worker, run) else []
        if not able:
            return None

        def surplus(run: PlannedRun) -> float:
            name = run.case.name
            everywhere = sum(self._placed[name, each] for each in machines) if many else 0
            return self._placed[name, worker.machine] - everywhere / len(machines)

        many = len(machines) > 1
        chosen = min(able, key=surplus) if many else able[0]
        self._ready.remove(chosen)
        return chosen

    def _can_run(self, worker: Worker, run: PlannedRun) -> bool:
        key = worker.name, run.case.name
        if key not in self._lacking:
            self._lacking[key] = worker.lacks(self._order(run))
        lacks = self._lacking[key]
        if lacks and lacks not in self._refused:
            self._refused[lacks] = None
            self._report(f"{worker.name}: {lacks}")
        return not lacks

    def _runs_alone(self, attempt: Attempt) -> bool:
        return 1 < attempt.number == self._attempts

    # --- outcomes of runs -------------------------------------------------------------------------

    def _finish(self, task: asyncio.Task[RunOutcome], done: Done) -> None:
        attempt, worker = self._running.pop(task)
        try:
            outcome = task.result()
        except WorkerLostError as lost:
            if not self._stop.is_set():
                self._placed[attempt.run.case.name, worker.machine] -= 1
                self._report(f"{attempt.run} is moved to another worker: {lost}")
                avoids = attempt.avoids | {worker.machine}
                self._to_repeat.appendleft(replace(attempt, lost=attempt.lost + 1, avoids=avoids))
            return
        result, health = outcome.result, outcome.result.health
        doubtful = outcome.whole and was_judged(health) and not health.trustworthy
        if not self._runs_alone(attempt):
            starved, good = doubtful and for_want_of_cpu(health), outcome.whole and not doubtful
            self._adapt_jobs(attempt, worker, starved=starved, good=good)
        if doubtful and attempt.number < self._attempts and not self._stop.is_set():
            self._report(f"{attempt.run} is repeated: {', '.join(health.reasons)}")
            self._to_repeat.append(
                replace(
                    attempt,
                    number=attempt.number + 1,
                    failed=(*attempt.failed, result),
                    avoids=attempt.avoids | {worker.machine},
                )
            )
            return
        self._schedule.add_result(result)
        done(attempt, outcome)

    def _adapt_jobs(self, attempt: Attempt, worker: Worker, *, starved: bool, good: bool) -> None:
        """Allow fewer runs on a worker if this one starved, one more after enough good ones."""
        limit = worker.job_limit
        if starved and limit.reduce(attempt.jobs):
            who = worker.name or "this machine"
            self._report(f"too much for {who}: from now on {limit.jobs} in parallel")
        elif good and limit.count_success(attempt.jobs):
            who = worker.name or "the machine"
            self._report(f"{who} keeps up: from now on {limit.jobs} in parallel")

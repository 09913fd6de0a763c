"""Several labs in parallel, as many as the machine can carry; failed runs are repeated."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace

from ccplay.analysis.results import CaseResult, Machine
from ccplay.analysis.trust import for_want_of_cpu, was_judged
from ccplay.experiment.agenda import Agenda
from ccplay.experiment.plan import Run
from ccplay.scenario.values import Case

MOST_ATTEMPTS = 3
"""Most attempts at a run; the last has the machine to itself."""

_KEPT = 0.7
"""Share of the jobs that remain after a failure, like CUBIC's beta (RFC 9438, section 4.6)."""

_PATIENCE = 2
"""Times that all jobs must succeed before one more is tried: a failure costs as many runs."""

_STARTS = max(1, (os.cpu_count() or 1) // 2)
"""Labs that may start at a time: a start takes a core away from the labs that measure."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A run, tried for the first or another time."""

    run: Run
    number: int = 1
    jobs: int = 1
    """Number of runs in parallel when it began."""
    failed: tuple[CaseResult, ...] = ()
    """Results of earlier attempts."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of an attempt."""

    result: CaseResult
    whole: bool
    """Whether it was completed."""
    took_s: float = 0.0
    """Wall-clock seconds, start and end of the lab included."""
    machine: Machine | None = None
    """Machine on which it ran."""


class Pool:
    """Runs an agenda in parallel; adapts the number of jobs as TCP adapts cwnd.

    The number is reduced when parallel labs starve each other, and grows by one, up to the
    requested number, after as many good runs in a row as would fill the machine twice.
    """

    def __init__(
        self,
        agenda: Agenda,
        jobs: int,
        stop: asyncio.Event,
        *,
        attempts: int = MOST_ATTEMPTS,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.jobs = jobs
        self._most = jobs
        self._good = 0
        self._door = asyncio.Semaphore(_STARTS)
        self._agenda = agenda
        self._stop = stop
        self._attempts = attempts
        self._tell = tell
        self._again: deque[Attempt] = deque()
        self._running: dict[asyncio.Task[Outcome], Attempt] = {}

    @property
    def waiting(self) -> list[Case]:
        """The cases of the runs waiting to be repeated."""
        return [attempt.run.case for attempt in self._again]

    async def run(
        self,
        measure: Callable[[Attempt], Awaitable[Outcome]],
        done: Callable[[Attempt, Outcome], None],
    ) -> None:
        """Run until the agenda is done or ``stop`` is set; ``done`` receives each last attempt.

        An exception of ``measure`` or ``done`` ends all labs in order and is raised.
        """
        try:
            while self._start(measure):
                ended, _ = await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
                for task in ended:
                    self._settle(self._running.pop(task), task.result(), done)
        finally:
            if self._running:
                self._stop.set()
                for task in self._running:
                    with contextlib.suppress(Exception):
                        await task

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[Callable[[], None]]:
        """Wait for the turn to start a lab; it ends with the block, or by the yielded function."""
        await self._door.acquire()
        with contextlib.ExitStack() as turn:
            turn.callback(self._door.release)
            yield turn.close

    def _start(self, measure: Callable[[Attempt], Awaitable[Outcome]]) -> bool:
        """Start as many runs as there are free jobs; return whether any is running."""
        while not self._stop.is_set() and (attempt := self._next()) is not None:
            self._running[asyncio.ensure_future(measure(attempt))] = attempt
        return bool(self._running)

    def _next(self) -> Attempt | None:
        if len(self._running) >= self.jobs or any(map(self._is_alone, self._running.values())):
            return None
        if self._again:
            if self._is_alone(self._again[0]) and self._running:
                return None
            return replace(self._again.popleft(), jobs=self.jobs)
        run = self._agenda.next()
        return None if run is None else Attempt(run, jobs=self.jobs)

    def _is_alone(self, attempt: Attempt) -> bool:
        return 1 < attempt.number == self._attempts

    def _settle(
        self, attempt: Attempt, outcome: Outcome, done: Callable[[Attempt, Outcome], None]
    ) -> None:
        result, health = outcome.result, outcome.result.health
        doubtful = outcome.whole and was_judged(health) and not health.trustworthy
        if doubtful and for_want_of_cpu(health):
            self._narrow(attempt)
        elif outcome.whole and not doubtful:
            self._widen(attempt)
        if doubtful and attempt.number < self._attempts and not self._stop.is_set():
            self._tell(f"{attempt.run} is repeated: {', '.join(health.reasons)}")
            failed = (*attempt.failed, result)
            self._again.append(replace(attempt, number=attempt.number + 1, failed=failed))
            return
        self._agenda.take(result)
        done(attempt, outcome)

    def _narrow(self, attempt: Attempt) -> None:
        """Reduce the number of parallel labs, unless that was done since the attempt began."""
        alone = self._is_alone(attempt) or attempt.jobs == 1
        if alone or attempt.jobs > self.jobs or self.jobs == 1:
            return
        self.jobs, self._good = max(1, round(self.jobs * _KEPT)), 0
        self._tell(f"too much for this machine: from now on {self.jobs} in parallel")

    def _widen(self, attempt: Attempt) -> None:
        """Allow one more parallel run after enough good runs."""
        if self.jobs == self._most or self._is_alone(attempt) or attempt.jobs > self.jobs:
            return
        self._good += 1
        if self._good >= _PATIENCE * self.jobs:
            self.jobs, self._good = self.jobs + 1, 0
            self._tell(f"the machine keeps up: from now on {self.jobs} in parallel")

"""Runs in parallel on all benches; failed runs are repeated, preferably elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence

import msgspec
from msgspec.structs import replace

from ccplay.analysis.results import CaseResult, Machine
from ccplay.analysis.trust import for_want_of_cpu, was_judged
from ccplay.errors import UnsupportedError
from ccplay.experiment.agenda import Agenda
from ccplay.experiment.bench import Bench, Benches, BenchLostError
from ccplay.experiment.plan import Run
from ccplay.scenario.values import Case

MOST_ATTEMPTS = 3
"""Largest number of attempts at a run; the last one runs alone on its machine."""


class Attempt(msgspec.Struct, frozen=True):
    """One attempt at a run."""

    run: Run
    number: int = 1
    jobs: int = 1
    """Number of runs in parallel on the bench when the attempt began."""
    failed: tuple[CaseResult, ...] = ()
    """Results of earlier attempts."""
    lost: int = 0
    """Number of benches that were lost with this run."""
    avoids: frozenset[str] = frozenset()
    """Machines of earlier attempts, after which others are preferred."""


class Outcome(msgspec.Struct, frozen=True):
    """The outcome of an attempt."""

    result: CaseResult
    whole: bool
    """Whether the attempt was completed."""
    took_s: float = 0.0
    """Wall-clock seconds, start and end of the lab included."""
    machine: Machine | None = None
    """Machine that made the attempt."""


Measure = Callable[[Attempt, Bench], Awaitable[Outcome]]
Done = Callable[[Attempt, Outcome], None]


class Pool:
    """Runs an agenda in parallel: each bench makes as many runs as its window allows.

    The repeats of a case are spread evenly over several machines, so that differences between
    machines do not appear as differences between cases.
    """

    def __init__(
        self,
        agenda: Agenda,
        benches: Benches,
        stop: asyncio.Event,
        *,
        attempts: int = MOST_ATTEMPTS,
        report: Callable[[str], None] = lambda _: None,
        lacks: Callable[[Bench, Run], str] = lambda _, __: "",
        placed: Counter[tuple[str, str]] | None = None,
    ) -> None:
        """``lacks`` returns what a bench lacks for a run.

        ``placed`` counts runs by case and machine.
        """
        self._agenda = agenda
        self._benches = benches
        self._stop = stop
        self._attempts = attempts
        self._report = report
        self._lacks = lacks
        self._placed: Counter[tuple[str, str]] = Counter() if placed is None else placed
        self._ready: list[Run] = []
        self._again: deque[Attempt] = deque()
        self._running: dict[asyncio.Task[Outcome], tuple[Attempt, Bench]] = {}
        self._refused: dict[str, None] = {}

    @property
    def jobs(self) -> int:
        """Number of runs that all benches together may make in parallel now."""
        return sum(bench.window.jobs for bench in self._benches.there())

    @property
    def waiting(self) -> list[Case]:
        """The cases of the runs waiting for a bench."""
        return [attempt.run.case for attempt in self._again] + [run.case for run in self._ready]

    async def run(self, measure: Measure, done: Done) -> None:
        """Run until the agenda is done or ``stop`` is set; ``done`` receives each last attempt.

        An exception of ``measure`` or ``done`` ends all labs cleanly and is raised again. Raises
        ``UnsupportedError`` if no bench can make the remaining runs.
        """
        stopped = asyncio.ensure_future(self._stop.wait())
        try:
            while self._start(measure):
                changed = asyncio.ensure_future(self._benches.changed.wait())
                waits = {*self._running, changed, *(() if stopped.done() else (stopped,))}
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
                self._benches.changed.clear()
                for task in [each for each in self._running if each.done()]:
                    self._settle(task, done)
        finally:
            stopped.cancel()
            if self._running:
                self._stop.set()
                for task in self._running:
                    with contextlib.suppress(Exception):
                        await task

    # --- the next runs ----------------------------------------------------------------------------

    def _start(self, measure: Measure) -> bool:
        """Start as many runs as benches have room for; return whether there is more to wait for."""
        if not self._stop.is_set():
            benches = self._benches.there()
            # One run for each bench in turn, as long as any has room.
            while [bench for bench in benches if self._give(bench, benches, measure)]:
                pass
            if not self._running and not benches:
                return bool(self._ready or self._again or self._agenda.waiting())
            if not self._running and (self._ready or self._again):
                raise UnsupportedError(*self._refused)
        return bool(self._running)

    def _give(self, bench: Bench, benches: Sequence[Bench], measure: Measure) -> bool:
        """Start one run on a bench; return whether one was started."""
        if self._stop.is_set() or (attempt := self._next(bench, benches)) is None:
            return False
        self._placed[attempt.run.case.name, bench.machine] += 1
        self._running[asyncio.ensure_future(measure(attempt, bench))] = attempt, bench
        return True

    def _next(self, bench: Bench, benches: Sequence[Bench]) -> Attempt | None:
        here = [attempt for attempt, there in self._running.values() if there is bench]
        jobs = bench.window.jobs
        if len(here) >= jobs or any(map(self._is_alone, here)):
            return None
        for attempt in self._again:
            if self._suits(attempt, bench, benches):
                if self._is_alone(attempt) and here:
                    return None
                self._again.remove(attempt)
                return replace(attempt, jobs=jobs)
        run = self._choose(bench, benches)
        return None if run is None else Attempt(run, jobs=jobs)

    def _suits(self, attempt: Attempt, bench: Bench, benches: Sequence[Bench]) -> bool:
        """Return whether a bench may repeat a run: benches on other machines are preferred."""
        if not self._can(bench, attempt.run):
            return False
        return bench.machine not in attempt.avoids or not any(
            each.machine not in attempt.avoids and self._can(each, attempt.run) for each in benches
        )

    def _choose(self, bench: Bench, benches: Sequence[Bench]) -> Run | None:
        """Return, of the next runs, the one whose case the bench's machine has made least often."""
        machines = {each.machine for each in benches}
        ahead = 1 if len(benches) == 1 else self._agenda.ahead + self.jobs
        while len(self._ready) < ahead and (run := self._agenda.next()) is not None:
            self._ready.append(run)
        able = [run for run in self._ready if self._can(bench, run)]
        # Runs that this bench can't make must not block those that it can.
        while not able and (run := self._agenda.next()) is not None:
            self._ready.append(run)
            able = [run] if self._can(bench, run) else []
        if not able:
            return None

        def had(run: Run) -> float:
            name = run.case.name
            everywhere = sum(self._placed[name, each] for each in machines) if many else 0
            return self._placed[name, bench.machine] - everywhere / len(machines)

        many = len(machines) > 1
        chosen = min(able, key=had) if many else able[0]
        self._ready.remove(chosen)
        return chosen

    def _can(self, bench: Bench, run: Run) -> bool:
        lacks = self._lacks(bench, run)
        if lacks and lacks not in self._refused:
            self._refused[lacks] = None
            self._report(f"{bench.name}: {lacks}")
        return not lacks

    def _is_alone(self, attempt: Attempt) -> bool:
        return 1 < attempt.number == self._attempts

    # --- outcomes of runs -------------------------------------------------------------------------

    def _settle(self, task: asyncio.Task[Outcome], done: Done) -> None:
        attempt, bench = self._running.pop(task)
        try:
            outcome = task.result()
        except BenchLostError as lost:
            if not self._stop.is_set():
                self._placed[attempt.run.case.name, bench.machine] -= 1
                self._report(f"{attempt.run} is moved to another bench: {lost}")
                avoids = attempt.avoids | {bench.machine}
                self._again.appendleft(replace(attempt, lost=attempt.lost + 1, avoids=avoids))
            return
        result, health = outcome.result, outcome.result.health
        doubtful = outcome.whole and was_judged(health) and not health.trustworthy
        if doubtful and for_want_of_cpu(health):
            self._narrow(attempt, bench)
        elif outcome.whole and not doubtful:
            self._widen(attempt, bench)
        if doubtful and attempt.number < self._attempts and not self._stop.is_set():
            self._report(f"{attempt.run} is repeated: {', '.join(health.reasons)}")
            self._again.append(
                replace(
                    attempt,
                    number=attempt.number + 1,
                    failed=(*attempt.failed, result),
                    avoids=attempt.avoids | {bench.machine},
                )
            )
            return
        self._agenda.take(result)
        done(attempt, outcome)

    def _narrow(self, attempt: Attempt, bench: Bench) -> None:
        """Reduce the number of labs on a bench, unless that was done since the attempt began."""
        if not self._is_alone(attempt) and bench.window.narrow(attempt.jobs):
            who = bench.name or "this machine"
            self._report(f"too much for {who}: from now on {bench.window.jobs} in parallel")

    def _widen(self, attempt: Attempt, bench: Bench) -> None:
        """Allow one more parallel run after enough good runs."""
        if not self._is_alone(attempt) and bench.window.widen(attempt.jobs):
            who = bench.name or "the machine"
            self._report(f"{who} keeps up: from now on {bench.window.jobs} in parallel")

"""Runs in parallel on all benches; failed runs are repeated, preferably elsewhere."""

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

from ccplay.analysis.results import CaseResult, Machine
from ccplay.analysis.trust import for_want_of_cpu, was_judged
from ccplay.errors import UnsupportedError
from ccplay.experiment.orders import Finished, Handover, Order, carry_out
from ccplay.experiment.plan import Agenda, Run
from ccplay.model.commands import Build
from ccplay.scenario.values import Case
from ccplay.state.lab_state import LabState
from ccplay.stream.sinks import Sink
from ccplay.stream.sources import Source

# --- benches: places that make runs. This machine is one; a cluster has many ----------------------

STARTS = max(1, (os.cpu_count() or 1) // 2)
"""Number of labs that may start at a time: a start takes a core from the labs that measure."""

_KEPT = 0.7
"""Share of the jobs that remain after a failure, like CUBIC's beta (RFC 9438, section 4.6)."""

_PATIENCE = 2
"""Number of times that all jobs must succeed before one more is allowed: a failure costs as many
runs."""


class BenchLostError(Exception):
    """A bench was lost, or refused work, before a run was finished; another has to make it."""


class Bench(Protocol):
    """A place that makes runs, several at a time."""

    window: Window
    """Window that limits the runs in parallel."""

    @property
    def name(self) -> str:
        """Name for messages; empty for this machine."""

    @property
    def machine(self) -> str:
        """Name of the bench's machine, which may have several benches."""

    def lacks(self, order: Order) -> str:
        """Return what the bench's kernel lacks for an order, with the remedy; empty if nothing."""

    async def carry_out(
        self,
        order: Order,
        record: Path | None,
        *,
        watch: Callable[[LabState], None] = lambda _: None,
        share: Callable[[], Sink | None] = lambda: None,
    ) -> Finished:
        """Make a run; write its recording to ``record``.

        ``watch`` receives the state of runs on this machine after every event; ``share`` opens a
        sink for spectators. Raises ``BenchLostError`` if another bench has to make the run, and
        what ``orders.carry_out`` raises.
        """


class Benches(Protocol):
    """The current benches, which may join and leave."""

    changed: asyncio.Event
    """Event set when a bench has joined or left; the waiting side clears it."""

    def there(self) -> Sequence[Bench]:
        """Return the benches that accept runs."""

    def settled(self, order: Order) -> None:
        """Record that an order's outcome is kept, so that benches may delete it."""


class Away(Benches, Protocol):
    """Benches elsewhere, which can continue an experiment by themselves."""

    def pause(self) -> None:
        """Send the benches no more regular queries; current runs continue."""

    async def hand_over(self, handover: Handover) -> None:
        """Let the benches make the rest of an experiment and keep it, without further queries.

        Raises ``LabError`` if they can't be reached.
        """


class Window:
    """The number of runs that a bench makes in parallel, adapted as TCP adapts cwnd.

    The number is reduced when parallel labs starve each other, and grows by one, up to the
    requested number, after as many good runs in a row as would fill the machine twice.
    """

    def __init__(self, most: int) -> None:
        self.jobs = most
        self.most = most
        self._good = 0

    def narrow(self, jobs: int) -> bool:
        """Reduce the number, unless that has been done since a run began among ``jobs``."""
        if jobs == 1 or jobs > self.jobs or self.jobs == 1:
            return False
        self.jobs, self._good = max(1, round(self.jobs * _KEPT)), 0
        return True

    def widen(self, jobs: int) -> bool:
        """Count a good run that began among ``jobs``; return whether one more is now allowed."""
        if self.jobs == self.most or jobs > self.jobs:
            return False
        self._good += 1
        if self._good < _PATIENCE * self.jobs:
            return False
        self.jobs, self._good = self.jobs + 1, 0
        return True


class Door:
    """Limits how many labs start at a time."""

    def __init__(self, width: int | None = None) -> None:
        self._places = asyncio.Semaphore(STARTS if width is None else width)

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[Callable[[], None]]:
        """Wait for a turn to start a lab; yield a function that ends it before the block does."""
        await self._places.acquire()
        with contextlib.ExitStack() as turn:
            turn.callback(self._places.release)
            yield turn.close


class LocalBench:
    """A bench on this machine, or wherever ``open_source`` starts labs."""

    name = ""
    machine = ""

    def __init__(
        self, open_source: Callable[[Build], Source], jobs: int, stop: asyncio.Event
    ) -> None:
        """Prepare the bench; ``stop`` ends every run."""
        self.window = Window(jobs)
        self._open_source = open_source
        self._stop = stop
        self._door = Door()

    def lacks(self, order: Order) -> str:  # noqa: ARG002 - the same for every bench
        """Return nothing: the first lab reports what this kernel lacks."""
        return ""

    async def carry_out(
        self,
        order: Order,
        record: Path | None,
        *,
        watch: Callable[[LabState], None] = lambda _: None,
        share: Callable[[], Sink | None] = lambda: None,
    ) -> Finished:
        """Make a run as soon as no other lab is starting."""
        async with self._door.turn() as end_turn:

            def watched(state: LabState) -> None:
                if state.ready_at is not None:
                    end_turn()
                watch(state)

            sink = None if self._stop.is_set() else share()
            return await carry_out(
                order, self._open_source, self._stop, record=record, watch=watched, share=sink
            )


class Here:
    """The only bench of an experiment on one machine."""

    def __init__(self, bench: Bench) -> None:
        self.changed = asyncio.Event()
        self._bench = bench

    def there(self) -> Sequence[Bench]:
        """Return the bench."""
        return [self._bench]

    def settled(self, order: Order) -> None:
        """Do nothing: this machine keeps no second copy."""


# --- runs in parallel on all benches; failed runs are repeated, preferably elsewhere --------------

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

"""An experiment from its scenario to its result."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec

from ccplay.analysis.metrics import check
from ccplay.analysis.results import CaseResult, Machine, Result
from ccplay.analysis.summary import machine, summarise
from ccplay.errors import CcplayError, LabError, UnsupportedError, UsageError
from ccplay.experiment.agenda import Agenda, Goal, Planned, UntilSure
from ccplay.experiment.grouping import Gathering
from ccplay.experiment.plan import Run, plan, slug_of
from ccplay.experiment.pool import MOST_ATTEMPTS, Attempt, Outcome, Pool
from ccplay.experiment.progress import ProgressTracker
from ccplay.experiment.standstill import standstills
from ccplay.experiment.store import Store
from ccplay.experiment.trial import Trial
from ccplay.model.commands import Build
from ccplay.report.terminal.progress import Lane, Teller
from ccplay.scenario.values import Case, Scenario
from ccplay.session.timeline import Script
from ccplay.state.lab_state import LabState
from ccplay.stream.sinks import Sink
from ccplay.stream.sources import Source


class Experiment:
    """The runs of a scenario: ``jobs`` in parallel, until ``goal``, kept in ``store``."""

    def __init__(
        self,
        scenario: Scenario,
        open_source: Callable[[Build], Source],
        stop: asyncio.Event,
        teller: Teller,
        *,
        jobs: int = 1,
        goal: Goal | None = None,
        store: Store | None = None,
        record: Path | None = None,
        share: Callable[[str, str], Sink] | None = None,
    ) -> None:
        """``scenario`` has the cases to run; ``record`` is the file for the stream of each.

        ``share`` opens a sink that lets others watch a run, from its name and its title.
        """
        self._scenario = scenario
        self._open_source = open_source
        self._stop = stop
        self._store = store
        self._record = record
        self._share = share
        # A run with errors may succeed the next time.
        kept = store.finished if store else {}
        finished = {key: each for key, each in kept.items() if not each.result.errors}
        runs = plan(scenario)
        self.agenda: Agenda = (
            Planned(runs, finished)
            if goal is None
            else UntilSure(scenario.cases, goal, [each.result for each in finished.values()])
        )
        chosen = {case.name for case in scenario.cases}
        done = sum(name in chosen for name, _ in finished)
        self.tracker = ProgressTracker(teller, self._outlook, done)
        again = jobs > 1 or store is not None or len(runs) > len(scenario.cases)
        attempts = MOST_ATTEMPTS if again else 1
        self._pool = Pool(self.agenda, jobs, stop, attempts=attempts, tell=self.tracker.warn)
        self._gathering = Gathering(store.scenario if store else scenario)
        self._trials: set[Trial] = set()
        if store is not None:
            self._recall(store)

    async def measure(self) -> Result:
        """Run everything unfinished until ``stop`` is set; return the result.

        Raises ``LabError`` if no lab started at all, ``UnsupportedError`` if this kernel lacks
        features that the scenario needs.
        """
        self.tracker.open()
        async with standstills(self._stood_still):
            await self._pool.run(self._measure, self._settle)
        if self._store is not None:
            # Even if nothing was left to run: expectations and metrics may have changed.
            self._store.sum_up(self._gathering.result(whole_only=True))
        return self._gathering.result()

    def _stood_still(self, seconds: float) -> None:
        """Mark every current run as untrustworthy."""
        for trial in self._trials:
            trial.spoil(f"ccplay was suspended or starved of CPU for {seconds:.1f} s")

    def _outlook(self) -> tuple[Sequence[Case], int]:
        return [*self._pool.waiting, *self.agenda.waiting()], self._pool.jobs

    def _recall(self, store: Store) -> None:
        """Read the finished runs of the directory, checked against the current expectations."""
        cases = {case.name: case for case in store.scenario.cases}
        for kept in store.finished.values():
            case = cases[kept.result.name]
            self._gathering.add(_labelled(case, kept.result))
            self._gathering.discarded += kept.discarded
            self._gathering.machine = self._gathering.machine or kept.machine
            self.tracker.forecast.learn(case, kept.took_s)

    async def _measure(self, attempt: Attempt) -> Outcome:
        """Make one attempt at a run."""
        run = attempt.run
        lane = self.tracker.begin(run, attempt.number)
        try:
            async with self._pool.turn() as end_turn:
                trial = Trial(self._scenario, run.played, partial(self._watch, lane, end_turn))
                result = await self._play(trial, run)
        finally:
            took_s = self.tracker.end(run, lane)
        self._know(machine(trial.state))
        whole = not result.interrupted and not trial.died
        if whole:
            self.tracker.forecast.learn(run.case, took_s)
        result = msgspec.structs.replace(result, repeat=run.repeat, attempt=attempt.number)
        return Outcome(
            _labelled(run.case, result), whole=whole, took_s=took_s, machine=machine(trial.state)
        )

    async def _play(self, trial: Trial, run: Run) -> CaseResult:
        """Play a run in a lab, unless it is too late to start one."""
        if self._stop.is_set():
            return summarise(trial.state, run.case.name, interrupted=True)
        try:
            source = self._open_source(self._build(run))
            self._trials.add(trial)
            return await trial.measure(source, self._stop, self._recording(run), self._sharing(run))
        except LabError as error:
            # The results of other runs are worth more than a clean end.
            if isinstance(error, UnsupportedError) or not self._gathering:
                raise
            trial.died = True
            return summarise(trial.state, run.case.name, errors=(str(error),))
        finally:
            self._trials.discard(trial)

    def _watch(self, lane: Lane, end_turn: Callable[[], None], state: LabState) -> None:
        """Process a run's state after every event."""
        if state.ready_at is not None:
            end_turn()
        self.tracker.watch(lane, state)

    def _settle(self, attempt: Attempt, outcome: Outcome) -> None:
        """Process the last attempt at a run."""
        result = outcome.result
        self._gathering.discarded += attempt.failed
        if self._store is not None and outcome.whole:
            recording = self._store.recording_name(attempt.run)
            result = msgspec.structs.replace(result, recording=recording)
            self._store.keep(
                attempt.run, result, outcome.machine, outcome.took_s, list(attempt.failed)
            )
        self._gathering.add(result, whole=outcome.whole)
        if self._store is not None:
            self._store.sum_up(self._gathering.result(whole_only=True))
        self.tracker.settle(attempt.run, outcome)

    def _know(self, where: Machine | None) -> None:
        """Record the machine of a lab, and warn if earlier labs had another."""
        known = self._gathering.machine
        if where is not None and known is not None and where.kernel != known.kernel:
            self.tracker.warn(f"earlier runs were on Linux {known.kernel}, not {where.kernel}")
        self._gathering.machine = known or where

    def _build(self, run: Run) -> Build:
        """Return the network to build; files of the lab are named like the run's other files."""
        case = run.played
        build = Script(case.timeline).foretold(case.build)
        if self._store is None:
            return build
        return msgspec.structs.replace(build, label=Path(self._store.recording_name(run)).stem)

    def _sharing(self, run: Run) -> Sink | None:
        if self._share is None:
            return None
        try:
            return self._share(run.case.name, run.played.title)
        except UsageError:
            raise
        except CcplayError as error:
            self.tracker.warn(str(error))
            return None

    def _recording(self, run: Run) -> Path | None:
        if self._store is not None:
            return self._store.recording(run)
        if self._record is None or len(self._scenario.cases) == 1:
            return self._record
        number = [case.name for case in self._scenario.cases].index(run.case.name) + 1
        return recording_of(self._record, number, run.case)


def recording_of(record: Path, number: int, case: Case) -> Path:
    """Return the recording of one case of several: ``FILE-2-reno-100-packets.ENDING``."""
    return record.with_name(f"{record.stem}-{number}-{slug_of(case.name)}{record.suffix}")


def _labelled(case: Case, result: CaseResult) -> CaseResult:
    """Add the case and the checks of its expectations to a result."""
    return msgspec.structs.replace(
        result, parameters=dict(case.parameters), checks=check(case, result)
    )

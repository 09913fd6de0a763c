"""An experiment from its scenario to its result: the runs, what is kept of them, what is told."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from ccplay.errors import LabError, UnsupportedError
from ccplay.experiment.agenda import Agenda, Goal, Planned, UntilSure
from ccplay.experiment.checks import check
from ccplay.experiment.forecast import Forecast
from ccplay.experiment.gather import Gathering
from ccplay.experiment.plan import Run, plan, slug_of
from ccplay.experiment.pool import MOST_ATTEMPTS, Attempt, Outcome, Pool
from ccplay.experiment.store import Store
from ccplay.experiment.trial import Trial
from ccplay.model import Build
from ccplay.report.amounts import write
from ccplay.report.merits import merits
from ccplay.report.progress import Teller, roughly
from ccplay.report.results import CaseResult, Machine, Result
from ccplay.report.summary import machine, summarise
from ccplay.scenario import Case, Scenario
from ccplay.source import Source
from ccplay.state import LabState

_TELL_EVERY_S = 0.5


class Experiment:
    """The runs of a scenario, measured as ``jobs``, ``goal`` and ``store`` say."""

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
    ) -> None:
        """``scenario`` has the cases to be run; ``record`` is where the stream of each goes."""
        self._scenario = scenario
        self._open_source = open_source
        self._stop = stop
        self._teller = teller
        self._store = store
        self._record = record
        self._forecast = Forecast()
        self._gathering = Gathering(store.scenario if store else scenario)
        self._recall()
        finished = store.finished if store else {}
        runs = plan(scenario)
        self.agenda: Agenda = (
            Planned(runs, finished)
            if goal is None
            else UntilSure(scenario.cases, goal, [each.result for each in finished.values()])
        )
        again = jobs > 1 or store is not None or len(runs) > len(scenario.cases)
        attempts = MOST_ATTEMPTS if again else 1
        self._pool = Pool(self.agenda, jobs, stop, attempts=attempts, tell=self._warn)
        self._done = sum(key[0] in {case.name for case in scenario.cases} for key in finished)
        self._broken = 0
        self._since: dict[tuple[str, int], tuple[Case, float]] = {}
        self._told_at = 0.0

    async def measure(self) -> Result:
        """Run what is not finished, until ``stop`` is set; return what was measured.

        Raises ``LabError`` where no lab came to life at all, ``UnsupportedError`` where this
        kernel lacks what the scenario asks for.
        """
        await self._pool.run(self._measure, self._settle)
        return self._gathering.result()

    @property
    def progress(self) -> tuple[int, int]:
        """How many runs are done, and how many there are to be, as far as is known."""
        coming = len(self._since) + self._pool.waiting + len(self.agenda.waiting())
        return self._done, self._done + self._broken + coming

    def _recall(self) -> None:
        """Take in what the directory has."""
        if self._store is None:
            return
        cases = {case.name: case for case in self._store.scenario.cases}
        for kept in self._store.finished.values():
            case = cases[kept.result.name]
            self._gathering.add(_labelled(case, kept.result))
            self._gathering.discarded += kept.discarded
            self._gathering.machine = self._gathering.machine or kept.machine
            self._forecast.learn(case, kept.took_s)

    async def _measure(self, attempt: Attempt) -> Outcome:
        """Make one attempt at a run."""
        run, case = attempt.run, attempt.run.played
        recording = self._recording(run)
        lane = self._teller.begin(str(run), case.duration_s, exact=case.until == "duration")
        self._since[run.key] = (run.case, time.monotonic())

        def watch(state: LabState) -> None:
            lane.update(state)
            self._tell()

        trial = Trial(self._scenario, case, watch)
        try:
            result = await trial.measure(self._open_source(case.build), self._stop, recording)
        except LabError as error:
            # What other runs measured is worth more than a clean end.
            if isinstance(error, UnsupportedError) or not self._gathering:
                raise
            trial.died = True
            result = summarise(trial.state, case.name, errors=(str(error),))
        finally:
            lane.end()
            _, since = self._since.pop(run.key)
        took_s = time.monotonic() - since
        self._know(machine(trial.state))
        whole = not result.interrupted and not trial.died
        if whole:
            self._forecast.learn(run.case, took_s)
        result = _labelled(run.case, result, run.repeat, attempt.number)
        return Outcome(result, whole=whole, took_s=took_s, machine=machine(trial.state))

    def _settle(self, attempt: Attempt, outcome: Outcome) -> None:
        """Take in the last attempt at a run."""
        run, result = attempt.run, outcome.result
        self._gathering.discarded += attempt.failed
        if self._store is not None and outcome.whole:
            recording = self._store.recording_name(run)
            result = msgspec.structs.replace(result, recording=recording)
            self._store.keep(run, result, outcome.machine, outcome.took_s, list(attempt.failed))
        self._gathering.add(result, whole=outcome.whole)
        if self._store is not None:
            self._store.sum_up(self._gathering.result(whole_only=True))
        self._done += outcome.whole
        self._broken += not outcome.whole
        self._report(run, outcome)

    def _recording(self, run: Run) -> Path | None:
        if self._store is not None:
            return self._store.recording(run)
        if self._record is None or len(self._scenario.cases) == 1:
            return self._record
        number = [case.name for case in self._scenario.cases].index(run.case.name) + 1
        return recording_of(self._record, number, run.case)

    # --- what is told -----------------------------------------------------------------------

    def _know(self, where: Machine | None) -> None:
        known = self._gathering.machine
        if where is not None and known is not None and where.kernel != known.kernel:
            self._warn(f"earlier runs were on Linux {known.kernel}, not {where.kernel}")
        self._gathering.machine = known or where

    def _warn(self, text: str) -> None:
        self._teller.say(text, "yellow")

    def _report(self, run: Run, outcome: Outcome) -> None:
        """Say what a run came to, where its events were not told."""
        if self._teller.story:
            return
        result = outcome.result
        done, total = self.progress
        words = f"{done}/{total}  {run}: {result.duration_s:.1f} s"
        figures = merits(result)
        for figure in [each for each in run.case.figures if each in figures][:1]:
            words += f", {figure} {write(figure, figures[figure])}"
        if result.interrupted:
            words = f"{run}: interrupted"
        elif not self._teller.live and done < total:
            words += f"; {self._left()}"
        self._teller.say(words)
        if not result.health.trustworthy and not result.interrupted:
            self._warn(f"  take care: {', '.join(result.health.reasons)}")
        for error in result.errors:
            self._teller.say(f"  error: {error}", "red")

    def _tell(self) -> None:
        if (now := time.monotonic()) - self._told_at >= _TELL_EVERY_S:
            self._told_at = now
            self._teller.overall(*self.progress, self._left())

    def _left(self) -> str:
        now = time.monotonic()
        running = [(case, now - since) for case, since in self._since.values()]
        return roughly(self._forecast.left(running, self.agenda.waiting(), self._pool.jobs))


def _labelled(case: Case, result: CaseResult, repeat: int = 0, attempt: int = 0) -> CaseResult:
    """Say which run a result is of, and whether it is what its case expects."""
    return msgspec.structs.replace(
        result,
        parameters=dict(case.parameters),
        repeat=repeat or result.repeat,
        attempt=attempt or result.attempt,
        checks=check(case, result),
    )


def recording_of(record: Path, number: int, case: Case) -> Path:
    """Return where one case of several is recorded: ``FILE-2-reno-100-packets.ENDING``."""
    return record.with_name(f"{record.stem}-{number}-{slug_of(case.name)}{record.suffix}")

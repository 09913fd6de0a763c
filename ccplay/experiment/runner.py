"""An experiment from its scenario to its result, also when the user leaves it to a cluster."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec

from ccplay.analysis.metrics import check
from ccplay.analysis.results import CaseResult, Machine, Result
from ccplay.errors import CcplayError, LabError, UnsupportedError, UsageError
from ccplay.experiment.grouping import Gathering
from ccplay.experiment.orders import Handover, Order, failed
from ccplay.experiment.plan import (
    Agenda,
    Goal,
    Planned,
    Run,
    RunOptions,
    UntilSure,
    plan_runs,
    slug_of,
)
from ccplay.experiment.pool import (
    MOST_ATTEMPTS,
    Attempt,
    Away,
    Bench,
    Benches,
    BenchLostError,
    Here,
    LocalBench,
    Outcome,
    Pool,
)
from ccplay.experiment.progress import ProgressTracker
from ccplay.experiment.store import Store
from ccplay.model.commands import Build
from ccplay.report.terminal.progress import ProgressDisplay
from ccplay.scenario.values import Case, Scenario
from ccplay.stream.sinks import Sink
from ccplay.stream.sources import Source
from ccplay.visible import notify

# --- the moments at which the user leaves an experiment to its cluster ----------------------------

_QUESTION = "Press Enter to leave the rest to the cluster, or c and Enter to cancel it: "


async def at_once(benches: Away, handover: Handover, wanted: RunOptions) -> None:
    """Hand an experiment over, or cancel it, as the command line requests. Raises ``LabError``."""
    if wanted.away == "cancel":
        # Benches end all runs of an experiment that leaves them without a handover.
        notify("cancelled; finished runs are kept on the workers; to fetch them and run the rest:")
        notify(f"  {with_option(wanted, 'attach')}")
        return
    count = len(handover.runs())
    if not count:
        notify(f"all runs are finished: they are in {wanted.out}")
        return
    await benches.hand_over(handover)
    notify(
        f"{count} runs continue without this machine; to fetch finished runs and watch the rest:"
    )
    notify(f"  {with_option(wanted, 'attach')}")


async def at_interrupt(
    benches: Away, handover: Handover, wanted: RunOptions, stop: asyncio.Event
) -> bool:
    """Hand the rest over after an interrupt, unless the user wants to cancel it.

    Another interrupt, or the lack of a terminal, also leaves the rest to the cluster. Returns
    whether it was handed over; raises ``LabError``.
    """
    benches.pause()
    stop.clear()
    if sys.stdin.isatty() and sys.stderr.isatty() and await _answer(stop) == "c":
        return False
    await at_once(benches, handover, wanted)
    return True


async def _answer(stop: asyncio.Event) -> str:
    """Ask on the terminal; return the answer, empty after another interrupt."""
    loop = asyncio.get_running_loop()
    ready, again = asyncio.Event(), asyncio.ensure_future(stop.wait())
    # The progress display may have left the cursor anywhere.
    print(f"\n{_QUESTION}", end="", file=sys.stderr, flush=True)
    loop.add_reader(sys.stdin.fileno(), ready.set)
    came = asyncio.ensure_future(ready.wait())
    try:
        await asyncio.wait({came, again}, return_when=asyncio.FIRST_COMPLETED)
        return sys.stdin.readline().strip().lower() if ready.is_set() else ""
    finally:
        loop.remove_reader(sys.stdin.fileno())
        came.cancel()
        again.cancel()


def with_option(wanted: RunOptions, option: str) -> str:
    """Return the command line with ``option`` in place of --detach, --attach or --cancel."""
    return wanted.command.replace(f"--{wanted.away}", f"--{option}")


# --- an experiment from its scenario to its result ------------------------------------------------

MOST_LOST = 5
"""Number of times that a bench may be lost with a run before the run itself is suspected."""


class Experiment:
    """The runs of a scenario: ``jobs`` in parallel, until ``goal``, kept in ``store``."""

    def __init__(
        self,
        scenario: Scenario,
        open_source: Callable[[Build], Source],
        stop: asyncio.Event,
        display: ProgressDisplay,
        *,
        jobs: int = 1,
        goal: Goal | None = None,
        store: Store | None = None,
        record: Path | None = None,
        share: Callable[[str, str], Sink] | None = None,
        benches: Benches | None = None,
    ) -> None:
        """``scenario`` has the cases to run; ``record`` is the file for the stream of each.

        ``share`` opens a sink for spectators of a run, from its name and title. With ``benches``
        runs are made there, and no lab is opened here.
        """
        self._scenario = scenario
        self._stop = stop
        self._store = store
        self._record = record
        self._share = share
        self._elsewhere = benches is not None
        self._benches = benches or Here(LocalBench(open_source, jobs, stop))
        # A run with errors may succeed the next time.
        kept = store.finished if store else {}
        finished = {key: each for key, each in kept.items() if not each.result.errors}
        runs = plan_runs(scenario)
        self.agenda: Agenda = (
            Planned(runs, finished)
            if goal is None
            else UntilSure(scenario.cases, goal, [each.result for each in finished.values()])
        )
        chosen = {case.name for case in scenario.cases}
        done = sum(name in chosen for name, _ in finished)
        self.tracker = ProgressTracker(display, self._outlook, done)
        again = jobs > 1 or store is not None or len(runs) > len(scenario.cases)
        self._pool = Pool(
            self.agenda,
            self._benches,
            stop,
            attempts=MOST_ATTEMPTS if again or self._elsewhere else 1,
            report=self.tracker.warn,
            lacks=self._lacks,
            placed=Counter((name, each.result.machine or "") for (name, _), each in kept.items()),
        )
        self._gathering = Gathering(store.scenario if store else scenario)
        self._lacking: dict[tuple[str, str], str] = {}
        self.died = False
        """Whether the lab of a run could not start or died."""
        if store is not None:
            self._recall(store)

    async def measure(self) -> Result:
        """Run everything unfinished until ``stop`` is set; return the result.

        Raises ``LabError`` if no lab started, ``UnsupportedError`` if this kernel lacks features
        that the scenario needs.
        """
        self.tracker.open()
        await self._pool.run(self._measure, self._settle)
        if self._store is not None:
            # Even if nothing was left to run: expectations and metrics may have changed.
            whole = self._gathering.result(whole_only=True)
            self._store.sum_up(whole)
            self._store.index(whole)
        return self._gathering.result()

    def _outlook(self) -> tuple[Sequence[Case], int]:
        return [*self._pool.waiting, *self.agenda.waiting()], self._pool.jobs

    def _recall(self, store: Store) -> None:
        """Read the finished runs of the directory, checked against the current expectations."""
        cases = {case.name: case for case in store.scenario.cases}
        for kept in store.finished.values():
            case = cases[kept.result.name]
            self._gathering.add(_labelled(case, kept.result), machine=kept.machine)
            self._gathering.discarded += kept.discarded
            self.tracker.forecast.learn(case, kept.took_s)

    def _lacks(self, bench: Bench, run: Run) -> str:
        """Return what a bench lacks for a run, found once for all repeats of a case."""
        key = bench.name, run.case.name
        if key not in self._lacking:
            self._lacking[key] = bench.lacks(self._order(run))
        return self._lacking[key]

    async def _measure(self, attempt: Attempt, bench: Bench) -> Outcome:
        """Make one attempt at a run."""
        run, order = attempt.run, self._order(attempt.run, attempt.number)
        lane = self.tracker.begin(run, attempt.number, where=bench.name)
        try:
            finished = await bench.carry_out(
                order,
                self._recording(run),
                watch=partial(self.tracker.watch, lane),
                share=partial(self._sharing, run),
            )
        except BenchLostError as error:
            if attempt.lost < MOST_LOST:
                raise
            finished = failed(order, f"{MOST_LOST + 1} benches were lost with it: {error}")
        except LabError as error:
            # The results of the other runs matter more than a clean end.
            if isinstance(error, UnsupportedError) or not self._gathering:
                raise
            finished = failed(order, str(error))
        finally:
            took_s = self.tracker.end(run, lane)
        self._know(finished.machine)
        if finished.whole:
            self.tracker.forecast.learn(run.case, took_s)
        return Outcome(
            _labelled(run.case, finished.result),
            whole=finished.whole,
            took_s=took_s,
            machine=finished.machine,
        )

    def _settle(self, attempt: Attempt, outcome: Outcome) -> None:
        """Process the last attempt at a run."""
        result = outcome.result
        self.died |= not outcome.whole and not result.interrupted
        self._gathering.discarded += attempt.failed
        if self._store is not None and outcome.whole:
            recording = self._store.recording_name(attempt.run)
            result = msgspec.structs.replace(result, recording=recording)
            self._store.keep(
                attempt.run, result, outcome.machine, outcome.took_s, list(attempt.failed)
            )
        self._gathering.add(result, whole=outcome.whole, machine=outcome.machine)
        if self._store is not None and self._store.is_due():
            self._store.sum_up(self._gathering.result(whole_only=True))
        if outcome.whole:
            for number in range(1, attempt.number + 1):
                self._benches.settled(self._order(attempt.run, number))
        self.tracker.settle(attempt.run, outcome, elsewhere=self._elsewhere)

    def _know(self, where: Machine | None) -> None:
        """Warn if a run's machine has a different kernel from those of earlier runs."""
        known = self._gathering.machine
        if where is not None and known is not None and where.kernel != known.kernel:
            self.tracker.warn(f"earlier runs were on Linux {known.kernel}, not {where.kernel}")
        self._gathering.machine = known or where

    def _order(self, run: Run, attempt: int = 1) -> Order:
        """Return the order for a run; the lab's files are named like the run's other files."""
        label = "" if self._store is None else Path(self._store.recording_name(run)).stem
        return Order(
            scenario=self._scenario.path.name,
            case=run.played,
            repeat=run.repeat,
            attempt=attempt,
            label=label,
        )

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
    """Return the path of one case's recording: ``FILE-2-reno-100-packets.ENDING``."""
    return record.with_name(f"{record.stem}-{number}-{slug_of(case.name)}{record.suffix}")


def _labelled(case: Case, result: CaseResult) -> CaseResult:
    """Add the case and the checks of its expectations to a result."""
    return msgspec.structs.replace(
        result, parameters=dict(case.parameters), checks=check(case, result)
    )

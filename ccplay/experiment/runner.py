"""An experiment from its scenario to its result, also when the user leaves it to a cluster."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import os
import secrets
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, cast

import msgspec
from msgspec.structs import replace
from rich.console import Console

from ccplay.analysis.metrics import check, metrics_of
from ccplay.analysis.results import CaseResult, Machine, Result
from ccplay.errors import CcplayError, LabError, UnsupportedError, UsageError
from ccplay.experiment.plan import (
    CollectedRuns,
    FixedSchedule,
    Goal,
    PlannedRun,
    PrecisionSchedule,
    RunOptions,
    Schedule,
    goal_of,
    plan_runs,
    slug_of,
    with_options,
)
from ccplay.experiment.pool import (
    MOST_ATTEMPTS,
    Attempt,
    LocalWorker,
    Pool,
    RemoteWorkers,
    Worker,
    WorkerLostError,
    Workers,
)
from ccplay.experiment.store import Store
from ccplay.experiment.trial import Handover, RunOrder, RunOutcome, failed_outcome
from ccplay.model.commands import Build
from ccplay.report.data.findings import misbehaviours
from ccplay.report.data.naming import unit, write
from ccplay.report.terminal.progress_display import Lane, Printer, ProgressDisplay, roughly
from ccplay.report.terminal.terminal_tables import show
from ccplay.scenario.values import Case, Scenario
from ccplay.state.lab_state import LabState
from ccplay.stream import wire
from ccplay.stream.sinks import Sink
from ccplay.stream.sources import Source
from ccplay.visible import notify

# --- the moments at which the user leaves an experiment to its cluster ----------------------------

_QUESTION = "Press Enter to leave the rest to the cluster, or c and Enter to cancel it: "


async def hand_over_or_cancel(
    workers: RemoteWorkers, handover: Handover, wanted: RunOptions
) -> None:
    """Hand an experiment over, or cancel it, as the command line requests. Raises ``LabError``."""
    if wanted.away == "cancel":
        # Workers end all runs of an experiment that leaves them without a handover.
        notify("cancelled; finished runs are kept on the workers; to fetch them and run the rest:")
        notify(f"  {_with_option(wanted, 'attach')}")
        return
    count = len(handover.runs())
    if not count:
        notify(f"all runs are finished: they are in {wanted.out}")
        return
    await workers.hand_over(handover)
    notify(
        f"{count} runs continue without this machine; to fetch finished runs and watch the rest:"
    )
    notify(f"  {_with_option(wanted, 'attach')}")


async def offer_handover(
    workers: RemoteWorkers, handover: Handover, wanted: RunOptions, stop: asyncio.Event
) -> bool:
    """Hand the rest over after an interrupt, unless the user wants to cancel it.

    Another interrupt, or the lack of a terminal, also leaves the rest to the cluster. Returns
    whether it was handed over; raises ``LabError``.
    """
    workers.pause()
    stop.clear()
    if sys.stdin.isatty() and sys.stderr.isatty() and await _answer(stop) == "c":
        return False
    await hand_over_or_cancel(workers, handover, wanted)
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


def _with_option(wanted: RunOptions, option: str) -> str:
    """Return the command line with ``option`` in place of --detach, --attach or --cancel."""
    return wanted.command.replace(f"--{wanted.away}", f"--{option}")


# --- an experiment from its scenario to its result ------------------------------------------------

MOST_LOST = 5
"""Number of times that a worker may be lost with a run before the run itself is suspected."""


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
        workers: Workers | None = None,
    ) -> None:
        """``scenario`` has the cases to run; ``record`` is the file for the stream of each.

        ``share`` opens a sink for spectators of a run, from its name and title. With ``workers``
        runs are made there, and no lab is opened here.
        """
        self._scenario = scenario
        self._stop = stop
        self._store = store
        self._record = record
        self._share = share
        self._elsewhere = workers is not None
        self._workers = workers or Workers(LocalWorker(open_source, jobs, stop))
        kept = store.finished if store else {}
        finished = store.succeeded if store else {}
        runs = plan_runs(scenario)
        self.schedule: Schedule = (
            FixedSchedule(runs, finished)
            if goal is None
            else PrecisionSchedule(
                scenario.cases, goal, [each.result for each in finished.values()]
            )
        )
        chosen = {case.name for case in scenario.cases}
        done = sum(name in chosen for name, _ in finished)
        self.tracker = ProgressTracker(display, self._outlook, done)
        again = jobs > 1 or store is not None or len(runs) > len(scenario.cases)
        self._pool = Pool(
            self.schedule,
            self._workers,
            stop,
            self._order,
            attempts=MOST_ATTEMPTS if again or self._elsewhere else 1,
            report=self.tracker.warn,
            placed=Counter((name, each.result.machine or "") for (name, _), each in kept.items()),
        )
        self._gathering = CollectedRuns(store.scenario if store else scenario)
        self.died = False
        """Whether the lab of a run could not start or died."""
        if store is not None:
            self._read_finished(store)

    async def measure(self) -> Result:
        """Run everything unfinished until ``stop`` is set; return the result.

        Raises ``LabError`` if no lab started, ``UnsupportedError`` if this kernel lacks features
        that the scenario needs.
        """
        self.tracker.open()
        await self._pool.run(self._measure, self._finish)
        if self._store is not None:
            # Even if nothing was left to run: expectations and metrics may have changed.
            whole = self._gathering.result(whole_only=True)
            self._store.sum_up(whole)
            self._store.index(whole)
        return self._gathering.result()

    def _outlook(self) -> tuple[Sequence[Case], int]:
        return [*self._pool.waiting, *self.schedule.remaining_cases()], self._pool.jobs

    def _read_finished(self, store: Store) -> None:
        """Read the finished runs of the directory, checked against the current expectations."""
        cases = {case.name: case for case in store.scenario.cases}
        for kept in store.finished.values():
            case = cases[kept.result.name]
            self._gathering.add(_add_checks(case, kept.result), machine=kept.machine)
            self._gathering.discarded += kept.discarded
            self.tracker.forecast.learn(case, kept.took_s)

    async def _measure(self, attempt: Attempt, worker: Worker) -> RunOutcome:
        """Make one attempt at a run."""
        run, order = attempt.run, self._order(attempt.run, attempt.number)
        lane = self.tracker.begin(run, attempt.number, where=worker.name)
        try:
            finished = await worker.execute(
                order,
                self._recording(run),
                watch=partial(self.tracker.watch, lane),
                share=partial(self._sharing, run),
            )
        except WorkerLostError as error:
            if attempt.lost < MOST_LOST:
                raise
            finished = failed_outcome(order, f"{MOST_LOST + 1} workers were lost with it: {error}")
        except LabError as error:
            # The results of the other runs matter more than a clean end.
            if isinstance(error, UnsupportedError) or not self._gathering:
                raise
            finished = failed_outcome(order, str(error))
        finally:
            took_s = self.tracker.end(run, lane)
        self._compare_kernel(finished.machine)
        if finished.whole:
            self.tracker.forecast.learn(run.case, took_s)
        return replace(finished, result=_add_checks(run.case, finished.result), took_s=took_s)

    def _finish(self, attempt: Attempt, outcome: RunOutcome) -> None:
        """Process the last attempt at a run."""
        result = outcome.result
        self.died |= not outcome.whole and not result.interrupted
        self._gathering.discarded += attempt.failed
        if self._store is not None and outcome.whole:
            recording = self._store.recording_name(attempt.run)
            result = replace(result, recording=recording)
            self._store.keep(
                attempt.run, result, outcome.machine, outcome.took_s, list(attempt.failed)
            )
        self._gathering.add(result, whole=outcome.whole, machine=outcome.machine)
        if self._store is not None and self._store.is_due():
            self._store.sum_up(self._gathering.result(whole_only=True))
        if outcome.whole:
            for number in range(1, attempt.number + 1):
                self._workers.discard_copy(self._order(attempt.run, number))
        self.tracker.finish(attempt.run, outcome, elsewhere=self._elsewhere)

    def _compare_kernel(self, where: Machine | None) -> None:
        """Warn if a run's machine has a different kernel from those of earlier runs."""
        known = self._gathering.machine
        if where is not None and known is not None and where.kernel != known.kernel:
            self.tracker.warn(f"earlier runs were on Linux {known.kernel}, not {where.kernel}")
        self._gathering.machine = known or where

    def _order(self, run: PlannedRun, attempt: int = 1) -> RunOrder:
        """Return the order for a run; the lab's files are named like the run's other files."""
        label = "" if self._store is None else Path(self._store.recording_name(run)).stem
        return RunOrder.of(run, self._scenario.path.name, attempt, label)

    def _sharing(self, run: PlannedRun) -> Sink | None:
        try:
            return self._share(run.case.name, run.played.title) if self._share else None
        except UsageError:
            raise
        except CcplayError as error:
            self.tracker.warn(str(error))
            return None

    def _recording(self, run: PlannedRun) -> Path | None:
        """Return the path of a run's recording, ``FILE-2-reno-100-packets.ENDING`` of several."""
        if self._store is not None:
            return self._store.recording(run)
        if self._record is None or len(self._scenario.cases) == 1:
            return self._record
        number = [case.name for case in self._scenario.cases].index(run.case.name) + 1
        name = f"{self._record.stem}-{number}-{slug_of(run.case.name)}{self._record.suffix}"
        return self._record.with_name(name)


def _add_checks(case: Case, result: CaseResult) -> CaseResult:
    """Add the case and the checks of its expectations to a result."""
    return replace(result, parameters=dict(case.parameters), checks=check(case, result))


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

    def begin(self, run: PlannedRun, attempt: int, *, where: str = "") -> Lane | None:
        """Report the beginning of an attempt; ``where`` names a worker that is not this machine."""
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

    def end(self, run: PlannedRun, lane: Lane | None) -> float:
        """Record the end of an attempt; return its duration."""
        if lane is not None:
            lane.end()
        _, since = self._running.pop(run.key)
        return time.monotonic() - since

    def finish(self, run: PlannedRun, outcome: RunOutcome, *, elsewhere: bool = False) -> None:
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

    def _line(self, run: PlannedRun, outcome: RunOutcome) -> str:
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


KILLED = 128
"""Exit code of a process that a signal ended, to which the signal's number is added."""
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_HIDING_S = 0.2
"""Seconds that Ctrl-Z, and a question, wait for a terminal that does not read its output."""
_PATIENCE_S = 2.0
"""Seconds that the result waits for the reader of progress on another terminal or pipe."""


class ExperimentInfo(msgspec.Struct, frozen=True):
    """The information about an experiment that other workers need in order to join it."""

    experiment: str
    """Name of the experiment on other machines: 16 hexadecimal digits, the same when it resumes."""
    kernel: str | None
    """Kernel release of the experiment's earlier runs; None without any."""
    stop: asyncio.Event
    report: Callable[[str], None]


OpenWorkers = Callable[[ExperimentInfo], AbstractAsyncContextManager[RemoteWorkers]]
"""Function that opens workers on other machines."""


async def run_scenario(
    scenario: Scenario,
    open_source: Callable[[Build], Source],
    wanted: RunOptions,
    elsewhere: OpenWorkers | None = None,
) -> int:
    """Run a scenario, here or ``elsewhere``, and print the result; return the exit code.

    Progress goes to stderr, which need not be read, then the result to stdout. Ctrl-C ends the labs
    cleanly and prints the results so far. Raises ``CcplayError`` if nothing could be measured.
    """
    whole = with_options(scenario, wanted)
    chosen = whole.only(wanted.cases)
    goal = goal_of(chosen, wanted)
    once = all(case.repeats == 1 for case in chosen.cases)
    single = wanted.jobs == 1 and once and elsewhere is None
    if wanted.record is not None and not single:
        raise UsageError(
            "--record keeps a single run of a case: use --out DIR to keep all, or --repeats 1"
        )
    stop = asyncio.Event()
    with contextlib.ExitStack() as stack:
        store = None
        if wanted.out is not None:
            store = stack.enter_context(Store(wanted.out, whole))
        display, printer, signals = stack.enter_context(
            showing_progress(stop, len(chosen.cases), story=single, receiver=wanted.receiver)
        )
        async with open_workers(elsewhere, store, stop, display) as workers:
            if workers is not None and wanted.away in ("detach", "cancel"):
                handover = Handover.of(chosen, whole, store.succeeded if store else ())
                await hand_over_or_cancel(workers, handover, wanted)
                return 0
            experiment = Experiment(
                chosen,
                open_source,
                stop,
                display,
                jobs=wanted.jobs,
                goal=goal,
                store=store,
                record=wanted.record,
                share=wanted.share,
                workers=workers,
            )
            result = await experiment.measure()
            stopped = stop.is_set()
            if workers is not None and wanted.away and stopped:
                with display.hidden():
                    # Otherwise output that is still to be written would cover the question.
                    printer.drain(_HIDING_S)
                    handover = Handover.of(chosen, whole, store.succeeded if store else ())
                    if await offer_handover(workers, handover, wanted, stop):
                        return 0
    _print(result, wanted)
    for line in _closing_lines(experiment, result, wanted, stopped=stopped):
        notify(line)
    if signals:
        return KILLED + signals[0]
    if experiment.died:
        return LabError.exit_code
    failed = any(run.errors or not all(each.ok for each in run.checks) for run in result.cases)
    return 1 if failed else 0


@asynccontextmanager
async def open_workers(
    elsewhere: OpenWorkers | None,
    store: Store | None,
    stop: asyncio.Event,
    display: ProgressDisplay,
) -> AsyncIterator[RemoteWorkers | None]:
    """Open the workers ``elsewhere``; None if there are none, so that this machine makes all runs.

    Raises ``LabError`` if ``stop`` is set before there is one.
    """
    if elsewhere is None:
        yield None
        return
    machines = [each.machine for each in store.finished.values()] if store else []
    info = ExperimentInfo(
        experiment=store.identity() if store else secrets.token_hex(8),
        kernel=next((each.kernel for each in machines if each is not None), None),
        stop=stop,
        report=partial(display.print, style="yellow"),
    )
    async with contextlib.AsyncExitStack() as places:
        yield await _wait_or_stop(stop, places.enter_async_context(elsewhere(info)))


async def _wait_or_stop(stop: asyncio.Event, opening: Awaitable[RemoteWorkers]) -> RemoteWorkers:
    """Wait for workers, which may take as long as a queue of jobs, or until ``stop`` is set.

    Raises ``LabError`` if ``stop`` is set first.
    """
    opened = asyncio.ensure_future(opening)
    stopped = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({opened, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not opened.done():
            opened.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await opened
            raise LabError("interrupted before there was a worker")
        return opened.result()
    finally:
        stopped.cancel()


@contextmanager
def showing_progress(
    stop: asyncio.Event, runs: int, *, story: bool = False, receiver: bool = False
) -> Iterator[tuple[ProgressDisplay, Printer, list[int]]]:
    """Show the progress of so many runs on stderr; signals that end a process set ``stop``.

    Yields the display, what writes it, and the received signals.
    """
    # Forever if the reader of progress also reads the result.
    patience_s = None if os.path.sameopenfile(1, 2) else _PATIENCE_S
    with Printer(2, sys.stderr.encoding, patience_s) as printer:
        console = Console(file=cast("IO[str]", printer))
        with (
            ProgressDisplay(console, runs, story=story, receiver=receiver) as display,
            # Last, so that a second signal ends the wait for the reader.
            _ending_signals(stop, partial(_suspend, display, printer)) as signals,
        ):
            yield display, printer, signals


def _print(result: Result, wanted: RunOptions) -> None:
    if wanted.as_json:
        sys.stdout.write(wire.encode_value(result).decode() + "\n")
    else:
        show(result, Console())
    sys.stdout.flush()


def _closing_lines(
    experiment: Experiment, result: Result, wanted: RunOptions, *, stopped: bool
) -> Iterator[str]:
    """Yield closing lines: the runs kept, and the runs missing."""
    if stopped and wanted.out is not None:
        done, total = experiment.tracker.progress
        yield f"{done} of {total} runs are kept in {wanted.out}; to run the rest:"
        yield f"  {wanted.command}"
    elif not stopped and isinstance(experiment.schedule, PrecisionSchedule):
        yield from _list_imprecise(experiment.schedule)
    if failed := _failed_checks(result):
        yield failed


def _list_imprecise(schedule: PrecisionSchedule) -> Iterator[str]:
    """Yield a line for every mean that is not precise enough."""
    for name, known in schedule.imprecise().items():
        metric = schedule.goal.metrics[name]
        if known is None or known.half_width is None:
            yield f"{name}: {metric} was not measured often enough"
        else:
            fitting = unit(metric, (known.mean,))
            mean = f"{fitting.write_statistic(known)} {fitting.name}".rstrip()
            yield f"{name}: after {known.n} runs {metric} is {mean}: not precise enough"


def _failed_checks(result: Result) -> str:
    """Return one line about failed expectations; empty if none failed."""
    failed = [(run, each) for run in result.cases for each in run.checks if not each.ok]
    if not failed:
        return ""
    run, first = failed[0]
    value = "missing" if first.value is None else write(first.metric, first.value)
    count = sum(len(each.checks) for each in result.cases)
    where = f"{run.name}, run {run.repeat}: {first.metric} is {value}, not {first.text}"
    return f"{len(failed)} of {count} checks failed; the first: {where}"


@contextmanager
def _ending_signals(stop: asyncio.Event, suspend: Callable[[], None]) -> Iterator[list[int]]:
    """Let signals that end a process set ``stop`` instead, and Ctrl-Z call ``suspend``.

    Yields the received signals. An ignored one, such as SIGHUP under nohup, stays ignored.
    """
    loop = asyncio.get_running_loop()
    came: list[int] = []

    def end(number: int) -> None:
        came.append(number)
        stop.set()

    handlers = {number: partial(end, number) for number in _ENDING} | {signal.SIGTSTP: suspend}
    caught = [each for each in handlers if signal.getsignal(each) is not signal.SIG_IGN]
    for number in caught:
        loop.add_signal_handler(number, handlers[number])
    try:
        yield came
    finally:
        for number in caught:
            loop.remove_signal_handler(number)


def _suspend(display: ProgressDisplay, printer: Printer) -> None:
    """Stop this process, as Ctrl-Z does, with the terminal restored."""
    with display.hidden():
        printer.drain(_HIDING_S)
        os.kill(os.getpid(), signal.SIGSTOP)

"""A scenario without a screen: runs all of it, then prints the measurements."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial
from typing import IO, cast

import msgspec
from rich.console import Console

from ccplay.analysis.results import Result
from ccplay.errors import LabError, UsageError
from ccplay.experiment import runner
from ccplay.experiment.orders import Handover
from ccplay.experiment.plan import RunOptions, UntilSure, goal_of, with_options
from ccplay.experiment.pool import Away
from ccplay.experiment.runner import Experiment
from ccplay.experiment.store import Store
from ccplay.model.commands import Build
from ccplay.report.data.naming import unit, write
from ccplay.report.terminal.progress import Printer, ProgressDisplay
from ccplay.report.terminal.tables import show
from ccplay.scenario.values import Scenario
from ccplay.stream import wire
from ccplay.stream.sources import Source
from ccplay.visible import notify

KILLED = 128
"""Exit code of a process that a signal ended, to which the signal's number is added."""
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_HIDING_S = 0.2
"""Seconds that Ctrl-Z, and a question, wait for a terminal that does not read its output."""
_PATIENCE_S = 2.0
"""Seconds that the result waits for the reader of progress on another terminal or pipe."""


class Joining(msgspec.Struct, frozen=True):
    """The information about an experiment that other benches need in order to join it."""

    experiment: str
    """Name of the experiment on other machines: 16 hexadecimal digits, the same when it resumes."""
    kernel: str | None
    """Kernel release of the experiment's earlier runs; None without any."""
    stop: asyncio.Event
    report: Callable[[str], None]


Elsewhere = Callable[[Joining], AbstractAsyncContextManager[Away]]
"""Function that opens benches on other machines."""


async def run(
    scenario: Scenario,
    open_source: Callable[[Build], Source],
    wanted: RunOptions,
    elsewhere: Elsewhere | None = None,
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
        printer = stack.enter_context(Printer(2, sys.stderr.encoding, _patience_s()))
        console = Console(file=cast("IO[str]", printer))
        display = stack.enter_context(
            ProgressDisplay(console, len(chosen.cases), story=single, receiver=wanted.receiver)
        )
        # Last, so that a second signal ends the wait for the reader.
        signals = stack.enter_context(_signals(stop, partial(_suspend, display, printer)))
        benches = None
        async with contextlib.AsyncExitStack() as places:
            if elsewhere is not None:
                joining = _joining(store, stop, display)
                benches = await _unless(stop, places.enter_async_context(elsewhere(joining)))
            if benches is not None and wanted.away in ("detach", "cancel"):
                await runner.at_once(benches, Handover.of(chosen, whole, _done(store)), wanted)
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
                benches=benches,
            )
            result = await experiment.measure()
            stopped = stop.is_set()
            if benches is not None and wanted.away and stopped:
                with display.hidden():
                    # Otherwise output that is still to be written would cover the question.
                    printer.drain(_HIDING_S)
                    handover = Handover.of(chosen, whole, _done(store))
                    if await runner.at_interrupt(benches, handover, wanted, stop):
                        return 0
    _print(result, wanted)
    for line in _last_words(experiment, result, wanted, stopped=stopped):
        notify(line)
    if signals:
        return KILLED + signals[0]
    if experiment.died:
        return LabError.exit_code
    failed = any(run.errors or not all(each.ok for each in run.checks) for run in result.cases)
    return 1 if failed else 0


def _joining(store: Store | None, stop: asyncio.Event, display: ProgressDisplay) -> Joining:
    """Return the information that other benches need."""
    machines = [each.machine for each in store.finished.values()] if store else []
    return Joining(
        experiment=store.identity() if store else secrets.token_hex(8),
        kernel=next((each.kernel for each in machines if each is not None), None),
        stop=stop,
        report=partial(display.print, style="yellow"),
    )


def _done(store: Store | None) -> list[tuple[str, int]]:
    """Return case and repeat of the runs that need not be repeated."""
    kept = store.finished if store else {}
    return [key for key, each in kept.items() if not each.result.errors]


async def _unless(stop: asyncio.Event, opening: Awaitable[Away]) -> Away:
    """Wait for benches, which may take as long as a queue of jobs, or until ``stop`` is set.

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


def _patience_s() -> float | None:
    """Return the seconds to wait for the reader; forever if it also reads the result."""
    return None if os.path.sameopenfile(1, 2) else _PATIENCE_S


def _print(result: Result, wanted: RunOptions) -> None:
    if wanted.as_json:
        sys.stdout.write(wire.encode_value(result).decode() + "\n")
    else:
        show(result, Console())
    sys.stdout.flush()


def _last_words(
    experiment: Experiment, result: Result, wanted: RunOptions, *, stopped: bool
) -> Iterator[str]:
    """Yield closing lines: the runs kept, and the runs missing."""
    if stopped and wanted.out is not None:
        done, total = experiment.tracker.progress
        yield f"{done} of {total} runs are kept in {wanted.out}; to run the rest:"
        yield f"  {wanted.command}"
    elif not stopped and isinstance(experiment.agenda, UntilSure):
        yield from _unsure(experiment.agenda)
    if failed := _failed_checks(result):
        yield failed


def _unsure(agenda: UntilSure) -> Iterator[str]:
    """Yield a line for every mean that is not precise enough."""
    for name, known in agenda.unsure().items():
        metric = agenda.goal.metrics[name]
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
def _signals(stop: asyncio.Event, suspend: Callable[[], None]) -> Iterator[list[int]]:
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

"""A scenario without a screen: run all of it, then print what it measured."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
from rich.console import Console

from ccplay import wire
from ccplay.errors import ScenarioError, UsageError
from ccplay.experiment.agenda import MOST_REPEATS, Goal, UntilSure
from ccplay.experiment.conduct import Experiment
from ccplay.experiment.store import Store
from ccplay.model import Build
from ccplay.report.amounts import write
from ccplay.report.merits import check_figures, measurable
from ccplay.report.progress import Teller
from ccplay.report.results import Result
from ccplay.report.table import show
from ccplay.scenario import Scenario
from ccplay.scenario.mistakes import did_you_mean, quote
from ccplay.source import Source

INTERRUPTED = 130
"""Exit code, as shells count a death by SIGINT."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How a scenario is to be run."""

    cases: Sequence[str] = ()
    """Only these; none means all."""
    jobs: int = 1
    """Labs side by side."""
    repeats: int | None = None
    """Of every case, instead of what the file says."""
    until_ci: float | None = None
    """Repeat until the half width of the 95 % confidence interval is this share of the mean,"""
    figure: str | None = None
    """of this figure; None takes the file's first,"""
    most: int = MOST_REPEATS
    """at most so often."""
    hz: float | None = None
    """Sweeps a second, instead of what the file says."""
    out: Path | None = None
    """The run directory."""
    record: Path | None = None
    """Where the stream of a single run is kept."""
    as_json: bool = False
    command: str = ""
    """What to type to go on after Ctrl-C."""


async def run(scenario: Scenario, open_source: Callable[[Build], Source], manner: Manner) -> int:
    """Run a scenario and print the result; return the exit code.

    Progress goes to stderr, the result to stdout. Ctrl-C ends the labs in an orderly way and
    prints what was measured so far. Raises ``CcplayError`` where nothing could be measured at all.
    """
    whole, goal = _as_wished(scenario, manner)
    chosen = whole.only(manner.cases)
    single = manner.jobs == 1 and all(case.repeats == 1 for case in chosen.cases)
    if manner.record is not None and not single:
        raise UsageError(
            "--record keeps one run of a case: keep all with --out DIR, or ask for --repeats 1"
        )
    stop = asyncio.Event()
    stderr = Console(stderr=True)
    with contextlib.ExitStack() as stack:
        store = None
        if manner.out is not None:
            store = stack.enter_context(Store(manner.out, whole))
        stack.enter_context(_signals(stop))
        teller = stack.enter_context(Teller(stderr, len(chosen.cases), story=single))
        experiment = Experiment(
            chosen,
            open_source,
            stop,
            teller,
            jobs=manner.jobs,
            goal=goal,
            store=store,
            record=manner.record,
        )
        result = await experiment.measure()
    _print(result, manner)
    _tell_the_end(experiment, manner, stopped=stop.is_set())
    if stop.is_set():
        return INTERRUPTED
    failed = _failed_checks(result)
    if failed:
        print(f"ccplay: {failed}", file=sys.stderr)
    return 1 if failed or any(case.errors for case in result.cases) else 0


def _as_wished(scenario: Scenario, manner: Manner) -> tuple[Scenario, Goal | None]:
    """Return the scenario with other repeats, and what its figures are to reach."""
    check_figures(scenario)
    repeats = manner.repeats
    goal = None
    if manner.until_ci is not None:
        goal = Goal(manner.until_ci, _figures(scenario, manner), manner.most)
        repeats = manner.most
    cases = scenario.cases
    if repeats is not None:
        cases = tuple(replace(case, repeats=repeats) for case in cases)
    if manner.hz is not None:
        cases = tuple(replace(case, build=_at_hz(case.build, manner.hz)) for case in cases)
    return replace(scenario, cases=cases), goal


def _at_hz(build: Build, hz: float) -> Build:
    return msgspec.structs.replace(build, sample_hz=hz)


def _figures(scenario: Scenario, manner: Manner) -> dict[str, str]:
    """Return the figure by which each case is judged."""
    figures = {}
    for case in scenario.only(manner.cases).cases:
        figure = manner.figure or next(iter(case.figures), None)
        name = f"case {quote(case.name)}"
        if figure is None:
            raise ScenarioError(
                f"{scenario.path.name}: {name} names no figures, the first of which would be made "
                "sure: name one with --figure, such as checkpoint.ratio"
            )
        if figure not in (known := measurable(case)) and not figure.startswith("queues."):
            hint = did_you_mean(figure, known)
            raise UsageError(f"--figure: {name} does not measure {quote(figure)}{hint}")
        figures[case.name] = figure
    return figures


def _tell_the_end(experiment: Experiment, manner: Manner, *, stopped: bool) -> None:
    """Say on stderr what is kept, and what did not get where it should."""
    lines = []
    if stopped and manner.out is not None:
        done, total = experiment.progress
        lines.append(f"{done} of {total} runs are kept in {manner.out}; go on with the same:")
        lines.append(f"  {manner.command}")
    agenda = experiment.agenda
    if isinstance(agenda, UntilSure) and not stopped:
        for name, known in agenda.unsure().items():
            figure = agenda.goal.figures[name]
            if known is None or known.half_width is None:
                lines.append(f"{name}: {figure} was not measured often enough")
                continue
            sure = f"{write(figure, known.mean)} is known to ± {write(figure, known.half_width)}"
            lines.append(f"{name}: after {known.n} runs {figure} {sure} only")
    for line in lines:
        print(line, file=sys.stderr)


def _failed_checks(result: Result) -> str:
    """Say in one line which expectations did not hold; nothing where all did."""
    failed = [(run, each) for run in result.cases for each in run.checks if not each.ok]
    if not failed:
        return ""
    run, first = failed[0]
    value = "missing" if first.value is None else write(first.figure, first.value)
    count = sum(len(each.checks) for each in result.cases)
    where = f"{run.name}, run {run.repeat}: {first.figure} is {value}, not {first.text}"
    return f"{len(failed)} of {count} checks failed; the first: {where}"


def _print(result: Result, manner: Manner) -> None:
    if manner.as_json:
        sys.stdout.write(wire.encode_value(result).decode() + "\n")
    else:
        show(result, Console())
    sys.stdout.flush()


@contextmanager
def _signals(stop: asyncio.Event) -> Iterator[None]:
    """Let SIGINT and SIGTERM set ``stop`` instead of breaking off."""
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM)
    for number in numbers:
        loop.add_signal_handler(number, stop.set)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)

"""A scenario without a screen: run every case in a lab of its own, then print what it measured."""

from __future__ import annotations

import asyncio
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from ccplay import wire
from ccplay.errors import CcplayError, LabError
from ccplay.model import AnyCommand, Build, StopDownload, StopFlow, StopPing
from ccplay.report.checkpoint import Checkpoint, checkpoint
from ccplay.report.progress import Teller
from ccplay.report.results import CaseResult, Machine, Result
from ccplay.report.summary import machine, summarise
from ccplay.report.table import show
from ccplay.scenario import Case, Scenario, check_against
from ccplay.script import Script
from ccplay.session import Session
from ccplay.sinks import Recorder
from ccplay.source import Source
from ccplay.state import LabState

INTERRUPTED = 130
"""Exit code, as shells count a death by SIGINT."""

_BUILD_LIMIT_S = 60.0
_SILENCE_LIMIT_S = 10.0
_STOP_LIMIT_S = 3.0


async def run(
    scenario: Scenario,
    open_source: Callable[[Build], Source],
    *,
    record: Path | None = None,
    as_json: bool = False,
) -> int:
    """Run every case one after the other and print the result; return the exit code.

    Progress goes to stderr, the result to stdout. Ctrl-C ends the lab in an orderly way and
    prints what was measured so far. ``record`` keeps the stream; with several cases each gets a
    file of its own, numbered. Raises ``CcplayError`` where nothing could be measured at all.
    """
    stop = asyncio.Event()
    with (
        _signals(stop),
        Teller(Console(stderr=True), len(scenario.cases)) as teller,
    ):
        result = await measure(scenario, open_source, stop, teller, record=record)
    if as_json:
        sys.stdout.write(wire.encode_value(result).decode() + "\n")
    else:
        show(result, Console())
    if stop.is_set():
        return INTERRUPTED
    return 1 if any(case.errors for case in result.cases) else 0


async def measure(
    scenario: Scenario,
    open_source: Callable[[Build], Source],
    stop: asyncio.Event,
    teller: Teller,
    *,
    record: Path | None = None,
) -> Result:
    """Run every case until ``stop`` is set, and return what they measured."""
    where: Machine | None = None
    results: list[CaseResult] = []
    for number, case in enumerate(scenario.cases, 1):
        if stop.is_set():
            break
        path = record
        if record is not None and len(scenario.cases) > 1:
            path = recording_of(record, number, case)
        teller.begin(case)
        run_of_case = CaseRun(scenario, case, teller)
        try:
            results.append(await run_of_case.measure(open_source(case.build), stop, path))
        except LabError as error:
            # What earlier cases measured is worth more than a clean end.
            if not results:
                raise
            results.append(summarise(run_of_case.state, case.name, errors=(str(error),)))
        where = where or machine(run_of_case.state)
    return Result(scenario=scenario.name, title=scenario.title, machine=where, cases=results)


def recording_of(record: Path, number: int, case: Case) -> Path:
    """Return where one case of several is recorded: ``FILE-2-reno-100-packets.ENDING``."""
    slug = re.sub(r"[^a-z0-9]+", "-", case.name.lower()).strip("-")[:40]
    return record.with_name(f"{record.stem}-{number}-{slug}{record.suffix}")


class CaseRun:
    """One case under way. The session asks it at every event what is due."""

    def __init__(self, scenario: Scenario, case: Case, teller: Teller) -> None:
        self.state = LabState()
        self._scenario = scenario
        self._case = case
        self._teller = teller
        self._script = Script(case.timeline)
        self._over = asyncio.Event()
        self._quiet = asyncio.Event()
        self._refusal: CcplayError | None = None
        self._sizes = case.sizes
        self._checkpoint: Checkpoint | None = None

    def due(self, state: LabState) -> list[AnyCommand]:
        """Return the commands of the timeline whose moment has come; see ``session.Timed``."""
        self._teller.update(state)
        if self._over.is_set():
            if not _running(state):
                self._quiet.set()
            return []
        commands = self._script.due(state)
        if self._checkpoint is None and self._sizes:
            self._checkpoint = checkpoint(state, self._sizes)
        if self._is_over(state):
            self._over.set()
        return commands

    def _is_over(self, state: LabState) -> bool:
        if state.ready_at is None:
            if state.hello is not None:
                try:
                    check_against(self._scenario, state.hello.capabilities)
                except CcplayError as refusal:
                    self._refusal = refusal
                    return True
            return False
        if state.now - state.ready_at >= self._case.duration_s:
            return True
        match self._case.until:
            case "first":
                return self._checkpoint is not None
            case "all":
                return self._script.finished(state)
        return False

    async def measure(self, source: Source, stop: asyncio.Event, record: Path | None) -> CaseResult:
        """Run the case to its end, or until ``stop``.

        Raises ``LabError`` where the lab did not come to life, ``UnsupportedError`` where this
        kernel lacks what the scenario asks for.
        """
        session = Session(
            source,
            title=self._case.title,
            sinks=[Recorder(record)] if record else [],
            script=self,
        )
        self.state = session.state
        running = asyncio.create_task(session.run())
        try:
            silent = await self._until_over(running, stop)
            self._over.set()
            await self._stop_traffic(session, running)
        finally:
            await source.close()
            await running
        if self._refusal is not None:
            raise self._refusal
        if session.state.hello is None and not stop.is_set():
            raise LabError(session.error or "the lab said nothing")
        self._teller.update(session.state)
        errors = [session.error] if session.error else []
        errors += ["the lab fell silent"] if silent else []
        interrupted = stop.is_set()
        ended_early = self._case.until == "first" and self._checkpoint is not None
        if not interrupted and not errors and not ended_early:
            errors += [f"{step.place} never came" for step in self._script.waiting]
        return summarise(
            session.state,
            self._case.name,
            interrupted=interrupted,
            errors=tuple(errors),
            checkpoint=self._checkpoint,
        )

    async def _until_over(self, running: asyncio.Task[None], stop: asyncio.Event) -> bool:
        """Wait for the end of the case; return whether the lab has fallen silent instead."""
        waits = [asyncio.create_task(each.wait()) for each in (self._over, stop)]
        limit = _BUILD_LIMIT_S + self._case.duration_s + _SILENCE_LIMIT_S
        try:
            done, _ = await asyncio.wait(
                {running, *waits}, timeout=limit, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            for wait in waits:
                wait.cancel()
        return not done

    async def _stop_traffic(self, session: Session, running: asyncio.Task[None]) -> None:
        """Stop what still runs, so that the lab tells its exact figures."""
        if running.done() or not (commands := _running(session.state)):
            return
        done = self._checkpoint.bytes if self._checkpoint is not None else {}
        for command in commands:
            # The lab is ending those already that have their bytes.
            name = command.flow if isinstance(command, StopFlow) else ""
            if name not in self._sizes or done.get(name, 0) < self._sizes[name]:
                session.send(command)
        quiet = asyncio.create_task(self._quiet.wait())
        await asyncio.wait(
            {running, quiet}, timeout=_STOP_LIMIT_S, return_when=asyncio.FIRST_COMPLETED
        )
        quiet.cancel()


def _running(state: LabState) -> list[AnyCommand]:
    """Return the commands that end all traffic which still runs."""
    flows = [each for each in state.flows.values() if each.kind == "flow" and each.running]
    return [
        *(StopFlow(flow=each.name) for each in flows if each.parent == each.name),
        *(StopDownload(download=each.name) for each in state.downloads.values() if not each.ended),
        *(StopPing(ping=each.name) for each in state.pings.values() if not each.ended),
    ]


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

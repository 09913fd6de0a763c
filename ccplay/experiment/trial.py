"""One run of one case in a lab of its own: from an order to its result, on any machine."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import time
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import Self

import msgspec
from msgspec.structs import replace

from ccplay import __version__
from ccplay.analysis.results import CaseResult, Checkpoint, Machine, checkpoint
from ccplay.analysis.summary import machine, summarise
from ccplay.errors import CcplayError, LabError
from ccplay.experiment.plan import PlannedRun, plan_runs, slugs
from ccplay.model.base import StopTraffic
from ccplay.model.commands import Build
from ccplay.scenario.rules import check_against
from ccplay.scenario.values import Case, Scenario
from ccplay.session.session import Session
from ccplay.session.steps import DueStep, Script
from ccplay.state.lab_state import LabState
from ccplay.stream.sinks import Recorder, Sink
from ccplay.stream.sources import Source
from ccplay.traffic import KINDS, TRAFFIC
from ccplay.traffic.flow import StopFlow

# --- detects standstills of this process: suspended by Ctrl-Z or SIGSTOP, or starved of CPU -------

_BEAT_S = 0.1
MOST_STANDSTILL_S = 1.0
"""Seconds that a reported standstill exceeds: labs continue meanwhile, but not their timelines."""


@contextlib.asynccontextmanager
async def standstills(notice: Callable[[float], None]) -> AsyncIterator[None]:
    """Call ``notice`` with the length in seconds of every standstill during the block."""
    task = asyncio.create_task(_beat(notice))
    try:
        yield
    finally:
        task.cancel()


async def _beat(notice: Callable[[float], None]) -> None:
    while True:
        before = time.monotonic()
        await asyncio.sleep(_BEAT_S)
        stood_s = time.monotonic() - before - _BEAT_S
        if stood_s > MOST_STANDSTILL_S:
            notice(stood_s)


# --- one run of one case in a lab of its own, from its first event to its result ------------------

_SILENCE_LIMIT_S = 180.0
"""Most seconds without an event. An emulated guest boots in half a minute, or in two minutes on a
busy machine."""
_STOP_LIMIT_S = 10.0
"""Seconds to stop traffic: one for flows, but cross traffic first drains the queue it filled."""
_NAMED = 3
"""Number of missed steps that are named; the others are counted."""
_HASTE_S = 1.0
"""Seconds to stop traffic when the user interrupts or the lab does not respond."""


class Trial:
    """One run. At every event the session asks it for the steps that are due."""

    def __init__(self, scenario: Scenario, case: Case, watch: Callable[[LabState], None]) -> None:
        """``watch`` receives the state after every event; ``case`` is the repeat as played."""
        self.state = LabState()
        self.died = False
        """Whether the lab died, so that the run is incomplete."""
        self._scenario = scenario
        self._case = case
        self._watch = watch
        self._script = Script(case.timeline)
        self._over = asyncio.Event()
        self._quiet = asyncio.Event()
        self._refusal: CcplayError | None = None
        self._session: Session | None = None
        self._end: float | None = None
        self._calls = 0
        self._sizes = case.sizes
        self._checkpoint: Checkpoint | None = None

    def due(self, state: LabState) -> list[DueStep]:
        """Return the steps of the timeline that are due; see ``session.Timed``."""
        self._watch(state)
        self._calls += 1
        if self._over.is_set():
            if self._is_quiet(state):
                self._quiet.set()
            return []
        steps = self._script.due(state)
        if self._checkpoint is None and self._sizes:
            self._checkpoint = checkpoint(state, self._sizes)
        self._end = self._end_of(state)
        if self._end is not None:
            self._over.set()
        return steps

    def _is_quiet(self, state: LabState) -> bool:
        """Return whether no traffic runs, and every step that was due is done or was refused."""
        sent = self._session.unanswered if self._session is not None else ()
        # What starts together is answered at its moment, which may be after the end.
        return not _running(state) and all(each.together for each in sent)

    def _end_of(self, state: LabState) -> float | None:
        """Return the lab time at which the case ends; None while it continues."""
        if state.ready_at is None:
            if state.hello is not None:
                try:
                    check_against(self._scenario, state.hello.capabilities)
                except CcplayError as refusal:
                    self._refusal = refusal
                    return state.now
            return None
        if state.now >= (end := state.ready_at + self._case.duration_s):
            return end
        if self._case.until == "first" and self._checkpoint is not None:
            return self._checkpoint.t
        if self._case.until == "all" and self._script.finished(state):
            return state.now
        return None

    def spoil(self, text: str) -> None:
        """Record why measurements of this run can't be trusted."""
        if self._session is not None and self.state.ready_at is not None:
            self._session.spoil(text)

    async def measure(
        self, source: Source, stop: asyncio.Event, record: Path | None, share: Sink | None = None
    ) -> CaseResult:
        """Run the case to its end, or until ``stop``; ``share`` is a sink for spectators.

        Raises ``LabError`` if the lab did not start, ``UnsupportedError`` if this kernel lacks
        features that the scenario needs.
        """
        sinks: list[Sink] = [Recorder(record, self._case.title)] if record else []
        session = Session(
            source,
            title=self._case.title,
            sinks=[*sinks, share] if share is not None else sinks,
            script=self,
        )
        self._session, self.state = session, session.state
        running = asyncio.create_task(session.run())
        try:
            silent = await self._until_over(running, stop)
            self._over.set()
            hasty = silent or stop.is_set()
            await self._stop_traffic(session, running, _HASTE_S if hasty else _STOP_LIMIT_S)
        finally:
            await source.close()
            await running
        if self._refusal is not None:
            raise self._refusal
        if session.state.hello is None and not stop.is_set():
            raise LabError(session.error or "the lab ended without reporting anything")
        self._watch(session.state)
        errors = [session.error] if session.error else []
        errors += ["the lab stopped responding"] if silent else []
        self.died = bool(errors)
        interrupted = stop.is_set()
        ended_early = self._case.until == "first" and self._checkpoint is not None
        if not interrupted and not errors:
            never = [] if ended_early else self._script.waiting
            errors += _listed([step.place for step in never], "was never due")
            ready_at = session.state.ready_at or 0.0
            undone = [
                f"{each.place}, {each.command.describe()} at {each.at - ready_at:g} s,"
                for each in session.unanswered
                if each.place
            ]
            errors += _listed(undone, "did not take effect before the end")
        return summarise(
            session.state,
            self._case.name,
            interrupted=interrupted,
            errors=tuple(errors),
            checkpoint=self._checkpoint,
        )

    async def _until_over(self, running: asyncio.Task[None], stop: asyncio.Event) -> bool:
        """Wait for the end of the case; return whether the lab stopped responding instead."""
        waits = [asyncio.create_task(each.wait()) for each in (self._over, stop)]
        try:
            # Not by the case's duration, because an emulated guest's clock may be slow.
            while True:
                before = self._calls
                done, _ = await asyncio.wait(
                    {running, *waits}, timeout=_SILENCE_LIMIT_S, return_when=asyncio.FIRST_COMPLETED
                )
                if done or self._calls == before:
                    return not done
        finally:
            for wait in waits:
                wait.cancel()

    async def _stop_traffic(
        self, session: Session, running: asyncio.Task[None], within_s: float
    ) -> None:
        """Stop all running traffic, so that the lab reports its final counters.

        Steps that are due at the end take effect before, since an ending lab drops what waits.
        """
        if running.done() or self._is_quiet(session.state):
            return
        done = self._checkpoint.bytes if self._checkpoint is not None else {}
        end = session.state.now if self._end is None else self._end
        for command in _running(session.state):
            # The lab already ends traffic that has reached its bytes.
            name = command.flow if isinstance(command, StopFlow) else ""
            if name not in self._sizes or done.get(name, 0) < self._sizes[name]:
                session.play([DueStep(end, command)])
        quiet = asyncio.create_task(self._quiet.wait())
        await asyncio.wait({running, quiet}, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
        quiet.cancel()


def _listed(steps: list[str], fate: str) -> list[str]:
    """Return an error for each step; of many, only the first few are named."""
    errors = [f"{step} {fate}" for step in steps[:_NAMED]]
    if more := len(steps) - len(errors):
        errors.append(f"{more:,} more step{'s' if more > 1 else ''} {fate}")
    return errors


def _running(state: LabState) -> list[StopTraffic]:
    """Return the commands that stop all running traffic, kind by kind."""
    running = [each for each in state.traffic.values() if each.ended is None]
    running.sort(key=lambda each: TRAFFIC.index(KINDS[each.kind]))
    return [KINDS[each.kind].stopping(each.name) for each in running]


# --- A run as a function: from an order to its result, on any machine -----------------------------


class RunOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that determines a run, as plain data in JSON, like a scenario."""

    scenario: str
    """Name of the scenario's file for messages."""
    case: Case
    """Case as played, with the seed and the random starts of its repeat."""
    repeat: int
    attempt: int = 1
    label: str = ""
    """Prefix of the names of files that the lab writes."""
    version: str = __version__
    """Version of ccplay that gave the order."""

    @classmethod
    def of(cls, run: PlannedRun, scenario: str, attempt: int = 1, label: str = "") -> Self:
        """Return the order for an attempt at a run of the file ``scenario``."""
        return cls(
            scenario=scenario, case=run.played, repeat=run.repeat, attempt=attempt, label=label
        )

    @property
    def build(self) -> Build:
        """The network to build."""
        build = Script(self.case.timeline).prepare(self.case.build)
        return replace(build, label=self.label) if self.label else build

    @property
    def as_scenario(self) -> Scenario:
        """A scenario with this one case, with the file's name for messages."""
        case = replace(self.case, repeats=1)
        return Scenario(Path(self.scenario), case.title, case.about, (case,))


class RunOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of an order."""

    result: CaseResult
    whole: bool
    """Whether the run was completed: neither interrupted nor ended by the lab's death."""
    machine: Machine | None = None
    """Machine that made the run."""
    took_s: float = 0.0
    """Wall-clock seconds, start and end of the lab included; 0 where they were not measured."""


async def execute(
    order: RunOrder,
    open_source: Callable[[Build], Source],
    stop: asyncio.Event,
    *,
    record: Path | None = None,
    watch: Callable[[LabState], None] = lambda _: None,
    share: Sink | None = None,
) -> RunOutcome:
    """Run an order in a lab of its own, to its end or until ``stop``.

    ``record`` is the file for the lab's stream, ``watch`` receives the state after every event,
    ``share`` is a sink for spectators. Raises ``LabError`` if the lab did not start,
    ``UnsupportedError`` if this kernel lacks features that the order needs.
    """
    if stop.is_set():
        return interrupted_outcome(order)
    trial = Trial(order.as_scenario, order.case, watch)

    def spoil(seconds: float) -> None:
        trial.spoil(f"ccplay was suspended or starved of CPU for {seconds:.1f} s")

    async with standstills(spoil):
        result = await trial.measure(open_source(order.build), stop, record, share)
    return RunOutcome(
        result=_numbered(order, result),
        whole=not result.interrupted and not trial.died,
        machine=machine(trial.state),
    )


def interrupted_outcome(order: RunOrder) -> RunOutcome:
    """Return the outcome of an order that was interrupted or not started."""
    result = summarise(LabState(), order.case.name, interrupted=True)
    return RunOutcome(result=_numbered(order, result), whole=False)


def failed_outcome(order: RunOrder, reason: str) -> RunOutcome:
    """Return the outcome of an order that no lab could carry out."""
    result = summarise(LabState(), order.case.name, errors=(reason,))
    return RunOutcome(result=_numbered(order, result), whole=False)


def _numbered(order: RunOrder, result: CaseResult) -> CaseResult:
    return replace(result, repeat=order.repeat, attempt=order.attempt)


# --- an experiment that is handed over: all that its remaining runs need without the user ---------


class Handover(msgspec.Struct, frozen=True, kw_only=True):
    """The plan of an experiment with a fixed number of runs, as plain data in JSON.

    Its holder gives the same orders as the command line that made it, so that both have the same
    name for a run.
    """

    scenario: str
    """Name of the scenario's file for messages."""
    cases: list[Case]
    """Cases to run."""
    slugs: dict[str, str]
    """Prefix of the names of a case's files, by the case's name."""
    finished: list[tuple[str, int]]
    """Case and repeat of the finished runs."""
    jobs: int | None = None
    """Largest number of runs in parallel on a worker."""
    kernel: str | None = None
    """Only kernel that may make runs, unless kernels are mixed."""
    mixed_kernels: bool = False
    """Whether machines with any kernel may make runs."""

    @classmethod
    def of(cls, chosen: Scenario, whole: Scenario, finished: Iterable[tuple[str, int]]) -> Self:
        """Return the handover of some or all cases of a ``whole`` scenario."""
        return cls(
            scenario=whole.path.name,
            cases=list(chosen.cases),
            slugs=slugs(whole.cases),
            finished=sorted(finished),
        )

    @property
    def sha256(self) -> str:
        """Digest of the planned runs, whether finished or not."""
        return hashlib.sha256(msgspec.json.encode(replace(self, finished=[]))).hexdigest()

    def runs(self) -> list[PlannedRun]:
        """Return the unfinished runs in the order of the experiment."""
        finished = set(self.finished)
        scenario = Scenario(Path(self.scenario), "", "", tuple(self.cases))
        return [run for run in plan_runs(scenario) if run.key not in finished]

    def order(self, run: PlannedRun, attempt: int = 1) -> RunOrder:
        """Return the order for an attempt at a run."""
        label = f"{self.slugs[run.case.name]}-{run.repeat}"
        return RunOrder.of(run, self.scenario, attempt, label)

"""One run of one case in a lab of its own, from its first event to its result."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from ccplay.analysis.checkpoint import Checkpoint, checkpoint
from ccplay.analysis.results import CaseResult
from ccplay.analysis.summary import summarise
from ccplay.errors import CcplayError, LabError
from ccplay.model.commands import AnyCommand, StopDownload, StopFlow, StopPing, StopUdp
from ccplay.scenario import Case, Scenario, check_against
from ccplay.session.session import Session
from ccplay.session.timeline import Script
from ccplay.state.lab_state import LabState
from ccplay.stream.sinks import Recorder
from ccplay.stream.sources import Source

_SILENCE_LIMIT_S = 180.0
"""Without any event. An emulated guest boots for half a minute, on a busy machine for two."""
_STOP_LIMIT_S = 10.0
"""What still runs ends within a second, but cross traffic not before the queue that it filled."""
_HASTE_S = 1.0
"""Where somebody wants to leave, or nothing answers."""


class Trial:
    """One run under way. The session asks it at every event what is due."""

    def __init__(self, scenario: Scenario, case: Case, watch: Callable[[LabState], None]) -> None:
        """``watch`` sees the state after every event; ``case`` is the repeat as it is played."""
        self.state = LabState()
        self.died = False
        """Whether the lab ended against its will: what was measured is no whole run."""
        self._scenario = scenario
        self._case = case
        self._watch = watch
        self._script = Script(case.timeline)
        self._over = asyncio.Event()
        self._quiet = asyncio.Event()
        self._refusal: CcplayError | None = None
        self._heard = 0
        self._sizes = case.sizes
        self._checkpoint: Checkpoint | None = None

    def due(self, state: LabState) -> list[AnyCommand]:
        """Return the commands of the timeline whose moment has come; see ``session.Timed``."""
        self._watch(state)
        self._heard += 1
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
            sinks=[Recorder(record, self._case.title)] if record else [],
            script=self,
        )
        self.state = session.state
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
            raise LabError(session.error or "the lab said nothing")
        self._watch(session.state)
        errors = [session.error] if session.error else []
        errors += ["the lab fell silent"] if silent else []
        self.died = bool(errors)
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
        try:
            # Not by the case's duration, for an emulated guest's clock may take its time.
            while True:
                heard = self._heard
                done, _ = await asyncio.wait(
                    {running, *waits},
                    timeout=_SILENCE_LIMIT_S,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if done or self._heard == heard:
                    return not done
        finally:
            for wait in waits:
                wait.cancel()

    async def _stop_traffic(
        self, session: Session, running: asyncio.Task[None], within_s: float
    ) -> None:
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
        await asyncio.wait({running, quiet}, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
        quiet.cancel()


def _running(state: LabState) -> list[AnyCommand]:
    """Return the commands that end all traffic which still runs."""
    flows = [each for each in state.flows.values() if each.kind == "flow" and each.running]
    return [
        *(StopFlow(flow=each.name) for each in flows if each.parent == each.name),
        *(StopDownload(download=each.name) for each in state.downloads.values() if not each.ended),
        *(StopPing(ping=each.name) for each in state.pings.values() if not each.ended),
        *(StopUdp(udp=each.name) for each in state.udp.values() if not each.ended),
    ]

"""A session: events from a source go into the state and the sinks, commands go back."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Protocol, cast

from ccplay.errors import CcplayError
from ccplay.model.commands import AnyCommand, StartTogether
from ccplay.model.events import AnyEvent, Failed, Log
from ccplay.model.traffic_commands import StartTraffic
from ccplay.session.due_steps import DueStep, Outbox, moment_of
from ccplay.session.manual_overrides import ByHand
from ccplay.state.lab_state import LabState
from ccplay.stream.sinks import Sink
from ccplay.stream.sources import Source
from ccplay.stream.wire import UnknownEvent


class Timed(Protocol):
    """Commands that wait for their moment; ``script.Script`` is one."""

    def due(self, state: LabState) -> list[DueStep]:
        """Return the steps whose moment has come, each once."""


class Session:
    """What the screen and a headless run hold: the state, and a way to send commands."""

    def __init__(
        self,
        source: Source,
        *,
        title: str = "",
        sinks: Sequence[Sink] = (),
        script: Timed | None = None,
        glimpse: Callable[[], LabState | None] | None = None,
    ) -> None:
        """Hold ``source``; ``glimpse`` returns what to show of it until that much is read."""
        self.state = LabState()
        """What is known: all that was read, or until that is more a glimpse of what comes."""
        self.title = title
        self.failure: CcplayError | None = None
        """What ended the source against its will."""
        self.done = False
        """Whether the source has ended: no more events will come."""
        self.known_from = 0.0
        """Of a glimpse, the moment before which it has no samples."""
        self._whole = self.state
        self._glimpse = glimpse
        self._source = source
        self._sinks = list(sinks)
        self._script = script
        self._by_hand = ByHand()
        self._outbox = Outbox()

    @property
    def error(self) -> str | None:
        """Why the source ended against its will."""
        return None if self.failure is None else str(self.failure)

    @property
    def live(self) -> bool:
        """Whether commands can have an effect, now."""
        return self._source.live and not self.done

    @property
    def recorded(self) -> bool:
        """Whether the events come from a recording."""
        return not self._source.live

    @property
    def unanswered(self) -> tuple[DueStep, ...]:
        """Steps of the timeline that the lab has been sent, and has not carried out or refused."""
        return self._outbox.unanswered

    async def run(self) -> None:
        """Take in events until the source ends; what went wrong is in ``failure`` then."""
        try:
            await self._look_ahead()
            async for event in self._source.events():
                self._take(self._outbox.match(event))
                if self.state is not self._whole and self._whole.now > self.state.now:
                    self._show_whole()
                if self._script is not None:
                    self.play(self._script.due(self.state))
        except CcplayError as error:
            self.failure = error
        finally:
            self._show_whole()
            self.done = True
            await self.close()

    def send(self, command: AnyCommand) -> None:
        """Ask the lab for something; the outcome arrives as ``Applied`` or ``Failed``.

        What is left of the timeline does not undo it.
        """
        self._by_hand.ask(command)
        self._send(command, None)

    def spoil(self, text: str) -> None:
        """Have state and recording know why what is measured here can't be trusted."""
        if not self.done:
            self._take(Log(t=self.state.now, level="warning", text=text, spoils=True))

    async def close(self) -> None:
        """End the source and finish the sinks."""
        await self._source.close()
        while self._sinks:
            self._sinks.pop().close()

    async def _look_ahead(self) -> None:
        seen = await asyncio.to_thread(self._glimpse) if self._glimpse else None
        if seen is not None and seen.sweeps.end:
            self.state, self.known_from = seen, seen.sweeps.time(0)

    def _show_whole(self) -> None:
        self.state, self.known_from = self._whole, 0.0

    def _take(self, event: AnyEvent | UnknownEvent) -> None:
        self._whole.apply(event)
        if isinstance(event, Failed) and event.command is not None:
            self._by_hand.refused(event.command)
        # A recording begins with Hello; before it there is only how far a guest has booted.
        if self._sinks and self.state.hello is not None:
            self._pour(event)

    def play(self, due: list[DueStep]) -> None:
        """Send steps, except for what would undo what a person has set; the log has those."""
        if due and (hello := self.state.hello) is not None:
            due, skipped = self._by_hand.spare(due, hello.network)
            for text in skipped:
                self._take(Log(t=self.state.now, level="info", text=text))
        for at, steps in groupby(due, lambda step: moment_of(step) if step.together else None):
            if at is None:
                for step in steps:
                    self._send(step.command, step)
                continue
            commands: list[StartTraffic] = []
            for step in steps:
                self._outbox.note(step)
                commands.append(cast("StartTraffic", step.command))
            self._source.send(StartTogether(at=at, commands=commands))

    def _send(self, command: AnyCommand, step: DueStep | None) -> None:
        self._outbox.note(step)
        self._source.send(command)

    def _pour(self, event: AnyEvent | UnknownEvent) -> None:
        for sink in list(self._sinks):
            try:
                sink.put(event)
            except CcplayError as error:
                self._sinks.remove(sink)
                with contextlib.suppress(CcplayError):
                    sink.close()
                self.state.apply(Log(t=self.state.now, level="error", text=str(error)))

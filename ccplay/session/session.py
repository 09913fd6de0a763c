"""A session: events from a source go into the state and the sinks, commands go back."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Protocol

from ccplay.errors import CcplayError
from ccplay.model.commands import AnyCommand
from ccplay.model.events import AnyEvent, Failed, Log
from ccplay.session.manual_overrides import ByHand
from ccplay.state.lab_state import LabState
from ccplay.stream.sinks import Sink
from ccplay.stream.sources import Source
from ccplay.stream.wire import UnknownEvent


class Timed(Protocol):
    """Commands that wait for their moment; ``script.Script`` is one."""

    def due(self, state: LabState) -> list[AnyCommand]:
        """Return the commands whose moment has come, each once."""


class Session:
    """What the screen and a headless run hold: the state, and a way to send commands."""

    def __init__(
        self,
        source: Source,
        *,
        title: str = "",
        sinks: Sequence[Sink] = (),
        script: Timed | None = None,
    ) -> None:
        self.state = LabState()
        self.title = title
        self.failure: CcplayError | None = None
        """What ended the source against its will."""
        self.done = False
        """Whether the source has ended: no more events will come."""
        self._source = source
        self._sinks = list(sinks)
        self._script = script
        self._by_hand = ByHand()

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

    async def run(self) -> None:
        """Take in events until the source ends; what went wrong is in ``failure`` then."""
        try:
            async for event in self._source.events():
                self._take(event)
                if self._script is not None:
                    self._play(self._script)
        except CcplayError as error:
            self.failure = error
        finally:
            self.done = True
            await self.close()

    def send(self, command: AnyCommand) -> None:
        """Ask the lab for something; the outcome arrives as ``Applied`` or ``Failed``.

        What is left of the timeline does not undo it.
        """
        self._by_hand.ask(command)
        self._source.send(command)

    async def close(self) -> None:
        """End the source and finish the sinks."""
        await self._source.close()
        while self._sinks:
            self._sinks.pop().close()

    def _take(self, event: AnyEvent | UnknownEvent) -> None:
        self.state.apply(event)
        if isinstance(event, Failed) and event.command is not None:
            self._by_hand.refused(event.command)
        if self._sinks:
            self._pour(event)

    def _play(self, script: Timed) -> None:
        """Send what is due, but for what a person has set by hand meanwhile, and say so."""
        due, hello = script.due(self.state), self.state.hello
        if due and hello is not None:
            due, skipped = self._by_hand.spare(due, hello.network.topology)
            for text in skipped:
                self._take(Log(t=self.state.now, level="info", text=text))
        for command in due:
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

"""A session: events from a source go into the state and the sinks, commands go back."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Protocol

from ccplay.errors import CcplayError
from ccplay.model.commands import AnyCommand
from ccplay.model.events import AnyEvent, Log
from ccplay.sinks import Sink
from ccplay.source import Source
from ccplay.state import LabState
from ccplay.wire import UnknownEvent


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
        self.error: str | None = None
        """Why the source ended against its will."""
        self.done = False
        """Whether the source has ended: no more events will come."""
        self._source = source
        self._sinks = list(sinks)
        self._script = script

    @property
    def live(self) -> bool:
        """Whether commands can have an effect, now."""
        return self._source.live and not self.done

    @property
    def recorded(self) -> bool:
        """Whether the events come from a recording."""
        return not self._source.live

    async def run(self) -> None:
        """Take in events until the source ends; what went wrong is in ``error`` then."""
        try:
            async for event in self._source.events():
                self.state.apply(event)
                if self._sinks:
                    self._pour(event)
                if self._script is not None:
                    for command in self._script.due(self.state):
                        self._source.send(command)
        except CcplayError as error:
            self.error = str(error)
        finally:
            self.done = True
            await self.close()

    def send(self, command: AnyCommand) -> None:
        """Ask the lab for something; the outcome arrives as ``Applied`` or ``Failed``."""
        self._source.send(command)

    async def close(self) -> None:
        """End the source and finish the sinks."""
        await self._source.close()
        while self._sinks:
            self._sinks.pop().close()

    def _pour(self, event: AnyEvent | UnknownEvent) -> None:
        for sink in list(self._sinks):
            try:
                sink.put(event)
            except CcplayError as error:
                self._sinks.remove(sink)
                with contextlib.suppress(CcplayError):
                    sink.close()
                self.state.apply(Log(t=self.state.now, level="error", text=str(error)))

"""A session: passes events from a source to the state and the sinks, and commands back."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from ccplay.errors import CcplayError, CommandError, LabError, RecordingError
from ccplay.model.base import Command, Event, StartTraffic, StopTraffic
from ccplay.model.commands import StartTogether, StopCapture, UntraceFlow
from ccplay.model.events import Failed, Log
from ccplay.model.samples import Sweep
from ccplay.session.archive import SessionRecorder, Unsaved
from ccplay.session.steps import ByHand, DueStep, History, UserChange, is_separate_answer, moment_of
from ccplay.state.lab_state import LabState
from ccplay.stream.sinks import Recording, Sink
from ccplay.stream.sources import LabSource, Source
from ccplay.stream.wire import UnknownEvent
from ccplay.traffic import split_starts

_IDLE_S = 0.5
"""Seconds after a frame for which sweeps may wait; an idle timeline has no step for longer."""

_TURNS = 5
"""Turns of the event loop between reading from a pipe and having its events in the state."""


class Timed(Protocol):
    """Commands that wait for their moment, such as a ``timeline.Script``."""

    def due(self, state: LabState) -> list[DueStep]:
        """Return the steps that are due, each once."""


class Session:
    """A session of a screen or a headless run: the state, and a way to send commands."""

    def __init__(
        self,
        source: Source,
        *,
        title: str = "",
        sinks: Sequence[Sink] = (),
        script: Timed | None = None,
        preview: Callable[[], LabState | None] | None = None,
        idle: Callable[[LabState], bool] | None = None,
        recorded: bool | None = None,
        advice: Callable[[LabState], str] | None = None,
    ) -> None:
        """Hold ``source``; ``preview`` returns a state to show until that much has been read.

        ``idle`` returns whether events may wait for the screen's next frame; without it none wait.
        ``recorded`` is whether the events come from a recording; by default, whether ``source``
        takes no commands. ``advice`` returns words to add to the error that ends the source, or "".
        """
        self._whole = LabState()
        self._shown = self._whole
        self._swept: list[Sweep] = []
        """Sweeps that wait until the state is read, and are then applied together."""
        self._idle_until = 0.0
        """Lab time in seconds until which sweeps may wait; 0 if they may not."""
        self.title = title
        self.failure: CcplayError | None = None
        """Error that ended the source; None if there was none."""
        self.done = False
        """Whether the source has ended: no more events will come."""
        self.recorded = not source.live if recorded is None else recorded
        """Whether the events come from a recording."""
        self.watched = False
        """Whether others watch, for whom events must not wait for this screen's next frame."""
        self.known_from = 0.0
        """Lab time in seconds before which a preview has no samples; 0 if no preview is shown."""
        self._preview = preview
        self._idle = idle
        self._advice = advice
        self._source = source
        self.sinks = list(sinks)
        """The sinks that receive every event from now on."""
        archives = (sink for sink in self.sinks if isinstance(sink, SessionRecorder))
        self._archive = next(archives, None)
        self.cut_off: float | None = None
        """Lab time in seconds at which the recording in the archive broke off; None if whole."""
        self.unsaved = next((sink for sink in self.sinks if isinstance(sink, Unsaved)), None)
        """The recording that leaving would lose, because no file keeps it; None if one does."""
        self._script = script
        self._by_hand = ByHand()
        self._history = History()

    @property
    def state(self) -> LabState:
        """The state of everything read, or a preview until as much has been read."""
        if self._swept:
            self._fold()
        return self._shown

    def _fold(self) -> None:
        swept, self._swept = self._swept, []
        if swept:
            self._whole.apply_sweeps(swept)

    @property
    def error(self) -> str | None:
        """The reason why the source failed; None if it did not."""
        return None if self.failure is None else str(self.failure)

    @property
    def live(self) -> bool:
        """Whether commands have an effect now."""
        return self._source.live and not self.done

    @property
    def archived(self) -> Path | None:
        """The recording of this session in the archive; None if there is none."""
        return None if self._archive is None else self._archive.path

    @property
    def unanswered(self) -> tuple[DueStep, ...]:
        """Steps of the timeline that were sent, but are not yet carried out or refused."""
        return self._history.unanswered

    async def run(self) -> None:
        """Process events until the source ends; ``failure`` then has the error, if any."""
        try:
            await self._look_ahead()
            async for event in self._source.events():
                self._process(self._history.match(event), apart=is_separate_answer(event))
                if self._shown is not self._whole and self._whole.now > self._shown.now:
                    self._show_whole()
                if self._script is not None and not self._swept:
                    self.play(self._script.due(self.state))
        except CcplayError as error:
            more = self._advice(self._whole) if self._advice else ""
            self.failure = LabError(f"{error}; {more}") if more else error
        finally:
            self._show_whole()
            self.done = True
            await self.close()

    async def read_on(self) -> None:
        """Process all events that have arrived, before a frame is drawn."""
        if self._idle is None or not self.live or not isinstance(self._source, LabSource):
            return
        state = self.state
        ready = state.ready_at is not None and not self.unanswered and not self.watched
        waits = ready and self._idle(state)
        self._idle_until = state.now + _IDLE_S if waits else 0.0
        self._source.read_on(then_wait=waits)
        for _ in range(_TURNS):
            await asyncio.sleep(0)

    def send(self, command: Command) -> None:
        """Send a command of the user to the lab; its outcome is an ``Applied`` or a ``Failed``.

        The rest of the timeline will not undo it.
        """
        self._history.forget_undone()
        hello = self.state.hello
        for each in split_starts(command, hello.network if hello else None):
            stops = isinstance(each, StopTraffic | StopCapture | UntraceFlow)
            # A held key asks again before the lab has answered.
            if not (stops and self._history.awaits(each)):
                self._do(each)

    @property
    def undoable(self) -> str:
        """The line that describes what ``undo`` would do; empty if there is nothing to undo."""
        change = self._history.next
        if change is None:
            return ""
        return change.inverse.text or f"{change.done.command.describe()}: {change.inverse.refusal}"

    def undo(self) -> str:
        """Undo the user's last change that took effect; return a description.

        The timeline continues as if the change had not been made. Raises ``CommandError`` with
        the reason if nothing can be undone.
        """
        self._require_lab()
        self._fold()
        change = self._history.undo(self._whole)
        self._by_hand.forget(change.asked)
        text = f"undo: {change.inverse.text}"
        self._process(Log(t=self.state.now, level="info", text=text))
        *first, last = change.inverse.commands
        for command in first:
            self._send(command)
        self._send(last, undoes=change)
        return text

    def redo(self) -> str:
        """Redo the change that was undone last; return a description. Raises ``CommandError``."""
        self._require_lab()
        command = self._history.redo()
        self._do(command)
        text = f"redo: {command.describe()}"
        self._process(Log(t=self.state.now, level="info", text=text))
        return text

    def _require_lab(self) -> None:
        """Raise ``CommandError`` if there is no lab to carry out commands."""
        if self.recorded:
            raise CommandError("this is a recording: nothing in it can be undone")
        if self.done:
            raise CommandError("the lab has ended: nothing can be undone")
        if not self._source.live:
            raise CommandError("you are watching: only the presenter can undo")

    def _do(self, command: Command) -> None:
        self._by_hand.asked.append(command)
        self._send(command, by_hand=True)

    def past(self) -> BinaryIO | None:
        """Return an open file with all events so far; None if no sink keeps them.

        The caller closes the file. Raises ``OSError``.
        """
        kept = (sink for sink in self.sinks if isinstance(sink, Recording))
        found = next(kept, None)
        return None if found is None else found.snapshot()

    def spoil(self, text: str) -> None:
        """Log, in the recording too, why measurements of this session can't be trusted."""
        if not self.done:
            self._process(Log(t=self.state.now, level="warning", text=text, spoils=True))

    async def close(self) -> None:
        """End the source and finish the sinks."""
        await self._source.close()
        while self.sinks:
            self.sinks.pop().close()

    async def _look_ahead(self) -> None:
        seen = await asyncio.to_thread(self._preview) if self._preview else None
        if seen is not None and seen.sweeps.end:
            self._shown, self.known_from = seen, seen.sweeps.time(0)

    def _show_whole(self) -> None:
        self._fold()
        self._shown, self.known_from = self._whole, 0.0

    def _process(self, event: Event | UnknownEvent, *, apart: bool = False) -> None:
        if isinstance(event, Sweep) and event.t < self._idle_until:
            self._swept.append(event)
        else:
            self._fold()
            self._whole.apply(event)
            if not apart:
                self._history.answer(event, self._whole)
            if isinstance(event, Failed) and event.command is not None:
                self._by_hand.forget(event.command)
        # A recording begins with Hello; before it there is only the progress of a booting guest.
        if self.sinks and self._shown.hello is not None:
            self._pass_to_sinks(event)

    def play(self, due: list[DueStep]) -> None:
        """Send steps, except those that would undo the user's settings, which are logged."""
        if due and (hello := self.state.hello) is not None:
            due, skipped = self._by_hand.separate_overridden(due, hello.network)
            for text in skipped:
                self._process(Log(t=self.state.now, level="info", text=text))
        for at, steps in groupby(due, lambda step: moment_of(step) if step.together else None):
            if at is None:
                for step in steps:
                    self._send(step.command, step=step)
                continue
            together = list(steps)
            self._history.prepare(at, together)
            commands = [cast("StartTraffic", step.command) for step in together]
            self._source.send(StartTogether(at=at, commands=commands))

    def _send(
        self,
        command: Command,
        *,
        step: DueStep | None = None,
        by_hand: bool = False,
        undoes: UserChange | None = None,
    ) -> None:
        self._fold()
        self._history.send(command, self._whole, step=step, by_hand=by_hand, undoes=undoes)
        self._source.send(command)

    def _pass_to_sinks(self, event: Event | UnknownEvent) -> None:
        for sink in list(self.sinks):
            try:
                sink.put(event)
            except CcplayError as error:
                self.sinks.remove(sink)
                with contextlib.suppress(CcplayError):
                    sink.close()
                # What was measured is whole without spectators, but not without its recording.
                level = "error" if isinstance(error, RecordingError) else "warning"
                self.state.apply(Log(t=self.state.now, level=level, text=str(error)))
                if sink is self._archive and self.archived is not None:
                    self.cut_off = self.state.now
                elif sink is self._archive and not any(
                    isinstance(each, Recording) for each in self.sinks
                ):
                    # It failed at the first event, so a recording in memory misses nothing.
                    self.unsaved = Unsaved(self.title)
                    self.unsaved.put(event)
                    self.sinks.append(self.unsaved)

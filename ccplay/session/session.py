"""A session: events from a source go into the state and the sinks, commands go back."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from ccplay.errors import CcplayError, CommandError, LabError
from ccplay.model.commands import AnyCommand, StartTogether
from ccplay.model.events import AnyEvent, Failed, Log
from ccplay.model.samples import Sweep
from ccplay.model.starts import singly
from ccplay.model.traffic_commands import StartTraffic
from ccplay.model.wording import describe
from ccplay.session.archive import SessionRecorder
from ccplay.session.due_steps import DueStep, Outbox, answers_apart, moment_of
from ccplay.session.history import Change, History
from ccplay.session.manual_overrides import ByHand
from ccplay.state.lab_state import LabState
from ccplay.stream.sinks import Recording, Sink
from ccplay.stream.sources import LabSource, Source
from ccplay.stream.wire import UnknownEvent

_IDLE_S = 0.5
"""Seconds after a frame for which sweeps may wait; a timeline that is idle is so for longer."""

_TURNS = 5
"""Turns of the event loop from when a pipe may be read until its events are in the state."""


class Timed(Protocol):
    """Commands that wait for their moment; ``script.Script`` is one."""

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
        glimpse: Callable[[], LabState | None] | None = None,
        idle: Callable[[LabState], bool] | None = None,
        recorded: bool | None = None,
        advice: Callable[[LabState], str] | None = None,
    ) -> None:
        """Hold ``source``; ``glimpse`` returns a state to show until that much is read.

        ``idle`` returns whether what arrives may wait for the screen's next frame; without it
        nothing waits. ``recorded`` says whether the events come from a recording; None: where no
        lab can hear. ``advice`` returns what to add to the error that ends the source, or nothing.
        """
        self._whole = LabState()
        self._shown = self._whole
        self._swept: list[Sweep] = []
        """Sweeps that wait until somebody looks at the state, to be folded together."""
        self._idle_until = 0.0
        """Moment before which no step of the timeline can be due, as of the last frame."""
        self.title = title
        self.failure: CcplayError | None = None
        """The error that ended the source."""
        self.done = False
        """Whether the source has ended: no more events will come."""
        self.recorded = not source.live if recorded is None else recorded
        """Whether the events come from a recording."""
        self.watched = False
        """Whether others watch, who would have to wait with this screen."""
        self.known_from = 0.0
        """The moment before which a glimpse has no samples."""
        self._glimpse = glimpse
        self._idle = idle
        self._advice = advice
        self._source = source
        self._sinks = list(sinks)
        archives = (sink for sink in self._sinks if isinstance(sink, SessionRecorder))
        self._archive = next(archives, None)
        self._script = script
        self._by_hand = ByHand()
        self._outbox = Outbox()
        self._history = History()

    @property
    def state(self) -> LabState:
        """The state of everything read, or a glimpse until more has been read."""
        if self._swept:
            self._fold()
        return self._shown

    def _fold(self) -> None:
        swept, self._swept = self._swept, []
        if swept:
            self._whole.apply_sweeps(swept)

    @property
    def error(self) -> str | None:
        """The reason why the source failed."""
        return None if self.failure is None else str(self.failure)

    @property
    def live(self) -> bool:
        """Whether commands have an effect now."""
        return self._source.live and not self.done

    @property
    def archived(self) -> Path | None:
        """Where this live session is recorded among the last ones; None where it is not."""
        return None if self._archive is None else self._archive.path

    @property
    def unanswered(self) -> tuple[DueStep, ...]:
        """Steps of the timeline sent to the lab, but not yet carried out or refused."""
        return self._outbox.unanswered

    async def run(self) -> None:
        """Process events until the source ends; an error is then in ``failure``."""
        try:
            await self._look_ahead()
            async for event in self._source.events():
                self._take(self._outbox.match(event), apart=answers_apart(event))
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
        """Process what has arrived until now: a frame is about to be drawn."""
        if self._idle is None or not self.live or not isinstance(self._source, LabSource):
            return
        state = self.state
        ready = state.ready_at is not None and not self.unanswered and not self.watched
        waits = ready and self._idle(state)
        self._idle_until = state.now + _IDLE_S if waits else 0.0
        self._source.read_on(then_wait=waits)
        for _ in range(_TURNS):
            await asyncio.sleep(0)

    def send(self, command: AnyCommand) -> None:
        """Send a command to the lab; the outcome arrives as ``Applied`` or ``Failed``.

        The rest of the timeline does not undo it.
        """
        self._history.begin_anew()
        hello = self.state.hello
        for each in singly(command, hello.network if hello else None):
            self._do(each)

    @property
    def undoable(self) -> str:
        """What ``undo`` would do, in a line; empty where nothing was done by hand."""
        change = self._history.next
        if change is None:
            return ""
        return change.inverse.text or f"{describe(change.done.command)}: {change.inverse.refusal}"

    def undo(self) -> str:
        """Take back the last change by hand that took effect; return what that does.

        The timeline goes on from there as if the change had not been made. Raises
        ``CommandError`` with the reason where nothing can be undone.
        """
        self._require_lab()
        self._fold()
        change = self._history.undo(self._whole)
        self._by_hand.forget(change.asked)
        said = f"undo: {change.inverse.text}"
        self._take(Log(t=self.state.now, level="info", text=said))
        *first, last = change.inverse.commands
        for command in first:
            self._send(command, None)
        self._send(last, None, undoes=change)
        return said

    def redo(self) -> str:
        """Do again what was undone last; return what that is. Raises ``CommandError``."""
        self._require_lab()
        command = self._history.redo()
        self._do(command)
        said = f"redo: {describe(command)}"
        self._take(Log(t=self.state.now, level="info", text=said))
        return said

    def _require_lab(self) -> None:
        """Raise ``CommandError`` where no lab can carry anything out."""
        if self.recorded:
            raise CommandError("this is a recording: nothing in it can be undone")
        if self.done:
            raise CommandError("the lab has ended: nothing can be undone")
        if not self._source.live:
            raise CommandError("you are watching: the presenter alone can undo")

    def _do(self, command: AnyCommand) -> None:
        self._by_hand.ask(command)
        self._send(command, None, by_hand=True)

    def join(self, sink: Sink) -> None:
        """Pass every event from now on to one more sink."""
        self._sinks.append(sink)

    def past(self) -> BinaryIO | None:
        """Return a file with everything until now, to be closed; None where nothing is kept.

        Raises ``OSError``.
        """
        kept = (sink for sink in self._sinks if isinstance(sink, Recording))
        found = next(kept, None)
        return None if found is None else found.snapshot()

    def spoil(self, text: str) -> None:
        """Record in state and recording why measurements of this session can't be trusted."""
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
            self._shown, self.known_from = seen, seen.sweeps.time(0)

    def _show_whole(self) -> None:
        self._fold()
        self._shown, self.known_from = self._whole, 0.0

    def _take(self, event: AnyEvent | UnknownEvent, *, apart: bool = False) -> None:
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
        if self._sinks and self._shown.hello is not None:
            self._pour(event)

    def play(self, due: list[DueStep]) -> None:
        """Send steps, except those that would undo the user's settings, which are logged."""
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

    def _send(
        self,
        command: AnyCommand,
        step: DueStep | None,
        *,
        by_hand: bool = False,
        undoes: Change | None = None,
    ) -> None:
        self._fold()
        self._outbox.note(step)
        self._history.send(command, self._whole, by_hand=by_hand, undoes=undoes)
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

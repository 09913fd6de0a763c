"""Ghosts: an earlier run, or an earlier part of this one, to lie under what is shown."""

from __future__ import annotations

import asyncio
import math
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path

from ccplay.errors import RecordingError
from ccplay.model.commands import ChangeMark, Mark, RemoveMark
from ccplay.model.events import Applied
from ccplay.session.recordings import glance
from ccplay.state.lab_state import LabState
from ccplay.stream import wire
from ccplay.stream.sources import recorded_events
from ccplay.units import format_clock

_FLOW = "start-flow"
_REMARKS = (Mark, ChangeMark, RemoveMark)
_SAME_S = 1e-6
"""Moments that are nearer to each other than this are one: the wire has microseconds."""


@dataclass(frozen=True, slots=True)
class Ghost:
    """What is laid under a session, and where on its time axis."""

    state: LabState
    name: str
    """What the screen calls it: the file's name, as a rule."""
    first: float
    """The moment of its own that is laid on the session; nothing before is shown."""
    last: float = math.inf
    """Nothing of it after this moment of its own is shown."""
    waits_since: float | None = None
    """Where None, ``first`` is laid on the moment at which the session's network stood; else on
    the session's first action after this moment, for which the ghost waits unseen."""
    repeats: str = ""
    """What kind of action that has to be, such as ``start-flow``; empty for any."""

    def shift(self, state: LabState) -> float | None:
        """Return by how many seconds it is moved to lie on a session, None while it waits."""
        if self.waits_since is None:
            return None if state.ready_at is None else state.ready_at - self.first
        action = next_action(state, self.waits_since, self.repeats)
        return None if action is None else action.t - self.first


def of_run(state: LabState, name: str) -> Ghost:
    """Return a whole run as a ghost: both networks stand at the same moment."""
    return Ghost(state, name, first=state.ready_at or 0.0)


def of_session(state: LabState, first: float, *, waits_since: float) -> Ghost:
    """Return what a session showed from ``first`` until now as its own ghost.

    Where something was done at ``first``, it waits until the same kind of thing is done again.
    """
    action = next_action(state, first - 2 * _SAME_S)
    repeats = kind_of(action) if action is not None and action.t - first < _SAME_S else ""
    name = f"from {format_clock(first)} on"
    return Ghost(state, name, first, state.now, waits_since, repeats)


def next_action(state: LabState, t: float, kind: str = "") -> Applied | None:
    """Return what was first done after ``t``, of any kind or of one; remarks are no actions."""
    done = state.applied
    for at in range(bisect_right(done, t + _SAME_S, key=lambda each: each.t), len(done)):
        found = kind_of(done[at])
        if found == kind or (not kind and not isinstance(done[at].command, _REMARKS)):
            return done[at]
    return None


def kind_of(action: Applied) -> str:
    """Return what was done in a word, as scenarios have it: ``start-flow``."""
    return str(action.command.__struct_config__.tag)


@dataclass(frozen=True, slots=True)
class Choice:
    """Which ghost somebody wants. None at all is ``Choice()``."""

    path: Path | None = None
    """A recording."""
    moment: float | None = None
    """Or the session itself, from this moment on."""
    waits_since: float | None = None
    """Let it begin with the session's next action after this moment. Where None, lay a
    recording so that both networks stand at once."""


class Ghosts:
    """Holds the ghost of a session, and reads those that are in files beside the drawing."""

    def __init__(self, state: LabState) -> None:
        self.shown: Ghost | None = None
        self.state = state
        """What is known of the session."""
        self._reading: _Reading | None = None

    @property
    def reading(self) -> str:
        """What is being read, and how far; empty where nothing is."""
        return str(self._reading or "")

    async def choose(self, choice: Choice) -> None:
        """Show another ghost, or none. Raises ``RecordingError`` and keeps the one there is."""
        if choice.path is not None:
            self.shown = await self._read(choice.path, choice.waits_since)
        elif choice.moment is not None and choice.waits_since is not None:
            self.shown = of_session(self.state, choice.moment, waits_since=choice.waits_since)
        else:
            self.shown = None

    async def _read(self, path: Path, waits_since: float | None) -> Ghost:
        self._reading = reading = _Reading(path)
        try:
            await asyncio.to_thread(reading.read)
        finally:
            # A worker that is cancelled leaves its thread behind, which must not go on.
            reading.wanted = False
            if self._reading is reading:
                self._reading = None
        name = wire.printable(path.name)
        if waits_since is None:
            return of_run(reading.state, name)
        action = next_action(reading.state, -math.inf, _FLOW)
        if action is None:
            raise RecordingError(f"{name}: no flow was started in it, there is nothing to line up")
        return Ghost(reading.state, name, action.t, waits_since=waits_since, repeats=_FLOW)


class _Reading:
    """A recording while a thread reads it."""

    def __init__(self, path: Path) -> None:
        self.state = LabState()
        self.wanted = True
        """Set to False to end the reading."""
        self._path = path
        self._seconds: float | None = None

    def read(self) -> None:
        """Read it. Raises ``RecordingError``."""
        self._seconds = glance(self._path, self._path.parent).seconds
        for event in recorded_events(self._path):
            self.state.apply(event)
            if not self.wanted:
                return

    def __str__(self) -> str:
        """Say what is read, and how far."""
        name = wire.printable(self._path.name)
        return f"{name} {self.state.now / self._seconds:.0%}" if self._seconds else name

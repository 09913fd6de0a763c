"""Ghosts: an earlier run, or an earlier part of this one, drawn under the session."""

from __future__ import annotations

import asyncio
import math
from bisect import bisect_right
from pathlib import Path

import msgspec

from ccplay.errors import RecordingError
from ccplay.model.commands import ChangeMark, Mark, RemoveMark
from ccplay.model.events import Applied
from ccplay.session.archive import glance
from ccplay.state.lab_state import LabState
from ccplay.stream import wire
from ccplay.stream.sources import recorded_events
from ccplay.units import format_clock

_FLOW = "start-flow"
_REMARKS = (Mark, ChangeMark, RemoveMark)
_SAME_S = 1e-6
"""Seconds within which two moments count as equal, because the wire has microseconds."""


class Ghost(msgspec.Struct, frozen=True):
    """A ghost and its alignment with the session's time axis."""

    state: LabState
    name: str
    """Displayed name, usually that of the file."""
    first: float
    """First moment of the ghost that is shown."""
    last: float = math.inf
    """Last moment of the ghost that is shown."""
    waits_since: float | None = None
    """Moment after which the session's next action aligns the ghost, which is hidden until then;
    if None, ``first`` is aligned with the moment at which the session's network was ready."""
    repeats: str = ""
    """Kind of the action that aligns the ghost, such as ``start-flow``; empty for any."""

    def shift(self, state: LabState) -> float | None:
        """Return the seconds to add to the ghost's moments to align it; None while it waits."""
        if self.waits_since is None:
            return None if state.ready_at is None else state.ready_at - self.first
        action = next_action(state, self.waits_since, self.repeats)
        return None if action is None else action.t - self.first


def of_run(state: LabState, name: str) -> Ghost:
    """Return a whole run as a ghost, aligned at the moments when the networks were ready."""
    return Ghost(state, name, first=state.ready_at or 0.0)


def of_session(state: LabState, first: float, *, waits_since: float) -> Ghost:
    """Return a session's own past from ``first`` on as its ghost.

    If there was an action at ``first``, the ghost waits for the next action of that kind.
    """
    action = next_action(state, first - 2 * _SAME_S)
    repeats = kind_of(action) if action is not None and action.t - first < _SAME_S else ""
    name = f"from {format_clock(first)} on"
    return Ghost(state, name, first, state.now, waits_since, repeats)


def next_action(state: LabState, t: float, kind: str = "") -> Applied | None:
    """Return the first action after ``t``, of ``kind`` unless it is empty; marks are no actions."""
    done = state.applied
    for at in range(bisect_right(done, t + _SAME_S, key=lambda each: each.t), len(done)):
        found = kind_of(done[at])
        if found == kind or (not kind and not isinstance(done[at].command, _REMARKS)):
            return done[at]
    return None


def kind_of(action: Applied) -> str:
    """Return the kind of an action as written in scenarios: ``start-flow``."""
    return str(action.command.__struct_config__.tag)


class Choice(msgspec.Struct, frozen=True):
    """The choice of a ghost; ``Choice()`` chooses none."""

    path: Path | None = None
    """Path of a recording."""
    moment: float | None = None
    """Moment of the session from which its own past becomes the ghost; None for a recording."""
    waits_since: float | None = None
    """Moment after which the session's next action aligns the ghost; if None, a recording is
    aligned at the moments when the networks were ready."""


class Ghosts:
    """The ghost of a session, and the reading of ghosts from files in the background."""

    def __init__(self, state: LabState) -> None:
        self.shown: Ghost | None = None
        self.state = state
        """State of the session, part of which may be the ghost."""
        self._reading: _Reading | None = None

    @property
    def reading(self) -> str:
        """Name and progress of the ghost being read; empty if none is."""
        return str(self._reading or "")

    async def choose(self, choice: Choice) -> None:
        """Show another ghost, or none. If ``RecordingError`` is raised, the present one stays."""
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
            # A cancelled worker leaves its thread behind, which must not continue.
            reading.wanted = False
            if self._reading is reading:
                self._reading = None
        name = wire.printable(path.name)
        if waits_since is None:
            return of_run(reading.state, name)
        action = next_action(reading.state, -math.inf, _FLOW)
        if action is None:
            raise RecordingError(f"{name}: it starts no flow, so it can't be aligned")
        return Ghost(reading.state, name, action.t, waits_since=waits_since, repeats=_FLOW)


class _Reading:
    """A recording that a thread is reading."""

    def __init__(self, path: Path) -> None:
        self.state = LabState()
        self.wanted = True
        """Whether to continue reading."""
        self._path = path
        self._seconds: float | None = None

    def read(self) -> None:
        """Read the recording. Raises ``RecordingError``."""
        self._seconds = glance(self._path, self._path.parent).seconds
        for event in recorded_events(self._path):
            self.state.apply(event)
            if not self.wanted:
                return

    def __str__(self) -> str:
        """Return the recording's name and the progress."""
        name = wire.printable(self._path.name)
        return f"{name} {self.state.now / self._seconds:.0%}" if self._seconds else name

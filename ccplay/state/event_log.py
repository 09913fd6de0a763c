"""The event log: commands, events and marks as lines."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from ccplay.model.commands import ChangeMark, Mark, RemoveMark
from ccplay.model.events import MOST_LATE_S, Applied
from ccplay.units import format_clock


class Entry(msgspec.Struct, frozen=True):
    """A line of the event log."""

    t: float
    kind: str
    """Kind of the line: ``applied``, ``mark``, ``traffic``, ``file``, ``info``, ``warning`` or
    ``error``."""
    text: str
    name: str = ""
    """Name of a user's mark in commands."""
    detail: str = ""
    """Equivalent lines of tc(8); empty if there are none."""

    @property
    def is_mark(self) -> bool:
        """Whether the line is drawn through the plots, as the cause of a possible effect."""
        return self.kind in ("applied", "mark")


class EventLog:
    """The lines of a session's event log."""

    def __init__(self) -> None:
        self.log: list[Entry] = []
        """Lines in the order of arrival; a mark's moment may be earlier than that of the line
        before."""
        self._marks: dict[str, int] = {}
        """Index of the line of each mark, by name."""

    def write(self, t: float, kind: str, text: str, detail: str = "") -> None:
        """Add a line."""
        self.log.append(Entry(t, kind, text, detail=detail))

    def mark(self, event: Applied, command: Mark | ChangeMark | RemoveMark) -> None:
        """Add, change or remove a mark."""
        if isinstance(command, Mark):
            at = event.t if command.at is None else command.at
            if command.name is not None:
                self._marks[command.name] = len(self.log)
            text = command.text + lateness(event)
            self.log.append(Entry(at, "mark", text, command.name or ""))
            return
        row = self._marks.get(command.name)
        if row is None:
            return
        # In place, because readers rely on the lines they have seen.
        was = self.log[row]
        if isinstance(command, RemoveMark):
            del self._marks[command.name]
            text = f"mark {was.text!r} at {format_clock(was.t)} is removed"
            self.log[row] = Entry(event.t, "info", text)
        else:
            text = was.text if command.text is None else command.text
            at = was.t if command.at is None else command.at
            self.log[row] = replace(was, t=at, text=text)


def lateness(event: Applied) -> str:
    """Return how late a step of the timeline was, as text; empty within the tolerance."""
    return f", {event.late_s:.1f} s late" if event.late_s > MOST_LATE_S else ""

"""The state of traffic by name, and the event log that records its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, TypeVar, cast, runtime_checkable

import msgspec
from msgspec.structs import replace

from ccplay.model.commands import ChangeMark, Mark, RemoveMark
from ccplay.model.events import MOST_LATE_S, Applied, FlowPath
from ccplay.model.series import Series
from ccplay.units import format_clock

# --- the event log: commands, events and marks as lines -------------------------------------------


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


# --- the state of traffic by name, and the event log that records its end -------------------------


class Traffic(Protocol):
    """The attributes common to every kind of traffic."""

    @property
    def kind(self) -> str:
        """Name of the traffic's ``TrafficKind``."""

    @property
    def name(self) -> str:
        """Name of the traffic in commands."""

    @property
    def src(self) -> str:
        """Sending host."""

    @property
    def dst(self) -> str:
        """Receiving host."""

    @property
    def started(self) -> float:
        """Moment of the start in seconds since the start of the stream."""

    @property
    def ended(self) -> float | None:
        """Moment of the end in seconds since the start of the stream; None while it runs."""

    @property
    def error(self) -> str | None:
        """Reason for the end if nobody requested it."""


@runtime_checkable
class Listed(Protocol):
    """Traffic that is not a single connection, for which the screen shows a line of text."""

    def lines(self, t: float) -> tuple[str, ...]:
        """Return the line at ``t`` in several lengths, longest first."""


@runtime_checkable
class Seen(Protocol):
    """Traffic whose packets a monitor counts while it runs."""

    @property
    def name(self) -> str:
        """Name of the traffic in commands."""

    @property
    def seen(self) -> dict[str, Series]:
        """Variables of the monitor over time by name."""


@runtime_checkable
class Routed(Traffic, Protocol):
    """Traffic whose path, one of several, is known."""

    @property
    def paths(self) -> list[FlowPath]:
        """Paths of the traffic, oldest first; empty if there was only one."""


T = TypeVar("T", bound=Traffic)


class TrafficState(EventLog):
    """All traffic of a session by name."""

    def __init__(self) -> None:
        super().__init__()
        self.traffic: dict[str, Traffic] = {}
        """All traffic that was started, in the order of the starts.

        In recordings of 0.1 two kinds may have one name: the later one is kept under ``KIND NAME``,
        which no command can use."""

    def of(self, kind: type[T]) -> dict[str, T]:
        """Return all traffic of a class by name, in the order of the starts."""
        # One download of a thousand is enough to check the class.
        one_each = {type(each): each for each in self.traffic.values()}
        wanted = [one for one, each in one_each.items() if isinstance(each, kind)]
        if not wanted:
            return {}
        return {
            each.name: cast("T", each) for each in self.traffic.values() if type(each) in wanted
        }

    def add(self, traffic: Traffic) -> None:
        """Add traffic that has started."""
        known = self.traffic.get(traffic.name)
        apart = known is not None and known.kind != traffic.kind
        self.traffic[f"{traffic.kind} {traffic.name}" if apart else traffic.name] = traffic

    def find(self, kind: type[T], name: str) -> T | None:
        """Return the traffic of a class with this name."""
        found = self.traffic.get(name)
        if found is None or isinstance(found, kind):
            return found
        return self.of(kind).get(name)

    def find_of(self, kind: str, name: str) -> Traffic | None:
        """Return the traffic of a kind with this name."""
        found = self.traffic.get(name)
        if found is None or found.kind == kind:
            return found
        return self.traffic.get(f"{kind} {name}")


Handlers: TypeAlias = dict[type, Callable[[Any, Any], None]]
"""Function by type of event that applies it to the state."""

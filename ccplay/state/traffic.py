"""The state of traffic by name, and the event log that records its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, TypeVar, cast, runtime_checkable

from ccplay.model.events import FlowPath
from ccplay.state.event_log import EventLog
from ccplay.state.series import Series


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

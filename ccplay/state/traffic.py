"""What is known of traffic: each by its name, and the event log that its end is written to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, TypeVar, cast, runtime_checkable

from ccplay.model.events import FlowPath
from ccplay.state.event_log import EventLog
from ccplay.state.series import Series


class Traffic(Protocol):
    """What every kind of traffic has in common."""

    @property
    def kind(self) -> str:
        """The name of its ``TrafficKind``."""

    @property
    def name(self) -> str:
        """What commands call it."""

    @property
    def src(self) -> str:
        """The host that sends."""

    @property
    def dst(self) -> str:
        """The host that receives."""

    @property
    def started(self) -> float:
        """Seconds since the start of the stream."""

    @property
    def ended(self) -> float | None:
        """As ``started``; None while it runs."""

    @property
    def error(self) -> str | None:
        """Why it ended, where nobody asked for it."""


@runtime_checkable
class Listed(Protocol):
    """Traffic that is no single connection: the screen has a line of its own words."""

    def lines(self, t: float) -> tuple[str, ...]:
        """Return what the screen has of it at ``t``: the same in several lengths, longest first."""


@runtime_checkable
class Seen(Protocol):
    """Traffic whose packets a monitor counts while it runs."""

    @property
    def name(self) -> str:
        """What commands call it."""

    @property
    def seen(self) -> dict[str, Series]:
        """The monitor's variables over time by name."""


@runtime_checkable
class Routed(Traffic, Protocol):
    """Traffic of which is known which of several paths it took."""

    @property
    def paths(self) -> list[FlowPath]:
        """The paths, oldest first; none if there was one path only."""


T = TypeVar("T", bound=Traffic)


class TrafficState(EventLog):
    """All traffic of a session by name."""

    def __init__(self) -> None:
        super().__init__()
        self.traffic: dict[str, Traffic] = {}
        """Everything that was started, in its order.

        In recordings of 0.1 two kinds may have one name: the later one stands under
        ``KIND NAME``, which no command can name.
        """

    def of(self, kind: type[T]) -> dict[str, T]:
        """Return all traffic of a class by name, in the order of its start."""
        # Of a thousand downloads one is asked whether it is of the class.
        one_each = {type(each): each for each in self.traffic.values()}
        wanted = [one for one, each in one_each.items() if isinstance(each, kind)]
        if not wanted:
            return {}
        return {
            each.name: cast("T", each) for each in self.traffic.values() if type(each) in wanted
        }

    def add(self, traffic: Traffic) -> None:
        """Keep traffic that has started."""
        known = self.traffic.get(traffic.name)
        apart = known is not None and known.kind != traffic.kind
        self.traffic[f"{traffic.kind} {traffic.name}" if apart else traffic.name] = traffic

    def find(self, kind: type[T], name: str) -> T | None:
        """Return the traffic of a class that has this name."""
        found = self.traffic.get(name)
        if found is None or isinstance(found, kind):
            return found
        return self.of(kind).get(name)

    def find_of(self, kind: str, name: str) -> Traffic | None:
        """Return the traffic of a kind that has this name."""
        found = self.traffic.get(name)
        if found is None or found.kind == kind:
            return found
        return self.traffic.get(f"{kind} {name}")


Handlers: TypeAlias = dict[type, Callable[[Any, Any], None]]
"""Function by type of event that applies it to the state."""

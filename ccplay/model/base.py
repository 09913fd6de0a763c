"""Building blocks of the model: bounded numbers, and the three kinds of record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, Self, TypeAlias

import msgspec
from msgspec.structs import replace

from ccplay.model import settings

Option: TypeAlias = bool | int | float | str
"""The value of one parameter of a queue discipline."""

_MOST = 1 << 53

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=_MOST)]
"""A number counted or measured by the kernel, from 0 to 2^53."""

Step: TypeAlias = Annotated[int, msgspec.Meta(ge=-_MOST, le=_MOST)]
"""Difference between two consecutive counts."""

LAST_CA_STATE = 4
"""Number of the last congestion state, ``TCP_CA_Loss``."""

CaState: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=LAST_CA_STATE)]
"""Congestion state: ``enum tcp_ca_state`` of include/uapi/linux/tcp.h, an index into
``CA_STATES``."""

WallTime: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1e11)]
"""Unix time, until the year 5138."""

FEW = msgspec.Meta(max_length=1000)
"""Largest number of items of one kind in a network or a kernel: links, hosts, algorithms."""

MANY = msgspec.Meta(max_length=100_000)
"""Largest length of a long list: names or starts of traffic in a command, transfers in an event."""

Moment: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
"""Seconds since ``Hello``, to the microsecond, up to 30 years."""

Duration: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1e15)]
"""A length of time, in microseconds or seconds according to the field's name."""

LONGEST_NAME = 200
"""Largest length of a name in characters."""

Name: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^[^/\s]+$", max_length=LONGEST_NAME)]
"""Name of traffic; ``/`` separates a flow from the number of its stream."""

ConnectionName: TypeAlias = Annotated[
    str, msgspec.Meta(pattern=r"^[^/\s]+(/[0-9]+)?$", max_length=LONGEST_NAME + 10)
]
"""Name of a connection: that of its traffic, or that with the number of a stream or subflow:
``1/2``."""

Variable: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]*$", max_length=40)]
"""Name of an algorithm's variable, with a unit suffix."""

Row: TypeAlias = Count | list[Step | None] | dict[int, Count | None] | None
"""Values of a field of one flow or queue over several sweeps; a single value if it stayed the same.

An array is the first value and then the difference of each sweep. None is unknown; the next
difference is relative to the last known value, or to 0 if there is none. An object, used for rare
changes, maps the index of a sweep, counted from 0, to the value from that sweep on."""


class Value(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=False
):
    """A value that is part of a command or an event."""


def _words(name: str) -> str:
    """Return a class name as written in scenario files: ``StartFlow`` -> ``start-flow``."""
    return "".join(f"-{c.lower()}" if c.isupper() else c for c in name).lstrip("-")


class Command(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    tag_field="do",
    tag=_words,
):
    """A command; the lab answers with ``Applied`` or ``Failed``."""

    ANY_OF: ClassVar[tuple[str, ...]] = ()
    """Fields of which at least one must be given, or the command changes nothing."""
    ONE_OF: ClassVar[tuple[str, ...]] = ()
    """Fields of which exactly one must be given."""
    TRAFFIC: ClassVar[str] = ""
    """Field with the name of running traffic that the command changes; empty if there is none."""

    def describe(self) -> str:
        """Return the command as one short line; empty for traffic, which its kind describes."""
        return ""

    def describe_effect(self, cc: str | None, *, renewed: bool) -> str:
        """Return the line of the event log about the command once it took effect.

        ``cc`` is the earlier algorithm of the flow that it changes, None if it changes none;
        ``renewed`` is whether a saved file of an algorithm or a discipline was the cause.
        """
        del cc, renewed
        return self.describe()

    def is_setting(self) -> bool:
        """Return whether the command only changes a link, a queue or the default of a host."""
        return False

    def needs(self) -> str:
        """Return the name of the traffic that must be running for the command to make sense."""
        return getattr(self, self.TRAFFIC, None) or ""

    @property
    def name_field(self) -> str:
        """The field with the name of traffic that the command starts, stops or changes."""
        return self.TRAFFIC

    def rename_traffic(self, names: Mapping[str, str]) -> Self:
        """Return the command with other names of traffic, given by the names in the command."""
        name = names.get(getattr(self, self.name_field, None) or "")
        return self if name is None else replace(self, **{self.name_field: name})


class Event(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event", tag=_words
):
    """An event in the lab at the moment ``t``."""

    t: Moment


def _name_field(record: msgspec.Struct) -> str:
    """Return the field with the name of the traffic: the first of its own, named as its kind."""
    # Not ``__struct_fields__``, where an inherited field that a kind describes anew comes first.
    return next(iter(type(record).__annotations__))


def _name(record: msgspec.Struct) -> str | None:
    found: str | None = getattr(record, _name_field(record))
    return found


class StartTraffic(Command, frozen=True, kw_only=True):
    """A command that starts traffic; its first field is the traffic's name.

    Each kind of traffic is a package below ``ccplay.traffic`` and has its own subclass.
    """

    WORD: ClassVar[str]
    """Name of the kind for people: ``flow``, ``UDP``."""

    src: Annotated[str | None, settings.SRC] = None
    """Sending host; None takes the first sender."""
    dst: Annotated[str | None, settings.DST] = None
    """Receiving host; None takes the peer of ``src``."""

    @property
    def name_field(self) -> str:
        """The field with the name of the traffic."""
        return _name_field(self)

    @property
    def name(self) -> str | None:
        """Name of the traffic; None takes the next free one."""
        return _name(self)

    def detail(self) -> str:
        """Return what the event log shows of the start, apart from its path."""
        return ""

    def describe(self) -> str:
        """Return the command as one short line."""
        path = f"{self.src or 'the first sender'} → {self.dst or 'its receiver'}"
        what = ", ".join(filter(None, (self.detail(), path)))
        named = self.WORD if self.name is None else f"{self.WORD} {self.name}"
        return f"{named} starts: {what}"


class StartRoutedTraffic(StartTraffic, frozen=True, kw_only=True):
    """A command that starts traffic whose path can be chosen."""

    via: Annotated[Annotated[list[str], FEW] | None, settings.VIA] = None


class StopTraffic(Command, frozen=True):
    """A command that ends traffic of a kind; its only field is the traffic's name."""

    WORD: ClassVar[str]
    """Name of the kind for people."""

    @property
    def name_field(self) -> str:
        """The field with the name of the traffic."""
        return _name_field(self)

    @property
    def name(self) -> str:
        """Name of the traffic."""
        return _name(self) or ""

    def needs(self) -> str:
        """Return the name of the traffic."""
        return self.name

    def describe(self) -> str:
        """Return the command as one short line."""
        return f"{self.WORD} {self.name} stops"


class TrafficEvent(Event, frozen=True):
    """An event of one traffic, whose name is the first field; each kind has its own subclasses."""

    @property
    def name(self) -> str:
        """Name of the traffic."""
        return _name(self) or ""


class TrafficStarted(TrafficEvent, frozen=True, kw_only=True):
    """Traffic has begun to send."""

    src: str
    dst: str


class TrafficSample(TrafficEvent, frozen=True):
    """A measurement of traffic while it runs, at its own moment between the sweeps."""


class TrafficEnded(TrafficEvent, frozen=True, kw_only=True):
    """Traffic has ended."""

    error: str | None = None
    """Reason for the end if nobody requested it."""


# Commands and events that contain commands are generic: what a decoder accepts there is decided
# where all kinds of traffic are known (``ccplay.stream.wire``). Elsewhere they hold any command.
if TYPE_CHECKING:
    from typing_extensions import TypeVar

    AnyStart_co = TypeVar("AnyStart_co", bound=StartTraffic, default=StartTraffic, covariant=True)
    AnyCommand_co = TypeVar("AnyCommand_co", bound=Command, default=Command, covariant=True)
else:
    from typing import TypeVar

    AnyStart_co = TypeVar("AnyStart_co", bound=StartTraffic, covariant=True)
    AnyCommand_co = TypeVar("AnyCommand_co", bound=Command, covariant=True)

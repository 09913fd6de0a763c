"""Building blocks of the model: bounded numbers, and the three kinds of record."""

from __future__ import annotations

from typing import Annotated, ClassVar, TypeAlias

import msgspec

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

    def describe(self) -> str:
        """Return the command as one short line; empty for traffic, which its kind describes."""
        return ""

    def is_setting(self) -> bool:
        """Return whether the command only changes a link, a queue or the default of a host."""
        return False


class Event(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event", tag=_words
):
    """An event in the lab at the moment ``t``."""

    t: Moment

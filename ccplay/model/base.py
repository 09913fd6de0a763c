"""Building blocks of the model: bounded numbers, and the three kinds of record."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

Option: TypeAlias = bool | int | float | str
"""The value of one parameter of a queue discipline."""

_MOST = 1 << 53

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=_MOST)]
"""A number counted or measured by the kernel, which has no greater ones."""

Step: TypeAlias = Annotated[int, msgspec.Meta(ge=-_MOST, le=_MOST)]
"""Difference between a count and the next one."""

LAST_CA_STATE = 4
"""``TCP_CA_Loss``."""

CaState: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=LAST_CA_STATE)]
"""``enum tcp_ca_state`` of include/uapi/linux/tcp.h: a place in ``words.CA_STATES``."""

WallTime: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1e11)]
"""Unix time, until the year 5138."""

FEW = msgspec.Meta(max_length=1000)
"""Most items of one kind in a network or a kernel: links, hosts, algorithms."""

MANY = msgspec.Meta(max_length=100_000)
"""Most names in a scenario: a thousand cases have as many steps together."""

Moment: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
"""Seconds since ``Hello``, to the microsecond; at most 30 years."""

Duration: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1e15)]
"""A length of time, in microseconds or seconds as its name says."""

LONGEST_NAME = 200
"""Characters."""

Name: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^[^/\s]+$", max_length=LONGEST_NAME)]
"""Name of traffic; ``/`` separates a flow from the number of its stream."""

ConnectionName: TypeAlias = Annotated[
    str, msgspec.Meta(pattern=r"^[^/\s]+(/[0-9]+)?$", max_length=LONGEST_NAME + 10)
]
"""Name of a connection: that of its traffic, or with the number of a stream or subflow: ``1/2``."""

Variable: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]*$", max_length=40)]
"""Name of an algorithm's variable, with a unit suffix."""

Row: TypeAlias = Count | list[Step | None] | dict[int, Count | None] | None
"""A field of one flow or queue over several sweeps: one value where it stayed the same.

An array is its first value, then what each sweep adds. None is not known; what comes after it is
added to the last value that is, or to 0 where there is none. An object, where it changed seldom,
has the value by the number of the sweep, from 0, since which it holds.
"""


class Value(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=False
):
    """A value that a command or an event carries."""


def _words(name: str) -> str:
    """Return a class name as in scenario files: ``StartFlow`` -> ``start-flow``."""
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


class Event(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event", tag=_words
):
    """An event in the lab at ``t``."""

    t: Moment

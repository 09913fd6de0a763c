"""Kinds of values: how each is typed, shown and written in a scenario file, and its JSON Schema."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import isfinite
from typing import Any, TypeAlias

import msgspec

from ccplay.model.quoting import MisfitError, quote
from ccplay.units import (
    PATTERNS,
    UnitError,
    any_case,
    format_rate,
    format_ratio,
    format_time_us,
    parse_frequency,
    parse_rate,
    parse_ratio,
    parse_size,
    parse_time_us,
    show_size,
    write_frequency,
    write_rate,
    write_seconds,
    write_share,
    write_size,
    write_time_us,
)

Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain]"
"""A value as read from TOML."""

Shape: TypeAlias = dict[str, Any]
"""A part of a JSON Schema."""


def same(value: Any) -> Plain:
    """Return a value of TOML unchanged, for quantities with the same type in the model."""
    plain: Plain = value
    return plain


class Quantity(msgspec.Struct, frozen=True, eq=False):
    """A kind of value. Its readers raise ``ValueError`` with a description of what would fit."""

    name: str
    """Name of the definition in the JSON Schema; empty if the shape is repeated wherever it is
    used."""
    what: str
    """Noun for messages: ``a rate such as "10 Mbit/s"``."""
    type: type
    """Type of the value in the model."""
    read: Callable[[Any], Any]
    """Function that reads a value of TOML."""
    parse: Callable[[str], Any]
    """Function that reads text typed by a person, without the quotes of TOML."""
    shape: Shape
    """JSON Schema of what ``read`` accepts; it has no bounds for values with units."""
    show: Callable[[Any], str] = str
    """Function that returns a value as short text for people."""
    write: Callable[[Any], Plain] = same
    """Function that returns a value for a scenario file, from which ``read`` restores it
    exactly."""
    unit: str = ""
    """Unit of the value in the model, if it is shown."""
    unlimited: bool = False
    """Whether 0 stands for ``unlimited`` and is exempt from the bounds."""

    @property
    def is_number(self) -> bool:
        """Whether JSON Schema can express the bounds."""
        return self.shape.get("type") in ("integer", ["integer", "string"])

    def held(self, value: Any) -> Any:
        """Return a value of the model in its own type. Raises ``ValueError`` for other types."""
        if self.type is int and isinstance(value, float) and value.is_integer():
            return int(value)
        fits = (int, float) if self.type is float else self.type
        if not isinstance(value, fits) or isinstance(value, bool) != (self.type is bool):
            raise MisfitError(f"must be {self.what}, not {quote(value)}")
        return value


# --- with units -----------------------------------------------------------------------------


def _measured(
    name: str,
    what: str,
    parse: Callable[[str], Any],
    *,
    pattern: str,
    examples: tuple[str, ...],
    show: Callable[[Any], str],
    write: Callable[[Any], Plain],
    strict: str = "",
    **more: Any,
) -> Quantity:
    """Return a quantity with a unit; its text in a file must contain ``strict``."""
    such = f'{what} such as "{examples[0]}"'

    def parsed(text: str) -> Any:
        try:
            return parse(text)
        except MisfitError:
            raise
        except (ValueError, OverflowError) as error:
            known = f" (units: {error.known})" if isinstance(error, UnitError) else ""
            raise MisfitError(f"{quote(text)} is not {such}{known}") from None

    def read(value: Any) -> Any:
        if isinstance(value, int | float) and not isinstance(value, bool):
            raise MisfitError(f"{quote(value)} has no unit: write {such}")
        if not isinstance(value, str):
            raise MisfitError(f"must be {such}, not {quote(value)}")
        if strict not in value:
            raise MisfitError(f"{quote(value)} is not {such}")
        return parsed(value)

    shape = {"type": "string", "pattern": f"^({pattern})$", "examples": list(examples)}
    kind = float if what in ("a share", "a frequency") else int
    return Quantity(
        name, such, more.pop("type", kind), read, parsed, shape, show=show, write=write, **more
    )


def _show_seconds(length: float) -> str:
    hours = length / 3600
    return f"{hours:.0f} h" if hours >= 1 and hours.is_integer() else format_time_us(length * 1e6)


def _parse_link_rate(text: str) -> int:
    if text.strip().lower() == "unlimited":
        return 0
    if not (rate := parse_rate(text)):
        raise MisfitError(f'{quote(text)} is not a rate; for no limit write "unlimited"')
    return rate


def _parse_octets(text: str) -> int:
    return int(text) if text.strip().isdecimal() else parse_size(text)


_RATES = ("1 Mbit/s", "1.5 Mbit/s")
_TIMES = ("20 ms", "2 s", "5 min")

RATE = _measured(
    *("rate", "a rate", parse_rate),
    pattern=PATTERNS["rate"],
    examples=_RATES,
    show=format_rate,
    write=write_rate,
)
"""Rate in bits per second."""

LINK_RATE = _measured(
    *("link-rate", "a rate", _parse_link_rate),
    pattern=rf"{PATTERNS['rate']}|\s*({any_case(('unlimited',))})\s*",
    examples=("10 Mbit/s", "unlimited"),
    show=lambda rate: format_rate(rate) if rate else "unlimited",
    write=write_rate,
    unlimited=True,
)
"""Rate of a link in bits per second; 0 is unlimited."""

TIME_US = _measured(
    *("time", "a time", parse_time_us),
    pattern=PATTERNS["time"],
    examples=_TIMES,
    show=format_time_us,
    write=write_time_us,
)
"""Time in microseconds."""

SECONDS = _measured(
    *("time", "a time", lambda text: parse_time_us(text) / 1e6),
    pattern=PATTERNS["time"],
    examples=("20 s", *_TIMES[:1]),
    show=_show_seconds,
    write=write_seconds,
    type=float,
)
"""Time in seconds, to the microsecond."""

INTERVAL = _measured(
    *("time", "a time", lambda text: parse_time_us(text) / 1e6),
    pattern=PATTERNS["time"],
    examples=("200 ms", "1 s"),
    show=_show_seconds,
    write=lambda length: write_time_us(round(length * 1e6)),
    type=float,
)
"""Interval in seconds, usually less than one."""


def _size(*examples: str) -> Quantity:
    return _measured(
        *("size", "a size", parse_size),
        pattern=PATTERNS["size"],
        examples=examples,
        show=show_size,
        write=write_size,
    )


PACKET_SIZE, SIZE = _size("1024 bytes"), _size("50 MB", "64 KiB", "177669 bytes")
"""Sizes in bytes, of a packet and of anything larger; they differ in their examples."""

SHARE = _measured(
    *("share", "a share", parse_ratio),
    pattern=PATTERNS["share"],
    examples=("2 %",),
    show=format_ratio,
    write=write_share,
    # A bare number is ambiguous: both 2 and 0.02 are used for 2 %.
    strict="%",
)
"""Share from 0 to 1."""

FREQUENCY = _measured(
    *("frequency", "a frequency", parse_frequency),
    pattern=PATTERNS["frequency"],
    examples=("50 Hz",),
    show="{:g} Hz".format,
    write=write_frequency,
)
"""Frequency in hertz."""

QUEUE_SIZE = _measured(
    *("queue-size", "a size", _parse_octets),
    pattern=rf"{PATTERNS['size']}|\s*[0-9]+\s*",
    examples=("150 kB", "1514 bytes"),
    show=show_size,
    write=write_size,
    unit="bytes",
)
"""Size of a queue in bytes, which is also the unit of text without one."""


# --- plain numbers, switches ----------------------------------------------------------------


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise MisfitError(f"must be a whole number, not {quote(value)}")
    return value


def _parse_whole(text: str) -> int:
    if not text.strip().isdecimal():
        raise MisfitError(f"{quote(text)} is not a whole number")
    return int(text)


WHOLE = Quantity(
    "whole", "a whole number", int, _whole, _parse_whole, {"type": "integer"}, unit="number"
)
OCTETS = Quantity(
    *("whole", "a whole number of bytes", int, _whole, QUEUE_SIZE.parse, WHOLE.shape),
    show="{} B".format,
)
"""A small number of bytes: a plain number in files, typed with or without a unit."""


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise MisfitError(f"must be a plain number, not {quote(value)}")
    return float(value)


NUMBER = Quantity("number", "a plain number", float, _number, float, {"type": "number"})
"""A number whose unit is part of its field's name."""

_COUNTED = ("packets", "packet", "pkts", "pkt", "p", "s")


def _or_text(other: str, *words: str, before: str = "") -> Shape:
    """Return the JSON Schema of a value that may also be text; the pattern applies only to text."""
    return {"type": [other, "string"], "pattern": rf"^\s*{before}\s*({any_case(words)})\s*$"}


def _counted(unit: str, what: str) -> Quantity:
    """Return a quantity of whole numbers; their text may end in the unit that they count."""

    def parse(text: str) -> int:
        word = text.strip().lower()
        ending = next((each for each in _COUNTED if word.endswith(each)), "")
        word = word.removesuffix(ending).strip()
        if not word.isdecimal():
            raise MisfitError(f"{quote(text)} is not {what}")
        return int(word)

    def read(value: Any) -> int:
        if isinstance(value, str):
            return parse(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise MisfitError(f"must be {what}, not {quote(value)}")
        return value

    show = f"{{}} {unit}".format if unit != "number" else str
    shape = _or_text("integer", "", *_COUNTED, before="[0-9]+")
    return Quantity("count", what, int, read, parse, shape, show=show, unit=unit)


PACKETS = _counted("packets", 'a number of packets such as "100"')
COUNT = _counted("number", "a whole number")
WHOLE_SECONDS = _counted("s", "a whole number of seconds")


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise MisfitError(f"must be true or false, not {quote(value)}")
    return value


_SWITCH = {"on": True, "yes": True, "true": True, "off": False, "no": False, "false": False}


def _parse_switch(text: str, words: str = "on or off") -> bool:
    word = text.strip().lower()
    if word not in _SWITCH:
        raise MisfitError(f"must be {words}, not {quote(text)}")
    return _SWITCH[word]


FLAG = Quantity(
    *("flag", "true or false", bool, _flag),
    partial(_parse_switch, words="yes or no"),
    {"type": "boolean"},
    show=lambda value: "yes" if value else "no",
)
SWITCH = Quantity(
    *("switch", "on or off", bool),
    lambda value: _parse_switch(value) if isinstance(value, str) else _flag(value),
    _parse_switch,
    _or_text("boolean", *_SWITCH),
    show=lambda value: "on" if value else "off",
)
"""A flag of a queue discipline, which may also be text."""

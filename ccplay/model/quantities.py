"""Quantities and fields: how a setting is written, its bounds, and its meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache, partial
from itertools import islice
from math import isfinite
from typing import Annotated, Any, TypeAlias, get_origin, get_type_hints

import msgspec
from msgspec.structs import replace

from ccplay.errors import CommandError
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

# --- untrusted text in messages: quoted and shortened, with a suggestion --------------------------

_MOST_SHOWN = 20
_MOST_KNOWN = 200
_LONGEST_WORD = 100


class MisfitError(ValueError):
    """Raised for a value that is not valid in its place; the message describes a valid one."""


def quote(value: object) -> str:
    """Return a value from a file, shortened and printable: ``"cubik"``."""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    text = text if len(text) <= 60 else text[:57] + "..."
    escaped = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
    return f'"{escaped}"' if isinstance(value, str) else escaped


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``; did you mean "cubic"?``, or all known names if none is similar."""
    known = tuple(dict.fromkeys(islice(known, _MOST_KNOWN + 1)))
    if near := nearest(word, known):
        return f"; did you mean {quote(near)}?"
    names = [quote(each) if "," in each else each for each in known[:_MOST_SHOWN]]
    more = ", …" if len(known) > _MOST_SHOWN else ""
    return f" (there are: {', '.join(names)}{more})" if known else ""


@lru_cache(maxsize=1000)
def nearest(word: str, known: tuple[str, ...]) -> str:
    """Return the known name that is most similar to a word; empty if none is similar."""
    # Cached: a mistake in a part that many cases share is found again in each case.
    from difflib import get_close_matches  # noqa: PLC0415 - labs start without it

    return "".join(get_close_matches(word[:_LONGEST_WORD].lower(), known[:_MOST_KNOWN], n=1))


# --- kinds of values: how each is typed, shown, written in a file; its JSON Schema ----------------

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

    def check_type(self, value: Any) -> Any:
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


RATE = _measured(
    *("rate", "a rate", parse_rate),
    pattern=PATTERNS["rate"],
    examples=("1 Mbit/s", "1.5 Mbit/s"),
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
    examples=("20 ms", "2 s", "5 min"),
    show=format_time_us,
    write=write_time_us,
)
"""Time in microseconds."""


def _seconds(write: Callable[[float], Plain], *examples: str) -> Quantity:
    return _measured(
        *("time", "a time", lambda text: parse_time_us(text) / 1e6),
        pattern=PATTERNS["time"],
        examples=examples,
        show=_show_seconds,
        write=write,
        type=float,
    )


SECONDS = _seconds(write_seconds, "20 s", "20 ms")
"""Time in seconds, to the microsecond."""

INTERVAL = _seconds(lambda length: write_time_us(round(length * 1e6)), "200 ms", "1 s")
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


# --- the description of a setting of a command, link, queue or topology ---------------------------


class Described(msgspec.Struct, frozen=True, kw_only=True):
    """What may stand under a key of a file: its name in the model, and whether it must be there."""

    default: Any = None
    """Default value; None if the lab or the kernel chooses one. A missing key stands for it."""
    required: bool = False
    """Whether the setting must be present: ``default`` replaces a missing one; without it, an
    error."""
    name: str = ""
    """Name of the struct's field, or of the parameter; if empty, the key's own."""
    is_written: bool = True
    """Whether the key is written; False for a second key of a value."""


class Field(Described, frozen=True):
    """A setting: its quantity, its bounds, and its names for people and files.

    It annotates a field of a struct, ``Annotated[int, Field(…)]``; ``fields_of`` adds what the
    struct defines: the name, the default, and whether the setting is required.
    """

    quantity: Quantity
    meaning: str = ""
    """Meaning of the setting in one line, for editors and dialogs."""
    low: float | None = None
    high: float | None = None
    """Upper bound, inclusive; None if there is none."""
    key: str = ""
    """Key of the setting in scenario files."""
    label: str = ""
    """Label of the setting in a dialog."""
    hint: str = ""
    """Hint in a dialog: a few words, or examples."""
    choices: Mapping[str, str] = {}
    """Meanings of the few possible values by value, the usual one first, for a dialog."""
    unset: str = ""
    """Text for a missing value without ``default``: ``no limit``."""

    def read(self, value: Any) -> Any:
        """Read a value from TOML. Raises ``ValueError`` with an example."""
        return self._within(self.quantity.read(value))

    def parse(self, text: str) -> Any:
        """Read typed text: ``100``, ``5 ms``, ``on``. Raises ``ValueError``."""
        return self._within(self.quantity.parse(text))

    def check(self, value: Any) -> Any:
        """Return a value of the model in its own type. Raises ``ValueError`` if it is invalid."""
        return self._within(self.quantity.check_type(value))

    def write(self, value: Any) -> Plain:
        """Return a value for a scenario file, from which ``read`` restores it exactly."""
        return self.quantity.write(value)

    def show(self, value: Any) -> str:
        """Return a value as short text that people and ``parse`` understand."""
        return self.quantity.show(value)

    @property
    def bounds(self) -> str:
        """Both bounds as text: ``16 bytes to 65507 bytes``."""
        return f"{self.show(self.low)} to {self.show(self.high)}"

    @property
    def shape(self) -> Shape:
        """JSON Schema of the values that ``read`` accepts, with references to definitions."""
        quantity = self.quantity
        shape = {"$ref": f"#/$defs/{quantity.name}"} if quantity.name else quantity.shape
        if quantity.is_number and self.low is not None:
            shape = {**shape, "minimum": self.low, "maximum": self.high}
        return shape

    def _within(self, value: Any) -> Any:
        if self.low is None or self.high is None or self.low <= value <= self.high:
            return value
        if self.quantity.unlimited and value == 0:
            return value
        raise MisfitError(f"must be from {self.bounds}, not {self._shown(value)}")

    def _shown(self, value: Any) -> str:
        try:
            return self.show(value)
        except OverflowError:
            return "this"


@cache
def fields_of(struct: type[msgspec.Struct]) -> Mapping[str, Field]:
    """Return the fields described in a struct's annotations, by name.

    The struct's first field comes first, then those of its bases and its own.
    """
    known = {each.name: each for each in msgspec.structs.fields(struct)}
    first, hints = [*known][:1], get_type_hints(struct, include_extras=True)
    found = {}
    for name in dict.fromkeys((*first, *hints)):
        annotation = hints[name]
        marks = annotation.__metadata__ if get_origin(annotation) is Annotated else ()
        for field in (each for each in marks if isinstance(each, Field)):
            default = known[name].default
            found[name] = replace(
                field,
                name=name,
                key=field.key or name,
                default=None if default is msgspec.NODEFAULT else default,
                required=known[name].required,
            )
    return found


def check(settings: msgspec.Struct, what: str) -> None:
    """Raise ``CommandError`` if a number in a command or a link's setting is out of bounds.

    The message begins with ``what``, the owner of the number: ``flow 3``.
    """
    for name, field in fields_of(type(settings)).items():
        value = getattr(settings, name)
        if value is None or field.low is None:
            continue
        try:
            field.check(value)
        except ValueError as error:
            raise CommandError(f"{what}: {field.key}: {error}") from None

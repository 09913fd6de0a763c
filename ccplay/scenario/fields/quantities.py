"""Single values of a scenario file: each function takes one as TOML has it and returns the model's.

All raise ``MisfitError``, a ``ValueError``, saying what would fit.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import Any, TypeVar

from ccplay.assets import algorithms
from ccplay.model.values import MOST_MARK, SAMPLE_HZ
from ccplay.scenario.file.mistakes import did_you_mean, quote
from ccplay.units import (
    UnitError,
    format_rate,
    format_size,
    format_time_us,
    parse_frequency,
    parse_rate,
    parse_ratio,
    parse_size,
    parse_time_us,
)

N = TypeVar("N", int, float)

CONGESTION_CONTROLS = (
    *("reno", "cubic", "bbr", "bic", "cdg", "dctcp", "highspeed", "htcp", "hybla", "illinois"),
    *("lp", "nv", "scalable", "vegas", "veno", "westwood", "yeah"),
    *algorithms(),
)
"""All of Linux's, net/ipv4/tcp_*.c, and those that come as BPF programs.

Which of them a kernel has is known once its lab says so.
"""

RATES = (100_000, 1_000_000_000)
UDP_RATES = (1_000, 1_000_000_000)
UDP_PACKETS = (16, 65_507)
LONGEST_DELAY_US = 10_000_000
LONGEST_S = 86_400
LARGEST_TRANSFER = 10**12
MOST_STREAMS = 128
MOST_PINGS = 1_000_000


class MisfitError(ValueError):
    """A value that is not what its key asks for."""


NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,15}"
"""What traffic may be called."""
_NAME = re.compile(NAME)


def rate(value: Any) -> int:
    """Read a link's rate; ``unlimited`` is 0."""
    if value == "unlimited":
        return 0
    bits = _quantity(value, parse_rate, "a rate", "10 Mbit/s")
    return _within(bits, *RATES, "rates", format_rate)


def payload_rate(value: Any) -> int:
    """Read the rate of cross traffic, payload alone."""
    bits = _quantity(value, parse_rate, "a rate", "1 Mbit/s")
    return _within(bits, *UDP_RATES, "rates of UDP", format_rate)


def packet(value: Any) -> int:
    """Read the payload of a UDP packet."""
    amount = _quantity(value, parse_size, "a size", "1024 bytes")
    return _within(amount, *UDP_PACKETS, "packets", format_size)


def delay(value: Any) -> int:
    """Read a delay or its jitter as microseconds."""
    microseconds = _quantity(value, parse_time_us, "a time", "20 ms")
    return _within(microseconds, 0, LONGEST_DELAY_US, "delays", format_time_us)


def seconds(value: Any) -> float:
    """Read a moment or a duration."""
    microseconds = _quantity(value, parse_time_us, "a time", "20 s")
    return _within(microseconds, 0, LONGEST_S * 1_000_000, "times", _clock) / 1e6


def duration(value: Any) -> float:
    """Read a duration that is not zero."""
    if not (length := seconds(value)):
        raise MisfitError(f"{quote(value)} is no time at all")
    return length


def interval(value: Any) -> float:
    """Read the time between two pings; ping(8) itself refuses much less."""
    microseconds = _quantity(value, parse_time_us, "a time", "200 ms")
    return _within(microseconds, 10_000, 60_000_000, "intervals", format_time_us) / 1e6


def size(value: Any) -> int:
    """Read an amount of payload."""
    amount = _quantity(value, parse_size, "a size", "50 MB")
    return _within(amount, 1, LARGEST_TRANSFER, "sizes", format_size)


def loss(value: Any) -> float:
    """Read a share of packets; the percent sign is needed, as 2 and 0.02 are both meant so."""
    if isinstance(value, str) and "%" not in value:
        raise MisfitError(f'{quote(value)} is not a share such as "2 %"')
    return _quantity(value, parse_ratio, "a share", "2 %")


def sampling(value: Any) -> float:
    """Read how often to sweep."""
    hertz = _quantity(value, parse_frequency, "a frequency", "50 Hz")
    return _within(hertz, *SAMPLE_HZ, "samplings", "{:g} Hz".format)


@dataclass(frozen=True, slots=True)
class Whole:
    """A reader of whole numbers between two."""

    low: int
    high: int

    def __call__(self, value: Any) -> int:
        """Read a whole number."""
        if (
            isinstance(value, int)
            and not isinstance(value, bool)
            and self.low <= value <= self.high
        ):
            return value
        reach = f"from {self.low} to {self.high}"
        raise MisfitError(f"must be a whole number {reach}, not {quote(value)}")


def number(value: Any) -> float:
    """Read a plain number; what it counts or its unit is in the name of what it is for."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise MisfitError(f"must be a plain number, not {quote(value)}")
    return float(value)


def flag(value: Any) -> bool:
    """Read true or false."""
    if not isinstance(value, bool):
        raise MisfitError(f"must be true or false, not {quote(value)}")
    return value


def text(value: Any) -> str:
    """Read a line of text."""
    if not isinstance(value, str):
        raise MisfitError(f'must be text in quotes, such as "{quote(value)}"')
    if not value.strip() or len(value) > 200 or not value.isprintable():
        raise MisfitError("must be one line of text, 200 characters at the most")
    return value


def prose(value: Any) -> str:
    """Read text of any number of lines."""
    if not isinstance(value, str):
        raise MisfitError(f'must be text in quotes, such as "{quote(value)}"')
    return value.strip()


def name(value: Any) -> str:
    """Read the name of traffic."""
    if not isinstance(value, str):
        raise MisfitError(f'a name is text in quotes, such as "{quote(value)}"')
    if not _NAME.fullmatch(value):
        raise MisfitError(
            f"{quote(value)} is no name: up to 16 letters, digits, dots, dashes and underscores"
        )
    return value


@dataclass(frozen=True, slots=True)
class Choice:
    """A reader of one of some words."""

    what: str
    known: tuple[str, ...]

    def __call__(self, value: Any) -> str:
        """Read one of the words."""
        if value not in self.known or not isinstance(value, str):
            suggestion = did_you_mean(str(value), self.known)
            raise MisfitError(f"unknown {self.what} {quote(value)}{suggestion}")
        return value


seed = Whole(0, 2**31 - 1)
mark = Whole(0, MOST_MARK)
own_algorithms: set[str] = set()
"""Congestion controls of the user's own, which the command line has named."""


def congestion_control(value: Any) -> str:
    """Read the name of an algorithm: Linux's, one that comes as a BPF program, or the user's."""
    if isinstance(value, str) and value in own_algorithms:
        return value
    try:
        return _known_algorithm(value)
    except MisfitError as error:
        meant = str(error).endswith("?")
        if meant or not isinstance(value, str) or not _NAME.fullmatch(value):
            raise
        raise MisfitError(f"{error}; if it is your own, say --algorithm {value}.bpf.c") from None


_known_algorithm = Choice("congestion control", CONGESTION_CONTROLS)


def _quantity(value: Any, parse: Callable[[str], N], what: str, example: str) -> N:
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise MisfitError(f'{quote(value)} has no unit: write {what} such as "{example}"')
    if not isinstance(value, str):
        raise MisfitError(f'must be {what} such as "{example}", not {quote(value)}')
    try:
        return parse(value)
    except (ValueError, OverflowError) as error:
        known = f" (units: {error.known})" if isinstance(error, UnitError) else ""
        raise MisfitError(f'{quote(value)} is not {what} such as "{example}"{known}') from None


def _within(value: N, low: N, high: N, what: str, spell: Callable[[N], str]) -> N:
    if not low <= value <= high:
        raise MisfitError(
            f"{what} go from {spell(low)} to {spell(high)}, not {_spell(value, spell)}"
        )
    return value


def _spell(value: N, spell: Callable[[N], str]) -> str:
    try:
        return quote(spell(value)).strip('"')
    except OverflowError:
        return "this"


def _clock(microseconds: float) -> str:
    return "24 hours" if microseconds == LONGEST_S * 1e6 else format_time_us(microseconds)

"""Reads and writes quantities as people do: ``10 Mbit/s``, ``20 ms``, ``177669 bytes``, ``2 %``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal

_LONGEST = 1000
_NUMBER = re.compile(r"\s*([0-9]+(?:[._][0-9]+)*|\.[0-9]+)\s*(.*?)\s*$")

_RATES = {"bit/s": 1, "kbit/s": 1e3, "mbit/s": 1e6, "gbit/s": 1e9}
_TIMES_US = {"us": 1, "µs": 1, "ms": 1e3, "s": 1e6, "min": 60e6, "h": 3600e6}
_SIZES = {
    "bytes": 1,
    "byte": 1,
    "b": 1,
    "kb": 1e3,
    "mb": 1e6,
    "gb": 1e9,
    "kib": 2**10,
    "mib": 2**20,
}
_RATIOS = {"%": 0.01, "": 1}
_FREQUENCIES = {"hz": 1}
_ALIASES = {"bps": "bit/s", "kbps": "kbit/s", "mbps": "mbit/s", "gbps": "gbit/s"} | {
    unit: f"{unit}/s" for unit in ("bit", "kbit", "mbit", "gbit")
}
_BYTE_RATES = {"B/s": 8, "kB/s": 8e3, "MB/s": 8e6, "GB/s": 8e9}
"""Bits per second of units in which case tells bytes from bits: ``mb/s`` may be either."""


class UnitError(ValueError):
    """A number with a unit of another quantity; ``known`` lists the valid units."""

    def __init__(self, text: str, known: str) -> None:
        super().__init__(f"{text} (units: {known})")
        self.known = known


def any_case(words: Iterable[str]) -> str:
    """Return a regular expression that matches any of the words, in upper or lower case."""
    return "|".join(
        "".join(f"[{c}{c.upper()}]" if c.isascii() and c.isalpha() else c for c in word)
        for word in words
    )


def _exact(unit: str) -> str:
    """Return a regular expression of a number with a unit, which is one itself."""
    number = r"([0-9]+(_[0-9]+)*(\.[0-9]+(_[0-9]+)*)?|\.[0-9]+)"
    return rf"\s*{number}\s*({unit})\s*"


def _pattern(units: Iterable[str]) -> str:
    return _exact(any_case(units))


PATTERNS = {
    "rate": "|".join(
        (
            _pattern([*_RATES, *(each for each in _ALIASES if not each.endswith("bps"))]),
            _exact(r"[kKmMgG]?b[pP][sS]"),
            _exact("[kMG]?B/s"),
        )
    ),
    "time": _pattern(_TIMES_US),
    "size": _pattern(_SIZES),
    "share": _pattern(["%"]),
    "frequency": _pattern(_FREQUENCIES),
}
"""Regular expressions of accepted quantities, for other programs; a share must have its ``%``."""


def parse_rate(text: str) -> int:
    """Read ``1.5 Mbit/s``, or bytes such as ``2 MB/s``, as bits per second.

    Raises ``ValueError`` with an example.
    """
    known = ", ".join(("bit/s, kbit/s, Mbit/s, Gbit/s", *_BYTE_RATES))
    return round(_parse(text, _RATES, "a rate such as '10 Mbit/s'", known))


def parse_time_us(text: str) -> int:
    """Read ``20 ms`` as microseconds. Raises ``ValueError`` with an example."""
    return round(_parse(text, _TIMES_US, "a time such as '20 ms'", "us, ms, s, min, h"))


def parse_size(text: str) -> int:
    """Read ``50 MB`` (powers of ten) or ``64 KiB`` as bytes. Raises ``ValueError``."""
    known = "bytes, kB, MB, GB, KiB, MiB"
    return round(_parse(text, _SIZES, "a size such as '50 MB' or '177669 bytes'", known))


def parse_ratio(text: str) -> float:
    """Read ``2 %`` or ``0.02`` as a number from 0 to 1. Raises ``ValueError``."""
    ratio = _parse(text, _RATIOS, "a share such as '2 %'", "%")
    if not 0 <= ratio <= 1:
        raise ValueError(f"{text!r} is not between 0 % and 100 %")
    return ratio


def parse_frequency(text: str) -> float:
    """Read ``50 Hz`` as hertz. Raises ``ValueError`` with an example."""
    return _parse(text, _FREQUENCIES, "a frequency such as '50 Hz'", "Hz")


def format_rate(bits_per_second: float) -> str:
    """Write a rate with at most three digits: ``1.5 Mbit/s``."""
    return _format(
        bits_per_second, ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1, "bit/s"))
    )


def format_part(part: float, whole: float) -> str:
    """Write a rate as a part of another, in the unit of the whole: ``1.93 of 4 Mbit/s``."""
    text = format_rate(whole)
    scaled = part / whole * float(text.partition(" ")[0])
    return f"{scaled:.3g} of {text}" if scaled < 100 else f"{scaled:.0f} of {text}"


def format_time_us(microseconds: float) -> str:
    """Write a duration with at most three digits: ``20 ms``."""
    return _format(microseconds, ((1e6, "s"), (1e3, "ms"), (1, "µs")))


def format_size(size: float) -> str:
    """Write a number of bytes with at most three digits, in powers of ten: ``178 kB``."""
    return _format(size, ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B")))


def format_ratio(ratio: float) -> str:
    """Write a share of one as a percentage: ``2 %``."""
    return f"{ratio * 100:.3g} %"


def format_clock(seconds: float) -> str:
    """Write a moment of the session as minutes and seconds: ``01:05``."""
    return f"{int(seconds) // 60:02d}:{int(seconds) % 60:02d}"


def write_rate(bits_per_second: int) -> str:
    """Write a link's rate: ``1.5 Mbit/s``; 0 is ``unlimited``."""
    units = ((9, "Gbit/s"), (6, "Mbit/s"), (3, "kbit/s"), (0, "bit/s"))
    return _shortest(bits_per_second, units, digits=3) if bits_per_second else "unlimited"


def write_time_us(microseconds: int) -> str:
    """Write a short time: ``10 ms``."""
    units = ((3, "ms"), (0, "us")) if 0 < microseconds < 1000 else ((3, "ms"),)
    return _shortest(microseconds, units, digits=3)


def write_seconds(length: float) -> str:
    """Write a moment or a duration, to the microsecond: ``12.345 s``."""
    return f"{_scaled(round(length * 1e6), 6)} s" if abs(length) < 1e9 else f"{length} s"


def write_size(amount: int) -> str:
    """Write a number of bytes: ``10 MB``, ``64 KiB``, ``177669 bytes``."""
    for scale, unit in ((2**20, "MiB"), (2**10, "KiB")):
        if amount and amount % scale == 0 and amount % 1000:
            return f"{amount // scale} {unit}"
    return _shortest(amount, ((9, "GB"), (6, "MB"), (3, "kB"), (0, "bytes")), digits=1)


def write_share(ratio: float) -> str:
    """Write a share of packets: ``2 %``."""
    return f"{_scaled(ratio, -2)} %"


def write_frequency(hertz: float) -> str:
    """Write a frequency: ``50 Hz``."""
    return f"{_scaled(hertz, 0)} Hz"


def show_size(size: int) -> str:
    """Write a size without losing a byte: ``150 kB``, ``32 MiB``, ``1514 bytes``."""
    if size and size % 2**20 == 0:
        return f"{size // 2**20} MiB"
    exact = parse_size(format_size(size)) == size
    return format_size(size) if exact else f"{size} bytes"


def _parse(text: str, units: dict[str, float] | dict[str, int], expected: str, known: str) -> float:
    # The limit: repeated spaces take quadratic time. The smallest float has some 340 digits.
    match = _NUMBER.match(text) if len(text) <= _LONGEST else None
    unit = match[2].lower() if match else ""
    scale = units.get(_ALIASES.get(unit, unit))
    if match and units is _RATES and re.fullmatch(r"\w?B(/s|ps)", match[2]):
        scale = _BYTE_RATES.get(match[2])
    if scale is None and unit:
        raise UnitError(f"{text!r} is not {expected}", known)
    if match is None or scale is None or match[1].count(".") > 1:
        raise ValueError(f"{text!r} is not {expected}")
    number = match[1].replace("_", "")
    # Python reads an exponent exactly, whereas 7 * 0.01 is not 0.07.
    return float(f"{number}e-2") if unit == "%" else float(number) * scale


def _format(value: float, units: tuple[tuple[float, str], ...]) -> str:
    # Choose by the rounded value, or 999,999 would come out as "1000 kB".
    for scale, unit in units:
        if round(value / scale, 3 if scale > 1 else 0) >= 1 or scale == units[-1][0]:
            scaled = value / scale
            digits = 0 if scaled >= 100 else 1 if scaled >= 10 else 2
            number = f"{scaled:.{digits}f}"
            return f"{number.rstrip('0').rstrip('.') if '.' in number else number} {unit}"
    raise AssertionError("the last unit takes any value")


def _shortest(value: int, units: tuple[tuple[int, str], ...], digits: int) -> str:
    """Write ``value`` in the largest unit that needs at most ``digits`` after the point."""
    for power, unit in units:
        text = _scaled(value, power)
        if value >= 10**power and len(text.partition(".")[2]) <= digits:
            return f"{text} {unit}"
    power, unit = units[-1]
    return f"{_scaled(value, power)} {unit}"


def _scaled(value: float, power: int) -> str:
    """Write ``value`` divided by ten to the ``power``, exactly, without an exponent."""
    text = f"{Decimal(repr(value)).scaleb(-power):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text

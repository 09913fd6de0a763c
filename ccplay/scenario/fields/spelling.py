"""Single values as a scenario file writes them: ``quantities`` backwards, to the last digit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

from ccplay.model.base import Option
from ccplay.model.disciplines import DISCIPLINES
from ccplay.model.values import Qdisc, TrafficClass
from ccplay.scenario.fields import quantities

Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain]"
"""A value as TOML has it."""


_LONGEST_LINE = 200
"""What ``quantities.text`` takes."""


def rate(bits_per_second: int) -> str:
    """Write a link's rate: ``1.5 Mbit/s``; 0 is ``unlimited``."""
    units = ((9, "Gbit/s"), (6, "Mbit/s"), (3, "kbit/s"), (0, "bit/s"))
    return _shortest(bits_per_second, units, digits=3) if bits_per_second else "unlimited"


def time_us(microseconds: int) -> str:
    """Write a short time: ``10 ms``."""
    units = ((3, "ms"), (0, "us")) if 0 < microseconds < 1000 else ((3, "ms"),)
    return _shortest(microseconds, units, digits=3)


def seconds(length: float) -> str:
    """Write a moment or a duration, to the microsecond: ``12.345 s``."""
    return f"{_scaled(round(length * 1e6), 6)} s" if abs(length) < 1e9 else f"{length} s"


def size(amount: int) -> str:
    """Write a number of bytes: ``10 MB``, ``64 KiB``, ``177669 bytes``."""
    for scale, unit in ((2**20, "MiB"), (2**10, "KiB")):
        if amount and amount % scale == 0 and amount % 1000:
            return f"{amount // scale} {unit}"
    return _shortest(amount, ((9, "GB"), (6, "MB"), (3, "kB"), (0, "bytes")), digits=1)


def share(ratio: float) -> str:
    """Write a share of packets: ``2 %``."""
    return f"{_scaled(ratio, -2)} %"


def frequency(hertz: float) -> str:
    """Write how often something happens: ``50 Hz``."""
    return f"{_scaled(hertz, 0)} Hz"


def queue(qdisc: Qdisc) -> dict[str, Plain]:
    """Write a queue discipline: its kind and the parameters that were said."""
    known = DISCIPLINES[qdisc.kind].parameters if qdisc.kind in DISCIPLINES else ()
    units = {parameter.name: parameter.unit for parameter in known}
    options = {name: _option(value, units.get(name)) for name, value in qdisc.options.items()}
    return {"kind": qdisc.kind, **options}


def classes(at_link: Sequence[TrafficClass]) -> list[Plain]:
    """Write the classes of a link; none of them is one queue."""
    return [_class(each) for each in at_link]


def value(read: Callable[[Any], Any], value: Any) -> Plain:
    """Write a value so that ``read``, a function of ``quantities``, gives it back."""
    plain: Plain = _WRITERS[read](value) if read in _WRITERS else value
    return plain


def line(text: str) -> str:
    """Write a line of text, cut to the length that ``quantities.text`` takes."""
    return text if len(text) <= _LONGEST_LINE else text[: _LONGEST_LINE - 1] + "…"


def _class(each: TrafficClass) -> dict[str, Plain]:
    said: dict[str, Plain] = {"name": each.name, "share": share(each.share)}
    if each.traffic:
        said["traffic"] = list(each.traffic)
    if each.qdisc is not None:
        said["queue"] = queue(each.qdisc)
    return said


def _option(value: Option, unit: str | None) -> Option:
    if isinstance(value, str):
        return value
    match unit:
        case "us":
            return time_us(int(value))
        case "bytes":
            return size(int(value))
        case "bit/s":
            return rate(int(value))
    return value


def _shortest(value: int, units: tuple[tuple[int, str], ...], digits: int) -> str:
    """Write ``value`` in the largest unit that needs no more than ``digits`` after the point."""
    for power, unit in units:
        text = _scaled(value, power)
        if value >= 10**power and len(text.partition(".")[2]) <= digits:
            return f"{text} {unit}"
    power, unit = units[-1]
    return f"{_scaled(value, power)} {unit}"


def _scaled(value: float, power: int) -> str:
    """Write ``value`` over ten to the ``power``, exactly, without an exponent."""
    text = f"{Decimal(repr(value)).scaleb(-power):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


_WRITERS: dict[Callable[[Any], Any], Callable[[Any], Plain]] = {
    quantities.rate: rate,
    quantities.payload_rate: rate,
    quantities.packet: size,
    quantities.delay: time_us,
    quantities.interval: lambda length: time_us(round(length * 1e6)),
    quantities.duration: seconds,
    quantities.seconds: seconds,
    quantities.size: size,
    quantities.loss: share,
    quantities.sampling: frequency,
    quantities.text: line,
}
"""By the function that reads a value: the one that writes it; the others read what TOML has."""

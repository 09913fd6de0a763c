"""What moves a link over time, as arrays that a process of the lab can map.

A content has opportunities to send or steps of the rate, and steps of delay and of loss. A step is
a value from a moment until the next step; each list repeats after its own period.
"""

from __future__ import annotations

import hashlib
import struct
from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import msgspec

from ccplay.errors import CcplayError

OPPORTUNITY = 1504
"""Bytes of an opportunity: ``PACKET_SIZE`` of mahimahi's src/frontend/link_queue.hh, an IP packet
of 1500 bytes behind the 4 bytes that a TUN device puts before it. Its manual says 1500."""

LONGEST_US = 2 * 86_400 * 1_000_000
"""Longest trace in microseconds: two days."""

MOST_ENTRIES = 30_000_000
"""Most opportunities or steps of a content."""

MOST_BYTES = 512 << 20
"""Most bytes of contents that a process keeps; the file of a day has about 50 MB."""

MOST_RATE = 100_000_000_000
"""Greatest rate of a step in bits per second."""

_MAGIC = b"ccplaytrace1"
_HEAD = struct.Struct("=12s4xQdd")
"""Format of the head: magic, period of the opportunities in ms, rate and burst of a policer."""
_PART = struct.Struct("=QQ")
"""Format before each array: its number of entries, and its period in microseconds."""


class TraceError(CcplayError):
    """Raised for a trace that is wrong: file, line and reason."""

    exit_code = 2


class Steps(msgspec.Struct):
    """Values that each hold from a moment until the next; the last until the period's end."""

    times_us: Sequence[int]
    values: Sequence[float]
    period_us: int

    def __len__(self) -> int:
        """Return the number of steps."""
        return len(self.values)

    def spans(self) -> Iterator[tuple[int, int, float]]:
        """Yield when each value begins and ends to hold, and the value."""
        return zip(self.times_us, [*self.times_us[1:], self.period_us], self.values, strict=True)


def steps(times_us: Sequence[int], values: Sequence[float], period_us: int) -> Steps:
    """Return steps of plain numbers; the first holds from the beginning."""
    return Steps(array("Q", [0, *times_us[1:]]), array("d", values), period_us)


def no_steps() -> Steps:
    """Return steps without any value."""
    return Steps(array("Q"), array("d"), 0)


class Content(msgspec.Struct):
    """What a trace or a model says of a link."""

    opportunities: Sequence[int] = msgspec.field(default_factory=lambda: array("I"))
    """Moments in ms at which ``OPPORTUNITY`` bytes may leave; empty if the rate has steps."""
    period_ms: int = 0
    """Period of the opportunities in ms: the last of them, or a model's length."""
    rates: Steps = msgspec.field(default_factory=no_steps)
    """Rate in bits per second."""
    carried: Sequence[float] = msgspec.field(default_factory=lambda: array("d"))
    """Bits carried until each step of the rate, and in its period; ``pack`` computes them."""
    delays: Steps = msgspec.field(default_factory=no_steps)
    """One-way delay in microseconds."""
    losses: Steps = msgspec.field(default_factory=no_steps)
    """Share of packets lost."""
    policer: tuple[float, float] = (0.0, 0.0)
    """Rate of a policer's tokens in bits per second, and the size of its bucket in bytes."""

    @property
    def paces(self) -> bool:
        """Whether it decides when packets leave or are dropped: all but delay and loss alone."""
        return bool(len(self.opportunities) or len(self.rates) or self.policer[0])

    @property
    def impairs(self) -> bool:
        """Whether it delays or loses packets where the link ends."""
        return bool(len(self.delays) or len(self.losses))

    @property
    def length_s(self) -> float:
        """Seconds until it repeats: the longest of its periods."""
        parts = (self.rates, self.delays, self.losses)
        return max(self.period_ms / 1e3, *(each.period_us / 1e6 for each in parts))

    @property
    def mean_bps(self) -> float | None:
        """Mean capacity in bits per second; None if the link keeps its own rate."""
        if len(self.opportunities):
            return len(self.opportunities) * OPPORTUNITY * 8e3 / self.period_ms
        if len(self.rates):
            return _mean(self.rates)
        return self.policer[0] or None

    @property
    def mean_delay_us(self) -> float | None:
        """Mean one-way delay; None if the link keeps its own."""
        return _mean(self.delays) if len(self.delays) else None


def _mean(of: Steps) -> float:
    return sum((end - begin) * value for begin, end, value in of.spans()) / of.period_us


def carried(rates: Steps) -> Sequence[float]:
    """Return the bits that a rate with steps carries until each step, and in its period."""
    bits = ((end - begin) * rate / 1e6 for begin, end, rate in rates.spans())
    return array("d", accumulate(bits, initial=0.0))


def pack(content: Content) -> bytes:
    """Return a content as bytes, which ``unpack`` reads without copying."""
    parts = [_HEAD.pack(_MAGIC, content.period_ms, *content.policer)]
    whole: list[tuple[Any, int]] = [(content.opportunities, 0)]
    if len(content.rates) and not len(content.carried):
        content.carried = carried(content.rates)
    whole.append((content.carried, 0))
    for each in (content.rates, content.delays, content.losses):
        whole += [(each.times_us, each.period_us), (each.values, 0)]
    for numbers, period in whole:
        image = bytes(numbers)
        parts += [_PART.pack(len(numbers), period), image, bytes(-len(image) % 8)]
    return b"".join(parts)


def unpack(image: Any, *, checked: bool = False) -> Content:
    """Return the content in bytes or in mapped memory. Raises ``TraceError`` if it is invalid.

    ``checked`` is whether this was found out before; then its numbers are not read.
    """
    view = memoryview(image).cast("B")
    try:
        content = _unpack(view)
        if not checked:
            check(content)
    except (struct.error, TypeError, ValueError, IndexError) as error:
        raise TraceError(f"not a trace of this version: {error}") from None
    return content


def _unpack(view: memoryview) -> Content:
    found: list[Any] = []
    magic, period_ms, *policer = _HEAD.unpack_from(view)
    if magic != _MAGIC:
        raise ValueError("it begins otherwise")
    at, periods = _HEAD.size, []
    for kind, size in (("I", 4), ("d", 8), *(("Q", 8), ("d", 8)) * 3):
        count, period_us = _PART.unpack_from(view, at)
        at += _PART.size
        if count > MOST_ENTRIES or at + count * size > len(view):
            raise ValueError("it ends early")
        found.append(view[at : at + count * size].cast(kind))  # type: ignore[call-overload]
        periods.append(period_us)
        at += count * size + -(count * size) % 8
    return Content(
        opportunities=found[0],
        period_ms=period_ms,
        carried=found[1],
        rates=Steps(found[2], found[3], periods[2]),
        delays=Steps(found[4], found[5], periods[4]),
        losses=Steps(found[6], found[7], periods[6]),
        policer=(policer[0], policer[1]),
    )


def check(content: Content) -> None:
    """Raise ``ValueError`` unless a clock can run by a content: finite, in order, not standing."""
    times = content.opportunities
    if len(times) and not (0 < times[-1] <= content.period_ms <= LONGEST_US // 1000):
        raise ValueError("its opportunities have no length")
    bounds = ((content.rates, MOST_RATE), (content.delays, 10_000_000), (content.losses, 1.0))
    for each, most in bounds:
        if len(each.times_us) != len(each.values):
            raise ValueError("its steps are not whole")
        if not len(each):
            continue
        if not (each.times_us[0] == 0 and each.times_us[-1] < each.period_us <= LONGEST_US):
            raise ValueError("its steps have no length")
        if not all(0 <= value <= most for value in each.values):
            raise ValueError("a value is out of bounds")
    if len(content.rates) and not any(content.rates.values):
        raise ValueError("its rate is always 0")
    if len(content.carried) and list(content.carried) != list(carried(content.rates)):
        raise ValueError("its sums are wrong")
    if not (0 <= content.policer[0] <= MOST_RATE and 0 <= content.policer[1] <= 1e12):
        raise ValueError("its policer is out of bounds")


def digest_of(image: bytes) -> str:
    """Return the SHA-256 of a packed content."""
    return hashlib.sha256(image).hexdigest()

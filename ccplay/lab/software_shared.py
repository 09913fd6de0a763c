"""What the lab shares with the process of disciplines: messages, counters, sojourn times."""

from __future__ import annotations

import asyncio
import mmap
import os
import struct
from collections.abc import Callable, Mapping, Sequence

import msgspec

from ccplay.lab import child
from ccplay.lab.qdisc_counters import Counts
from ccplay.lab.traces import MappedTrace
from ccplay.model.base import Event, Option
from ccplay.model.events import SojournTimes

# --- A histogram of times: eight places for each doubling, so that a time is known to about 6 % ---

_BITS = 3
_MOST = 24
"""Number of doublings above 8 us: everything above 134 s is in the last place."""

PLACES = (_MOST + 1) << _BITS


def place(microseconds: int) -> int:
    """Return the place of a time in microseconds."""
    if microseconds < 1 << _BITS:
        return max(0, microseconds)
    octave = microseconds.bit_length() - _BITS - 1
    if octave >= _MOST:
        return PLACES - 1
    return ((octave + 1) << _BITS) + (microseconds >> octave) - (1 << _BITS)


def bounds(at: int) -> tuple[int, int]:
    """Return the bounds in microseconds of the times in a place."""
    octave, step = divmod(at, 1 << _BITS)
    if octave == 0:
        return step, step + 1
    low = (step + (1 << _BITS)) << (octave - 1)
    return low, low + (1 << (octave - 1))


def percentile(counts: Sequence[int], share: float) -> float | None:
    """Return the time in microseconds that ``share`` of all do not exceed; None without any."""
    left = share * sum(counts)
    if not sum(counts):
        return None
    for at, count in enumerate(counts):
        if count and count >= left:
            low, high = bounds(at)
            return low + (high - low) * left / count
        left -= count
    return float(bounds(len(counts) - 1)[1])


# --- the current counters of all queues, in memory that processes share ---------------------------
# Each queue has a slot of 64-bit numbers there. The process writes the slots about once a
# millisecond while packets move, and the lab reads them in a sweep, without a message. A slot's
# version is odd while it is being written, so a reader gets numbers of one moment.

SLOTS = 256
"""Largest number of queues in software in a lab."""

MOST_STATISTICS = 24
"""Largest number of values that a discipline reports."""

_COUNTS = 10
_WORDS = 256
"""Words of a slot: version, counters, statistics, histogram of sojourn times, and last ``busy``."""
_STATISTICS_AT, _HISTOGRAM_AT = _COUNTS, _COUNTS + MOST_STATISTICS
_TRIES = 100

_COUNTERS = struct.Struct(f"={len(Counts._fields)}Q")


class SharedCounters:
    """The shared memory; ``descriptor`` is its file, for a restarted process."""

    def __init__(self, descriptor: int | None = None) -> None:
        """Map the memory of a descriptor, or new memory."""
        size = SLOTS * _WORDS * 8
        if descriptor is None:
            descriptor = os.memfd_create("queues")
            os.ftruncate(descriptor, size)
        self.descriptor = descriptor
        self._size = size
        self._words = memoryview(mmap.mmap(descriptor, size)).cast("Q")

    def slot(self, number: int) -> Slot:
        """Return the slot of a queue. Raises ``IndexError`` beyond the last."""
        if not 0 <= number < SLOTS:
            raise IndexError(f"at most {SLOTS} links can have a queue in software")
        return Slot(self._words[number * _WORDS : (number + 1) * _WORDS])

    def last_words(self) -> int:
        """Return a descriptor to which the process of disciplines writes its last words."""
        os.lseek(self.descriptor, self._size, os.SEEK_SET)
        return self.descriptor

    def take_last_words(self) -> str:
        """Return the last words of a process that has ended, and forget them."""
        words = os.pread(self.descriptor, 1 << 16, self._size)
        os.ftruncate(self.descriptor, self._size)
        return words.decode(errors="replace")


class Slot:
    """The numbers of one queue."""

    __slots__ = ("_bytes", "_words")

    def __init__(self, words: memoryview) -> None:
        self._words = words
        self._bytes = words.cast("B")

    @property
    def busy(self) -> memoryview:
        """One word: 1 while a discipline of the user computes, otherwise 0."""
        return self._words[-1:]

    def clear(self) -> None:
        """Reset all numbers."""
        for place in range(len(self._words)):
            self._words[place] = 0

    def write(self, counts: Sequence[int], statistics: Sequence[int]) -> None:
        """Write counters and statistics, none of them negative."""
        words, count = self._words, len(statistics)
        words[0] += 1
        _COUNTERS.pack_into(self._bytes, 8, *counts)
        if count:
            struct.pack_into(f"={count}Q", self._bytes, _STATISTICS_AT * 8, *statistics)
        words[0] += 1

    def count_sojourn(self, sojourn_us: int) -> None:
        """Count a packet with this sojourn time in the histogram."""
        self._words[_HISTOGRAM_AT + place(sojourn_us)] += 1

    def read(self, statistics: int) -> tuple[Counts, list[int]]:
        """Return the counters, and the first ``statistics`` statistics, all of one moment."""
        words = self._words
        for _ in range(_TRIES):
            version = words[0]
            counts = Counts(*words[1 : 1 + len(Counts._fields)])
            numbers = words[_STATISTICS_AT : _STATISTICS_AT + statistics].tolist()
            if version % 2 == 0 and words[0] == version:
                break
        return counts, numbers

    def histogram(self) -> list[int]:
        """Return the number of packets in each place of the histogram."""
        return self._words[_HISTOGRAM_AT : _HISTOGRAM_AT + PLACES].tolist()


# --- reports the sojourn times of packets in software each second, by link and discipline ---------

EACH_S = 1.0
"""Seconds between two reports of sojourn times."""

_SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
"""Quantiles of a second's sojourn times that are variables of the queue, by name."""


class Sojourns:
    """The growth of links' histograms since the last report."""

    def __init__(self) -> None:
        self._before: dict[int, Sequence[int]] = {}
        """Each link's histogram at the last count, by the link's number."""
        self._gained: dict[tuple[str, str], list[int]] = {}
        """Histograms of the packets since the last report, by link and discipline."""
        self._recent: dict[str, Mapping[str, int]] = {}

    def count(self, number: int, link: str, kind: str, now: Sequence[int]) -> None:
        """Count the growth of a link's histogram since the last call as packets of ``kind``."""
        before, self._before[number] = self._before.get(number), now
        if before is None:
            before = [0] * len(now)
        # A restarted process begins at 0.
        gained = [max(0, each - past) for each, past in zip(now, before, strict=True)]
        if any(gained):
            known = self._gained.get((link, kind), [0] * len(now))
            self._gained[link, kind] = [a + b for a, b in zip(known, gained, strict=True)]

    def recent(self, link: str) -> Mapping[str, int]:
        """Return percentiles of a link's last second with packets, by name of the variable."""
        return self._recent.get(link, {})

    def report(self, t: float) -> list[SojournTimes]:
        """Return the sojourn times counted since the last call."""
        gained, self._gained = self._gained, {}
        for (link, _), counts in gained.items():
            self._recent[link] = {
                f"queue_sojourn_{name}_us": round(found)
                for name, share in _SHARES.items()
                if (found := percentile(counts, share)) is not None
            }
        return [_event(t, *names, counts) for names, counts in gained.items()]


async def report_sojourns(
    newest: Callable[[float], list[SojournTimes]],
    emit: Callable[[Event], None],
    clock: Callable[[], float],
) -> None:
    """Report sojourn times each second, and once more when cancelled.

    ``newest`` returns those of packets since its last call.
    """

    def report() -> None:
        for event in newest(clock()):
            emit(event)

    try:
        while True:
            await asyncio.sleep(EACH_S)
            report()
    finally:
        report()


def _event(t: float, link: str, kind: str, counts: Sequence[int]) -> SojournTimes:
    places = [place for place, count in enumerate(counts) if count]
    return SojournTimes(
        t=t,
        link=link,
        kind=kind,
        upto_us=[bounds(place)[1] for place in places],
        packets=[counts[place] for place in places],
    )


# --- requests to the process of disciplines in software, and its replies --------------------------


class DisciplineRequest(child.Request, frozen=True, omit_defaults=True):
    """A request about one queue. ``open`` binds it, so that packets wait; ``begin`` sends them.

    ``change`` sets rate and discipline while packets wait. ``pass`` sends all of them at once, in
    the order of their arrival, and later ones as they arrive; ``close`` unbinds the queue.
    """

    kind: str = ""
    source: str = ""
    """Text of the file, for one of the user's own disciplines."""
    options: dict[str, Option] = msgspec.field(default_factory=dict)
    version: int = 0
    """Number of the discipline that is opened or changed to, assigned by the lab."""
    rate: int = 0
    """Rate of the link in bits per second."""
    course: MappedTrace | None = None
    """What moves the link; None if its rate is fixed."""
    busy_s: float = 0.0
    """Seconds for which the link is still busy with packets in the kernel."""


class DisciplineReply(child.Reply, frozen=True, omit_defaults=True):
    """A report of the process of disciplines."""

    fault: str = ""
    """Fault of a discipline that a FIFO has replaced, with the line of the source."""
    version: int = 0
    """Version of the discipline that failed."""
    printed: str = ""
    """Lines that a discipline of the user has printed."""
    statistics: list[str] = msgspec.field(default_factory=list)
    """Names of a discipline's values, in the order of its ``SharedCounters``."""

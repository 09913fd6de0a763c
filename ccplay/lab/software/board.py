"""Memory that the lab shares with the process of disciplines: the current counters of all queues.

Each queue has a slot of 64-bit numbers there. The process writes the slots about once a millisecond
while packets move, and the lab reads them in a sweep, without a message. A slot's version is odd
while it is being written, so a reader gets numbers of one moment.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Sequence

from ccplay.lab.queues.reading import Counts
from ccplay.lab.software import histogram

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


class Board:
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
        self._words[_HISTOGRAM_AT + histogram.place(sojourn_us)] += 1

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
        return self._words[_HISTOGRAM_AT : _HISTOGRAM_AT + histogram.PLACES].tolist()

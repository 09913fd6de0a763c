"""The queues of one link in a sweep, and how exactly it keeps its rate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias, cast

import msgspec

from ccplay.lab.queues.statistics import PASSAGE, Monotonic, QdiscCounters, Reading, Totals
from ccplay.model.samples import QdiscSamples

# --- the queues of one link in a sweep: a row for the link, and one for each of its classes -------

Row: TypeAlias = tuple[str, str, int, int, int, int | None, int, int, int, int]
"""The fields of ``QdiscSamples`` in their order."""

_PASSAGE, _SOFTWARE = "passage", "software"
"""Names of the counters of packets that have waited in software, and of the queue in software."""

_OWN = ""
"""Name of the counters of the link's own queue, which belongs to no class."""


class LinkQueues:
    """Totals of a link's queues, removed ones included, so that the link's counters only grow."""

    def __init__(self, link: str) -> None:
        self.names: dict[int, str] = {}
        """Names of classes by handle; empty if the link has one queue."""
        self.marks: Callable[[], int] | None = None
        """Function that returns how many packets were marked so far in front of the link's
        queues."""
        self.software: Callable[[], Reading | None] | None = None
        """Function that reads the discipline in software in front of the link; None if there is
        none."""
        self._read: Reading | None = None
        self._before: Reading | None = None
        self._link = link
        self._counters: dict[str, Monotonic] = {}

    def rows(self, found: Mapping[int, QdiscCounters]) -> list[Row]:
        """Return the rows of a reading; the link's own comes first."""
        if not self.names:
            return [self._row_of_one(found)]
        named = [(name, found[each]) for each, name in self.names.items() if each in found]
        if not named:
            return []
        own = [self._count(name, now) for name, now in named]
        readings = [now for _, now in named]
        rows = [self._own_row("htb", readings)]
        for (name, now), counter in zip(named, own, strict=True):
            rows.append(_row(f"{self._link} {name}", now.kind, (now,), (counter,)))
        return rows

    def own(self, found: Mapping[int, QdiscCounters]) -> list[Mapping[str, int]]:
        """Return the own values of each row's discipline.

        Disciplines of classes are not added up: the link's own row is empty.
        """
        if not self.names:
            read = self._read
            return [_kernels(found).own if read is None else self._statistics(read)]
        named = [found[each].own for each in self.names if each in found]
        return [{}, *named] if named else []

    def _row_of_one(self, found: Mapping[int, QdiscCounters]) -> Row:
        """Return the row of a link with one queue: the kernel's plus one in software before it.

        Packets that have waited in software pass a separate queue in the kernel, which counts them
        as sent.
        """
        kernels = _kernels(found)
        self._count(_OWN, kernels)
        readings = [kernels]
        if (passage := found.get(PASSAGE)) is not None and passage is not kernels:
            self._count(_PASSAGE, passage)
            readings.append(passage)
        self._read = self.software() if self.software is not None else None
        if self._read is None:
            return self._own_row(kernels.kind, readings)
        software = _counters(self._read)
        # The counters continue when another discipline takes over: another kind is no restart.
        self._count(_SOFTWARE, software._replace(kind=_SOFTWARE))
        return self._own_row(software.kind, [*readings, software])

    def _statistics(self, read: Reading) -> Mapping[str, int]:
        """Return the own values of a discipline in software, and the mean sojourn time.

        The mean is that of the packets sent since the last reading.
        """
        before, self._before = self._before, read
        if before is None or before.generation != read.generation:
            return read.statistics
        packets = read.counts.packets - before.counts.packets
        if packets <= 0:
            return read.statistics
        waited = (read.counts.sojourn_us - before.counts.sojourn_us) // packets
        return {**read.statistics, "queue_sojourn_us": waited}

    def _own_row(self, kind: str, readings: Sequence[QdiscCounters]) -> Row:
        marks = None if self.marks is None else self.marks()
        return _row(self._link, kind, readings, self._counters.values(), marks)

    def _count(self, name: str, now: QdiscCounters) -> Monotonic:
        counter = self._counters.get(name)
        if counter is None:
            counter = self._counters[name] = Monotonic()
        counter.add(now)
        return counter


def _kernels(found: Mapping[int, QdiscCounters]) -> QdiscCounters:
    """Return the kernel's queue of a link without classes, not that for packets from software."""
    if len(found) == 1:
        return next(iter(found.values()))
    return next(now for each, now in found.items() if each != PASSAGE)


def _counters(read: Reading) -> QdiscCounters:
    """Return the counters of a discipline in software, without what the kernel counts as sent."""
    counts = read.counts
    return QdiscCounters(
        handle=read.generation,
        kind=read.kind,
        bytes=0,
        packets=0,
        qlen=counts.qlen,
        backlog=counts.backlog,
        drops=counts.drops,
        requeues=0,
        overlimits=0,
        ecn_marks=counts.marks,
    )


def _row(
    name: str,
    kind: str,
    now: Sequence[QdiscCounters],
    counters: Iterable[Monotonic],
    marks_before: int | None = None,
) -> Row:
    """Return a row of sums; ``marks_before`` packets were marked in front of the queues."""
    totals = [each.total for each in counters]
    if len(now) == 1 == len(totals):
        # Most links have one queue, and adding up takes longer than reading it.
        only, total = now[0], totals[0]
        backlog, qlen, counts_marks = only.backlog, only.qlen, only.ecn_marks is not None
    else:
        total = cast("Totals", tuple(map(sum, zip(*totals, strict=True))))
        backlog, qlen = sum(each.backlog for each in now), sum(each.qlen for each in now)
        counts_marks = any(each.ecn_marks is not None for each in now)
    size, packets, drops, requeues, overlimits, marks = total
    if marks_before is not None:
        marks, counts_marks = marks + marks_before, True
    own_marks = marks if counts_marks else None
    return (name, kind, backlog, qlen, drops, own_marks, overlimits, requeues, size, packets)


# --- accuracy of bottleneck rates, measured while packets were always waiting ---------------------

_FRAME = 1514
_FRAMES = 100
"""Fewest frames over which a rate is measured, so that one more or less is at most 1 %."""

_LEAST_S = 0.5
"""Shortest interval in seconds: a sweep reads a queue up to 2 ms late, which is 0.4 % of it."""

_LATEST_S = 0.002

_SURPLUS = 1.25
"""Factor by which a backlog must exceed what can leave until the next sweep, so that the queue was
never empty in between."""

_OWN_RATE = ("tbf", "cake", "cake.py")
"""Disciplines with a rate of their own, which may be lower than the link's."""


class _Busy(msgspec.Struct):
    """An interval in which a queue was never empty."""

    rate: int
    since: float
    bytes: int
    """Bytes that had left by the interval's beginning."""
    last: float
    backlog: int


class DrainMeter:
    """Measures from sweeps: call ``take`` for each, and read ``ratio`` from time to time."""

    def __init__(self) -> None:
        self._busy: dict[str, _Busy] = {}
        self._ratios: list[float] = []

    def take(
        self, t: float, took_s: float, samples: QdiscSamples | None, rates: Mapping[str, int]
    ) -> None:
        """Process a sweep that began at ``t`` and took ``took_s``.

        ``rates`` are those of links, in bits per second.
        """
        if samples is None:
            return
        kinds = dict(zip(samples.link, samples.kind, strict=True))
        rows = zip(samples.link, samples.backlog, samples.bytes, strict=True)
        for link, backlog, size in rows:
            rate = rates.get(link, 0)
            shaped = any(
                kinds[each] in _OWN_RATE for each in kinds if each.partition(" ")[0] == link
            )
            if took_s > _LATEST_S or not rate or shaped:
                self._busy.pop(link, None)
            else:
                self._take(link, rate, _Busy(rate, t, size, t, backlog))

    def ratio(self) -> float | None:
        """Return the worst ratio of measured to set rate since the last call; None without any.

        The worst is the one farthest from 1.
        """
        worst = max(self._ratios, key=lambda each: abs(each - 1), default=None)
        self._ratios.clear()
        return worst

    def _take(self, link: str, rate: int, now: _Busy) -> None:
        busy = self._busy.get(link)
        if busy is None or busy.rate != rate:
            self._busy[link] = now
            return
        drained = rate / 8 * (now.last - busy.last)
        if busy.backlog < _SURPLUS * drained:
            self._busy[link] = now
            return
        busy.last, busy.backlog = now.last, now.backlog
        length = now.last - busy.since
        expected = rate / 8 * length
        if length >= _LEAST_S and expected >= _FRAMES * _FRAME:
            self._ratios.append((now.bytes - busy.bytes) / expected)
            self._busy[link] = now

"""Totals of a queue's counters, which keep growing when the discipline is replaced."""

from __future__ import annotations

from typing import TypeAlias

from ccplay.lab.queues.statistics import QdiscCounters

Totals: TypeAlias = tuple[int, int, int, int, int, int]


class Monotonic:
    """The totals of one queue's counters."""

    __slots__ = ("_before", "_last", "total")

    def __init__(self) -> None:
        self.total: Totals = (0, 0, 0, 0, 0, 0)
        """Bytes, packets, drops, requeues, overlimits and marks of all disciplines read so far."""
        self._last: QdiscCounters | None = None
        self._before = (0, 0, 0, 0, 0, 0)

    def add(self, now: QdiscCounters) -> Totals:
        """Add a reading and return the ``total``."""
        last = self._last
        if last is not None and (
            now.handle != last.handle
            or now.kind != last.kind
            or now.bytes < last.bytes
            or now.drops < last.drops
        ):
            self._before = self._sum(last)
        self._last = now
        self.total = self._sum(now)
        return self.total

    def _sum(self, counters: QdiscCounters) -> Totals:
        size, packets, drops, requeues, overlimits, marks = self._before
        return (
            size + counters.bytes,
            packets + counters.packets,
            drops + counters.drops,
            requeues + counters.requeues,
            overlimits + counters.overlimits,
            marks + (counters.ecn_marks or 0),
        )

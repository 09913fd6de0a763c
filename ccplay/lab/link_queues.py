"""The queues of one link in a sweep: a row for the link, and one for each class that shares it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from ccplay.lab.monotonic import Monotonic
from ccplay.lab.qdisc_stats import QdiscCounters

Row: TypeAlias = tuple[str, str, int, int, int, int | None, int, int, int, int]
"""The fields of ``QdiscSamples`` in their order."""

_OWN = ""
"""Stands for the link's own queue, which is of no class."""


class LinkQueues:
    """What a link's queues have counted, gone ones included: the link's counters only grow."""

    def __init__(self, link: str) -> None:
        self.names: dict[int, str] = {}
        """Classes by their handle; none means that the link has one queue."""
        self._link = link
        self._counters: dict[str, Monotonic] = {}

    def rows(self, found: Mapping[int, QdiscCounters]) -> list[Row]:
        """Return the rows for what was read; the link's own comes first."""
        if not self.names:
            now = next(iter(found.values()))
            self._count(_OWN, now)
            return [_row(self._link, now.kind, (now,), self._counters.values())]
        named = [(name, found[each]) for each, name in self.names.items() if each in found]
        if not named:
            return []
        own = [self._count(name, now) for name, now in named]
        readings = [now for _, now in named]
        rows = [_row(self._link, "htb", readings, self._counters.values())]
        for (name, now), counter in zip(named, own, strict=True):
            rows.append(_row(f"{self._link} {name}", now.kind, (now,), (counter,)))
        return rows

    def _count(self, name: str, now: QdiscCounters) -> Monotonic:
        counter = self._counters.get(name)
        if counter is None:
            counter = self._counters[name] = Monotonic()
        counter.add(now)
        return counter


def _row(name: str, kind: str, now: Iterable[QdiscCounters], counters: Iterable[Monotonic]) -> Row:
    """Add readings and counters up."""
    totals = [each.total for each in counters]
    size, packets, drops, requeues, overlimits, marks = (
        totals[0] if len(totals) == 1 else map(sum, zip(*totals, strict=True))
    )
    return (
        name,
        kind,
        sum(each.backlog for each in now),
        sum(each.qlen for each in now),
        drops,
        None if all(each.ecn_marks is None for each in now) else marks,
        overlimits,
        requeues,
        size,
        packets,
    )

"""Reports the sojourn times of packets in software each second, by link and discipline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from ccplay.lab.software import histogram
from ccplay.model.base import Event
from ccplay.model.events import SojournTimes

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

    def take(self, t: float) -> list[SojournTimes]:
        """Return the sojourn times counted since the last call."""
        gained, self._gained = self._gained, {}
        for (link, _), counts in gained.items():
            self._recent[link] = {
                f"queue_sojourn_{name}_us": round(found)
                for name, share in _SHARES.items()
                if (found := histogram.percentile(counts, share)) is not None
            }
        return [_event(t, *names, counts) for names, counts in gained.items()]


class Source(Protocol):
    """The source of sojourn times: ``client.Software``."""

    def sojourn_times(self, t: float) -> list[SojournTimes]:
        """Return the sojourn times of packets since the last call."""


async def report(source: Source, emit: Callable[[Event], None], clock: Callable[[], float]) -> None:
    """Report sojourn times each second, and once more when cancelled."""
    try:
        while True:
            await asyncio.sleep(EACH_S)
            _emit_all(source, emit, clock())
    finally:
        _emit_all(source, emit, clock())


def _emit_all(source: Source, emit: Callable[[Event], None], now: float) -> None:
    for event in source.sojourn_times(now):
        emit(event)


def _event(t: float, link: str, kind: str, counts: Sequence[int]) -> SojournTimes:
    places = [place for place, count in enumerate(counts) if count]
    return SojournTimes(
        t=t,
        link=link,
        kind=kind,
        upto_us=[histogram.bounds(place)[1] for place in places],
        packets=[counts[place] for place in places],
    )

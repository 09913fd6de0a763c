"""Sojourn times of packets in queues, as numbers of packets by time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ccplay.model.events import SojournTimes

_MOST_KINDS, _MOST_TIMES = 100, 1000
"""Largest numbers of disciplines of a link, and of distinct times of each, that are kept; a lab has
far fewer."""


class SojournCounts:
    """All sojourn times of a session, by link and discipline."""

    def __init__(self) -> None:
        self._counts: dict[str, dict[str, Counter[int]]] = {}

    def add(self, event: SojournTimes) -> None:
        """Add what an event reports."""
        kinds = self._counts.setdefault(event.link, {})
        if event.kind not in kinds and len(kinds) >= _MOST_KINDS:
            return
        counts = kinds.setdefault(event.kind, Counter())
        # A stranger's recording may have lists of any length, and any times.
        for upto_us, packets in zip(event.upto_us, event.packets, strict=False):
            if upto_us in counts or len(counts) < _MOST_TIMES:
                counts[upto_us] += packets

    def of(self, link: str, kind: str = "") -> Mapping[int, int]:
        """Return the packets of a link by the time in µs that they did not exceed.

        Without ``kind`` the packets of all its disciplines are counted together.
        """
        kinds = self._counts.get(link, {})
        chosen = [kinds[kind]] if kind in kinds else [] if kind else list(kinds.values())
        return sum(chosen, Counter())

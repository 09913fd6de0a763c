"""Accuracy of bottleneck rates, measured while packets were always waiting."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ccplay.model.samples import QdiscSamples

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

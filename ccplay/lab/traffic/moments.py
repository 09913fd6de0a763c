"""When a connection opened and when a flow reached its limit, from readings before and after."""

from __future__ import annotations

import math
import time
from typing import NamedTuple

CLOSE_S = 0.0005
"""How often a flow is read while it may open or reach its limit: epoll makes it 1 ms, and so much
its times are exact to."""

_REST = 0.02
"""Nothing is read more often than after this share of the time that it has taken so far: one SYN
lost is a second, which the kernel's own count makes good."""

_CLOCK_MONOTONIC_COARSE = 6
_TICK_S = time.clock_getres(_CLOCK_MONOTONIC_COARSE)
"""The kernel's tick, in which ``tcp_info`` counts how long data was outstanding: 1 to 10 ms."""


class Reading(NamedTuple):
    """What a flow had at one moment."""

    t: float
    """Seconds."""
    acked: int
    """Payload acknowledged, in bytes, all streams together."""


def opening(unseen: float, seen: float, busy_s: float) -> float:
    """Return when a connection opened that was first read at ``seen``, and not yet at ``unseen``.

    It has data outstanding from its beginning, and at ``seen`` had had some for ``busy_s``, which
    the kernel counts in whole ticks. The middle of what that leaves is off by the least.
    """
    latest = max(unseen, min(seen, seen - busy_s + _TICK_S))
    earliest = min(latest, max(unseen, seen - busy_s - _TICK_S))
    return (earliest + latest) / 2


def reaching(limit: int, before: Reading, after: Reading) -> float:
    """Return when ``limit`` bytes were acknowledged, between two readings around that moment."""
    gained = after.acked - before.acked
    if gained <= 0:
        return after.t
    share = max(limit - before.acked, 0) / gained
    return before.t + share * (after.t - before.t)


def look_for_opening_after_s(waited_s: float) -> float:
    """Return how long a flow needs not be read that has not opened within ``waited_s``."""
    return max(CLOSE_S, waited_s * _REST)


def look_after_s(remaining: int, window: int, least_rtt_s: float) -> float:
    """Return how long a flow needs not be read, since its limit can't be reached any sooner.

    What is acknowledged within an RTT was in the ``window`` at its beginning, and that at most
    doubles from one to the next. All in bytes.
    """
    rtts = int(math.log2(1 + max(remaining, 0) / max(window, 1)))
    return max(CLOSE_S, rtts * least_rtt_s)

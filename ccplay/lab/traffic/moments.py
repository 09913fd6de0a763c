"""Moments at which a flow sent its first data or reached its limit, from readings around them."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import NamedTuple

from ccplay.lab.probe.probe import Counters
from ccplay.lab.traffic.iperf import COOKIE_OCTETS

CLOSE_S = 0.0005
"""Seconds between readings while a flow may begin or reach its limit. With epoll it becomes 1 ms,
which is the precision of a flow's times."""

_REST = 0.02
"""Shortest pause between readings, as a share of the time waited so far. A lost SYN takes a second,
and the kernel's count of the time with outstanding data corrects the result."""

_CLOCK_MONOTONIC_COARSE = 6
_TICK_S = time.clock_getres(_CLOCK_MONOTONIC_COARSE)
"""Length of the kernel's tick in seconds, 1 to 10 ms, in which ``tcp_info`` counts the time with
outstanding data."""


NOTHING = Counters(cc="", bytes_acked=0, total_retrans=0)
"""Reading of a connection that is not open yet."""


class Reading(NamedTuple):
    """A reading of a flow."""

    t: float
    """Moment of the reading in seconds."""
    acked: int
    """Acknowledged payload in bytes, all streams together."""


def opening(unseen: float, seen: float, busy_s: float) -> float:
    """Return when a connection sent its first data: after ``unseen``, but by ``seen``.

    Data has been outstanding since then, at ``seen`` for at most ``busy_s``, which the kernel
    counts in whole ticks. The middle of the remaining interval has the smallest error.
    """
    latest = max(unseen, min(seen, seen - busy_s + _TICK_S))
    earliest = min(latest, max(unseen, seen - busy_s - _TICK_S))
    return (earliest + latest) / 2


def reaching(limit: int, before: Reading, after: Reading) -> float:
    """Return when ``limit`` bytes were acknowledged, interpolated between two readings."""
    gained = after.acked - before.acked
    if gained <= 0:
        return after.t
    share = max(limit - before.acked, 0) / gained
    return before.t + share * (after.t - before.t)


def look_for_opening_after_s(waited_s: float) -> float:
    """Return the time until the next reading of a flow that has not begun within ``waited_s``."""
    return max(CLOSE_S, waited_s * _REST)


def look_after_s(remaining: int, window: int, least_rtt_s: float) -> float:
    """Return the time until the next reading, before which the flow can't reach its limit.

    Data acknowledged within an RTT was in the window at its beginning, and the window at most
    doubles from one RTT to the next. ``remaining`` and ``window`` are in bytes.
    """
    rtts = int(math.log2(1 + max(remaining, 0) / max(window, 1)))
    return max(CLOSE_S, rtts * least_rtt_s)


def shortest_busy_s(before: Sequence[Counters], now: Sequence[Counters]) -> float:
    """Return the least time since ``before`` for which a connection with data had some outstanding.

    Longer times may include that of an outstanding cookie, which is not data.
    """
    # A connection that was not open yet has no earlier reading.
    known = before if len(before) == len(now) else [NOTHING] * len(now)
    pairs = zip(known, now, strict=True)
    return min(each.busy_s - was.busy_s for was, each in pairs if has_sent_data(each))


def has_sent_data(connection: Counters) -> bool:
    """Return whether more than the cookie was sent, counting each copy of it."""
    return connection.bytes_sent > COOKIE_OCTETS * (1 + connection.total_retrans)

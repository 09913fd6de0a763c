"""``struct tcp_info``: which of its fields are read, and their units in ``TcpSamples``.

Source: include/uapi/linux/tcp.h.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import repeat
from operator import lshift
from typing import cast

from ccplay.model.values import INFINITE_SSTHRESH

FIELDS: tuple[tuple[str, str, int], ...] = (
    ("ca_state", "B", 1),
    ("mss", "I", 16),
    ("unacked", "I", 24),
    ("lost", "I", 32),
    ("retrans", "I", 36),
    ("srtt_us", "I", 68),
    ("rttvar_us", "I", 72),
    ("ssthresh", "I", 76),
    ("cwnd", "I", 80),
    ("total_retrans", "I", 100),
    ("pacing_rate", "Q", 104),
    ("bytes_acked", "Q", 120),
    ("min_rtt_us", "I", 148),
    ("delivery_rate", "Q", 160),
    ("delivered_ce", "I", 196),
    ("bytes_sent", "Q", 200),
)
"""What is read of ``tcp_info``: our name, ``struct`` code, offset in it (Linux 4.19 and later)."""

PLACES = {name: (code, offset) for name, code, offset in FIELDS} | {
    "segs_in": ("I", 140),
    "busy_time": ("Q", 168),
}

INFO_SIZE = 208
"""How much of ``tcp_info`` that is; kernels may have more of it."""

OPTIONS, OPTION_ECN = 5, 8
"""Where ``tcp_info`` has ``tcpi_options``, and ``TCPI_OPT_ECN``."""

UNKNOWN_RTT = (1 << 32) - 1
"""``~0``: no RTT has been measured yet."""

_MOST_RATE = 1 << 50
"""Bytes per second. ``~0`` is a socket that nothing limits; an algorithm may set what is as
meaningless, and no reader takes it."""


def in_units(name: str, counts: list[int]) -> list[int | None]:
    """Return a field of several sockets, as the kernel has it, in the units of ``TcpSamples``."""
    change = _UNITS.get(name)
    return cast("list[int | None]", counts) if change is None else change(counts)


def _thresholds(counts: list[int]) -> list[int | None]:
    return [None if each == INFINITE_SSTHRESH else each for each in counts]


def _least_rtts(counts: list[int]) -> list[int | None]:
    return [0 if each == UNKNOWN_RTT else each for each in counts]


def _rates(counts: list[int]) -> list[int | None]:
    """Return bits per second."""
    if max(counts) < _MOST_RATE:
        return [*map(lshift, counts, repeat(3))]
    return [each << 3 if each < _MOST_RATE else 0 for each in counts]


_UNITS: Mapping[str, Callable[[list[int]], list[int | None]]] = {
    "ssthresh": _thresholds,
    "min_rtt_us": _least_rtts,
    "pacing_rate": _rates,
    "delivery_rate": _rates,
}
"""Fields whose counts are changed; the others are reported as the kernel has them."""

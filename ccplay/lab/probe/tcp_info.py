"""``struct tcp_info``: the fields that are read, and their conversion to units of ``TcpSamples``.

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
"""Fields of ``tcp_info`` in a sweep: ccplay's name, ``struct`` code, and offset in bytes (Linux
4.19 and later)."""

PLACES = {name: (code, offset) for name, code, offset in FIELDS} | {
    "segs_in": ("I", 140),
    "busy_time": ("Q", 168),
}

INFO_SIZE = 208
"""Number of bytes read of ``tcp_info``; newer kernels have more."""

OPTIONS, OPTION_ECN = 5, 8
"""Offset of ``tcpi_options``, and its bit ``TCPI_OPT_ECN``."""

UNKNOWN_RTT = (1 << 32) - 1
"""Minimum RTT that the kernel reports before the first measurement: ``~0``."""

_MOST_RATE = 1 << 50
"""Rate in bytes per second from which rates are meaningless: ``~0`` means no limit, and an
algorithm may set any value."""


def in_units(name: str, counts: list[int]) -> list[int | None]:
    """Convert a field of several sockets from the kernel's unit to that of ``TcpSamples``."""
    change = _UNITS.get(name)
    return cast("list[int | None]", counts) if change is None else change(counts)


def _thresholds(counts: list[int]) -> list[int | None]:
    return [None if each == INFINITE_SSTHRESH else each for each in counts]


def _least_rtts(counts: list[int]) -> list[int | None]:
    return [0 if each == UNKNOWN_RTT else each for each in counts]


def _rates(counts: list[int]) -> list[int | None]:
    """Return rates in bits per second; 0 for meaningless ones."""
    if max(counts) < _MOST_RATE:
        return [*map(lshift, counts, repeat(3))]
    return [each << 3 if each < _MOST_RATE else 0 for each in counts]


_UNITS: Mapping[str, Callable[[list[int]], list[int | None]]] = {
    "ssthresh": _thresholds,
    "min_rtt_us": _least_rtts,
    "pacing_rate": _rates,
    "delivery_rate": _rates,
}
"""Conversions by field; the other fields keep the kernel's unit."""

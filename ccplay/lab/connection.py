"""A TCP connection that is sampled, alone or combined with others as MPTCP does."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from operator import lshift
from typing import TypeAlias, cast

from ccplay.bpf.loaded import library
from ccplay.model.values import INFINITE_SSTHRESH
from ccplay.model.variables import FLOW_VARIABLES, Combined, combine

# --- the fields of ``struct tcp_info`` that are read, in units of ``TcpSamples`` ------------------
# Source: include/uapi/linux/tcp.h.

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


def _rates(counts: list[int]) -> list[int | None]:
    """Return rates in bits per second; 0 for meaningless ones."""
    if max(counts) < _MOST_RATE:
        return [*map(lshift, counts, repeat(3))]
    return [each << 3 if each < _MOST_RATE else 0 for each in counts]


_UNITS: Mapping[str, Callable[[list[int]], list[int | None]]] = {
    "ssthresh": lambda counts: [None if each == INFINITE_SSTHRESH else each for each in counts],
    "min_rtt_us": lambda counts: [0 if each == UNKNOWN_RTT else each for each in counts],
    "pacing_rate": _rates,
    "delivery_rate": _rates,
}
"""Conversions by field; the other fields keep the kernel's unit."""


# --- A TCP connection that is sampled, and its last reading ---------------------------------------

Reader: TypeAlias = Callable[[int], bytes]
"""Function that returns bytes of the reading in a row of many readings."""


def port_key(sport: int, dport: int) -> bytes:
    """Return the key of a connection within a host: its ports in network byte order."""
    return struct.pack("!HH", sport, dport)


class _Decoded(dict[bytes, str]):
    """Cache of decoded names."""

    def __missing__(self, name: bytes) -> str:
        text = self[name] = library.display_name(name.decode())
        return text


_CC_NAMES = _Decoded()


class Connection:
    """A sampled connection: the first socket seen with these ports."""

    __slots__ = ("_info", "_own", "_row", "cc", "cookie", "key", "lone_info", "lone_own", "name")

    def __init__(self, name: str, sport: int, dport: int) -> None:
        self.name = name
        self.key = port_key(sport, dport)
        self.cookie: int | None = None
        """Kernel's identifier of the socket; None until the socket was seen."""
        self.cc = b""
        self.lone_info = self.lone_own = b""
        """``tcp_info`` and attributes of the algorithm, as last read for this connection alone."""
        self._info: Reader | None = None
        self._own: Reader | None = None
        self._row = 0

    @property
    def algorithm(self) -> str:
        """Display name of the congestion control at the last reading."""
        return _CC_NAMES[self.cc]

    def meets(self, cookie: int) -> bool:
        """Return whether the socket with ``cookie`` is this connection, as the first seen is."""
        if self.cookie is None:
            self.cookie = cookie
        return self.cookie == cookie

    @property
    def info(self) -> bytes:
        """``tcp_info`` of the last reading; empty until the connection is open."""
        return self.lone_info if self._info is None else self._info(self._row)

    @property
    def own(self) -> bytes:
        """Attributes with the algorithm's variables; empty if it has none."""
        return self.lone_own if self._own is None else self._own(self._row)

    def move(self, info: Reader, own: Reader, row: int) -> None:
        """Use what these functions return for ``row`` as the reading from now on."""
        self._info, self._own, self._row = info, own, row

    def settle(self) -> None:
        """Copy the reading of the row, and hold later readings in this connection again."""
        self.lone_info, self.lone_own = self.info, self.own
        self._info = self._own = None

    def field(self, name: str) -> int:
        """Return a field of the last ``tcp_info``: one of ``tcp_info.PLACES``."""
        code, offset = PLACES[name]
        value: int = struct.unpack_from("=" + code, self.info, offset)[0]
        return value


# --- combines several connections into one: the subflows of an MPTCP connection -------------------

_COMBINED: dict[str, Combined] = {
    **{each.name: each.combined for each in FLOW_VARIABLES},
    "mss": "greatest",
    "segs_in": "sum",
    "busy_time": "greatest",
}
_COUNTERS = ("total_retrans", "bytes_sent", "delivered_ce", "segs_in")
"""Counters that include those of members that have ended."""
_UNKNOWN = {"ssthresh": INFINITE_SSTHRESH, "min_rtt_us": UNKNOWN_RTT}
"""Values of fields that mean unknown."""
_MOST = {"B": (1 << 8) - 1, "I": (1 << 32) - 1, "Q": (1 << 64) - 1}


class Joint(Connection):
    """A connection whose ``tcp_info`` is computed from those of its members, field by field."""

    __slots__ = ("_acknowledged", "_ended", "_members")

    def __init__(self, name: str, acknowledged: Callable[[], int | None]) -> None:
        """Start without members.

        ``acknowledged`` returns the bytes acknowledged on the whole connection; None if unknown.
        """
        super().__init__(name, 0, 0)
        self._acknowledged = acknowledged
        self._members: list[Connection] = []
        self._ended: dict[str, int] = dict.fromkeys((*_COUNTERS, "bytes_acked"), 0)

    def add(self, member: Connection) -> None:
        """Add a connection, counted from its first reading on."""
        self._members.append(member)

    def remove(self, member: Connection) -> None:
        """Remove a connection that has ended, and keep only its counts."""
        self._members.remove(member)
        if member.info:
            for name in self._ended:
                self._ended[name] += member.field(name) - (name == "bytes_acked")

    def read(self) -> None:
        """Compute the values from the members' last readings."""
        known = [each for each in self._members if each.info]
        if not known:
            return
        self.cc = known[0].cc
        info = bytearray(INFO_SIZE)
        for name, (code, offset) in PLACES.items():
            value = self._together(name, [each.field(name) for each in known])
            struct.pack_into(f"={code}", info, offset, min(value, _MOST[code]))
        if all(each.info[OPTIONS] & OPTION_ECN for each in known):
            info[OPTIONS] |= OPTION_ECN
        self.lone_info = bytes(info)

    def _together(self, name: str, values: Sequence[int]) -> int:
        if name == "bytes_acked":
            # These are bytes of payload; tcp_info counts the SYN, too.
            acked = self._acknowledged()
            if acked is None:
                acked = sum(values) - len(values) + self._ended[name]
            return acked + 1
        if (unknown := _UNKNOWN.get(name)) is not None:
            values = [each for each in values if each != unknown] or [unknown]
            if values == [unknown]:
                return unknown
        return round(combine(_COMBINED[name], values) or 0) + self._ended.get(name, 0)

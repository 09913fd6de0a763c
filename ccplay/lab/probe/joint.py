"""Combines several connections into one: the subflows of an MPTCP connection."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from ccplay.lab.probe.connection import Connection
from ccplay.lab.probe.tcp_info import INFO_SIZE, OPTION_ECN, OPTIONS, PLACES, UNKNOWN_RTT
from ccplay.model.values import INFINITE_SSTHRESH
from ccplay.model.variables import FLOW_VARIABLES, Combined, combine

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

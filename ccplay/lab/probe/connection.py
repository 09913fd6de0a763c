"""A TCP connection that is sampled, and its last reading."""

from __future__ import annotations

import struct
from typing import Protocol

from ccplay.bpf.loaded import library
from ccplay.lab.probe.tcp_info import PLACES


class Holder(Protocol):
    """Holds the readings of many connections, by row."""

    def info(self, row: int) -> bytes:
        """Return the ``tcp_info`` of a connection."""

    def own(self, row: int) -> bytes:
        """Return the attributes with the variables of a connection's algorithm."""


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

    __slots__ = ("_group", "_row", "cc", "cookie", "key", "lone_info", "lone_own", "name")

    def __init__(self, name: str, sport: int, dport: int) -> None:
        self.name = name
        self.key = port_key(sport, dport)
        self.cookie: int | None = None
        """Kernel's identifier of the socket; None until the socket was seen."""
        self.cc = b""
        self.lone_info = self.lone_own = b""
        """``tcp_info`` and attributes of the algorithm, as last read for this connection alone."""
        self._group: Holder | None = None
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
        return self.lone_info if self._group is None else self._group.info(self._row)

    @property
    def own(self) -> bytes:
        """Attributes with the algorithm's variables; empty if it has none."""
        return self.lone_own if self._group is None else self._group.own(self._row)

    def move(self, group: Holder, row: int) -> None:
        """Use row ``row`` of ``group`` as the reading from now on."""
        self._group, self._row = group, row

    def settle(self) -> None:
        """Copy the reading of the group, and hold later readings in this connection again."""
        self.lone_info, self.lone_own, self._group = self.info, self.own, None

    def field(self, name: str) -> int:
        """Return a field of the last ``tcp_info``: one of ``tcp_info.PLACES``."""
        code, offset = PLACES[name]
        value: int = struct.unpack_from("=" + code, self.info, offset)[0]
        return value

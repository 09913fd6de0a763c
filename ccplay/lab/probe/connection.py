"""A TCP connection that is to be read, and what was read of it last."""

from __future__ import annotations

import struct
from typing import Protocol

from ccplay.bpf.loaded import library
from ccplay.lab.probe.tcp_info import PLACES


class Holder(Protocol):
    """What has read many connections at once, and knows each by its row."""

    def info(self, row: int) -> bytes:
        """Return the ``tcp_info`` of a connection."""

    def own(self, row: int) -> bytes:
        """Return the attributes with what the algorithm of a connection reports of itself."""


def port_key(sport: int, dport: int) -> bytes:
    """Return what identifies a connection within a host: the ports as the kernel writes them."""
    return struct.pack("!HH", sport, dport)


class _Decoded(dict[bytes, str]):
    """Text of bytes that come again and again."""

    def __missing__(self, name: bytes) -> str:
        text = self[name] = library.spoken(name.decode())
        return text


_CC_NAMES = _Decoded()


class Connection:
    """A connection that is to be read: the first one seen with its ports."""

    __slots__ = ("_group", "_row", "cc", "cookie", "key", "lone_info", "lone_own", "name")

    def __init__(self, name: str, sport: int, dport: int) -> None:
        self.name = name
        self.key = port_key(sport, dport)
        self.cookie: int | None = None
        """The kernel's own name of the socket, once it has been seen."""
        self.cc = b""
        self.lone_info = self.lone_own = b""
        """``info`` and ``own`` as they were read of this connection by itself."""
        self._group: Holder | None = None
        self._row = 0

    @property
    def algorithm(self) -> str:
        """The congestion control that it used when it was read last, as people call it."""
        return _CC_NAMES[self.cc]

    def meets(self, cookie: int) -> bool:
        """Say whether the socket with ``cookie`` is the one; the first one is."""
        if self.cookie is None:
            self.cookie = cookie
        return self.cookie == cookie

    @property
    def info(self) -> bytes:
        """The ``tcp_info`` that was read last; empty before the connection is open."""
        return self.lone_info if self._group is None else self._group.info(self._row)

    @property
    def own(self) -> bytes:
        """Attributes with what the algorithm reports of itself; empty where it reports nothing."""
        return self.lone_own if self._group is None else self._group.own(self._row)

    def move(self, group: Holder, row: int) -> None:
        """Leave it to ``group`` from now on to know what was read."""
        self._group, self._row = group, row

    def settle(self) -> None:
        """Keep what the group knows, and be read by itself again."""
        self.lone_info, self.lone_own, self._group = self.info, self.own, None

    def field(self, name: str) -> int:
        """Return a field of ``tcp_info`` as read last: one of ``tcp_info.PLACES``."""
        code, offset = PLACES[name]
        value: int = struct.unpack_from("=" + code, self.info, offset)[0]
        return value

"""``struct tcp_info`` of every wanted TCP socket of one namespace, by one dump of the kernel.

Protocol: sock_diag(7), include/uapi/linux/inet_diag.h; ``tcp_info``: include/uapi/linux/tcp.h.
Speed comes from never unpacking a socket by itself: its ``tcp_info`` is cut out at offsets that
were learnt from the first message and are checked in every later one, and ``columns`` then reads
each field of all sockets at once.
"""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Callable, Iterable, Mapping

from ccplay.lab.network import dumps
from ccplay.lab.probe import algorithm_info

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

_PLACES = {name: (code, offset) for name, code, offset in FIELDS} | {
    "segs_in": ("I", 140),
    "busy_time": ("Q", 168),
}

_INFO_SIZE = 208
"""How much of ``tcp_info`` that is; kernels may have more of it."""

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_INET_DIAG_INFO, _INET_DIAG_CONG = 2, 4

_STATES = 1 << 1 | 1 << 4 | 1 << 8 | 1 << 9 | 1 << 11
"""ESTABLISHED, FIN_WAIT1, CLOSE_WAIT, LAST_ACK, CLOSING: those with data to be acknowledged."""

_ATTRIBUTES = 16 + 72
"""Where attributes begin: after ``nlmsghdr`` and ``inet_diag_msg``."""

_PORTS, _COOKIE = 16 + 4, 16 + 44
"""Where ``inet_diag_sockid`` has the ports and the cookie, counted from the message's beginning."""

_HEADER = struct.Struct("=IH")
_ATTRIBUTE = struct.Struct("=HH")


def _request(more: int = 0) -> bytes:
    return struct.pack(
        "=IHHIIBBBxI48x",
        72,
        _SOCK_DIAG_BY_FAMILY,
        dumps.REQUEST,
        1,
        0,
        socket.AF_INET,
        socket.IPPROTO_TCP,
        1 << (_INET_DIAG_INFO - 1) | 1 << (_INET_DIAG_CONG - 1) | more,
        _STATES,
    )


_REQUEST, _REQUEST_OWN = _request(), _request(algorithm_info.ASKED)


def port_key(sport: int, dport: int) -> bytes:
    """Return what identifies a connection within a host: the ports as the kernel writes them."""
    return struct.pack("!HH", sport, dport)


class Connection:
    """A connection that is to be read: the first one seen with its ports."""

    __slots__ = ("cc", "cookie", "info", "key", "name", "own")

    def __init__(self, name: str, sport: int, dport: int) -> None:
        self.name = name
        self.key = port_key(sport, dport)
        self.cookie: int | None = None
        """The kernel's own name of the socket, once it has been seen."""
        self.info = b""
        """The ``tcp_info`` that was read last; empty before the connection is open."""
        self.cc = b""
        self.own = b""
        """Attributes with what the algorithm says of itself; empty where it says nothing."""

    def meets(self, cookie: int) -> bool:
        """Say whether the socket with ``cookie`` is the one; the first one is."""
        if self.cookie is None:
            self.cookie = cookie
        return self.cookie == cookie

    def field(self, name: str) -> int:
        """Return one of ``FIELDS``, ``segs_in`` or ``busy_time``, as read last."""
        code, offset = _PLACES[name]
        value: int = struct.unpack_from("=" + code, self.info, offset)[0]
        return value


def columns(connections: Iterable[Connection]) -> dict[str, list[int]]:
    """Return ``FIELDS`` by name, each as one list over the connections."""
    infos = memoryview(b"".join([each.info for each in connections]))
    views = {"B": (infos.cast("B"), 1), "I": (infos.cast("I"), 4), "Q": (infos.cast("Q"), 8)}
    found = {}
    for name, code, offset in FIELDS:
        view, size = views[code]
        found[name] = view[offset // size :: _INFO_SIZE // size].tolist()
    return found


class DiagSocket:
    """An open inet_diag socket of one namespace."""

    def __init__(self, open_socket: Callable[[int, int, int], socket.socket]) -> None:
        """``open_socket`` is ``Namespace.socket``, or ``socket.socket`` for the own namespace."""
        self._socket = open_socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG)
        dumps.dont_hang(self._socket)
        self._layout = Layout(_ATTRIBUTES + 4, _INFO_SIZE, _ATTRIBUTES + 4 + _INFO_SIZE + 4)
        self._own = False
        """Whether to ask what algorithms say of themselves: one of the last dump did so."""

    def dump(self, wanted: Mapping[bytes, Connection]) -> list[Connection]:
        """Read the wanted connections, by ``key``; return those that are there.

        Raises ``OSError``.
        """
        found: list[Connection] = []
        self._socket.send(_REQUEST_OWN if self._own else _REQUEST)
        while self._take(self._socket.recv(1 << 16), wanted, found):
            pass
        self._own = not algorithm_info.TELLING.isdisjoint([each.cc for each in found])
        return found

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _take(
        self, data: bytes, wanted: Mapping[bytes, Connection], found: list[Connection]
    ) -> bool:
        """Unpack one datagram; return whether more are to come."""
        layout, own = self._layout, self._own
        unpack, size, header = layout.unpack, layout.size, layout.header
        get, add = wanted.get, found.append
        position, end = 0, len(data)
        while position < end:
            if end - position >= size:
                length, kind, key, cookie, got, info, cc_size, cc_type = unpack(data, position)
            else:
                length, kind, got = *_HEADER.unpack_from(data, position), 0
            if got != header or cc_type != _INET_DIAG_CONG:
                if kind != _SOCK_DIAG_BY_FAMILY:
                    return dumps.goes_on(data, position, kind, "inet_diag")
                layout = self._layout = learn(data, position, length)
                unpack, size, header = layout.unpack, layout.size, layout.header
                continue
            connection = get(key)
            if connection is not None and connection.cookie != cookie:
                connection = connection if connection.meets(cookie) else None
            if connection is not None:
                connection.info = info
                begin = position + size
                connection.cc = data[begin : begin + cc_size - 5]
                if own:
                    connection.own = data[begin + (cc_size - 1 & ~3) : position + length]
                add(connection)
            # Attributes are padded, so every length is a multiple of four already.
            position += length
        return True


class Layout:
    """Where a message has its ``INET_DIAG_INFO`` and, after it, its ``INET_DIAG_CONG``."""

    __slots__ = ("header", "size", "unpack")

    def __init__(self, info: int, info_size: int, name: int) -> None:
        """``info`` and ``name`` are where the two payloads begin, counted from the message's."""
        self.header = _INET_DIAG_INFO << 16 | (info_size + 4)
        """What stands in front of ``info``: length and type, read as one number."""
        self.size = name
        """What ``unpack`` reads; the name of the congestion control comes next."""
        self.unpack = struct.Struct(
            f"=IH{_PORTS - 6}x4s{_COOKIE - _PORTS - 4}xQ{info - 4 - _COOKIE - 8}xI"
            f"{_INFO_SIZE}s{name - 4 - info - _INFO_SIZE}xHH"
        ).unpack_from
        """Gives length and type of the message, ports, cookie, ``header``, ``tcp_info``, and the
        header of ``INET_DIAG_CONG``: length and type."""


def learn(data: bytes, position: int, length: int) -> Layout:
    """Find the attributes of one message by walking them.

    Raises ``OSError`` where the kernel does not tell what we need (before Linux 4.19).
    """
    payloads: dict[int, tuple[int, int]] = {}
    at = _ATTRIBUTES
    while at + 4 <= length:
        size, kind = _ATTRIBUTE.unpack_from(data, position + at)
        payloads[kind] = (at + 4, size - 4)
        at += max((size + 3) & ~3, 4)
    info, info_size = payloads.get(_INET_DIAG_INFO, (0, 0))
    name, _ = payloads.get(_INET_DIAG_CONG, (0, 0))
    if info_size < _INFO_SIZE or name < info:
        raise OSError(errno.EPROTO, "inet_diag: tcp_info is too short; Linux 4.19 is needed")
    return Layout(info, info_size, name)

"""``struct tcp_info`` of every wanted TCP socket of one namespace, by one dump of the kernel.

Protocol: sock_diag(7), include/uapi/linux/inet_diag.h; ``tcp_info``: include/uapi/linux/tcp.h.
Speed comes from one ``struct`` call a socket at attribute offsets learnt from the first message
and checked in every later one.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Callable, Mapping
from typing import Generic, NamedTuple, TypeAlias, TypeVar

T = TypeVar("T")

Row: TypeAlias = tuple[int, ...]
"""The numbers of one socket as the kernel has them: its cookie, the header of its
``INET_DIAG_INFO``, ``FIELDS`` in their order, length and type of its ``INET_DIAG_CONG``."""

FIRST_FIELD = 2
"""Where ``FIELDS`` begin in a ``Row``."""

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

_INFO_SIZE = 208

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_DUMP_REQUEST = 0x301
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_INET_DIAG_INFO, _INET_DIAG_CONG = 2, 4

_STATES = 1 << 1 | 1 << 4 | 1 << 8 | 1 << 9 | 1 << 11
"""ESTABLISHED, FIN_WAIT1, CLOSE_WAIT, LAST_ACK, CLOSING: those with data to be acknowledged."""

_ATTRIBUTES = 16 + 72
"""Where attributes begin: after ``nlmsghdr`` and ``inet_diag_msg``."""

_COOKIE = 16 + 44
"""Where the socket's cookie is."""

_NO_ROW = (0, 0)
"""Stands for a message too short for the layout at hand."""

_HEADER = struct.Struct("=IH")
_ATTRIBUTE = struct.Struct("=HH")
_ERRNO = struct.Struct("=i")

_REQUEST = struct.pack(
    "=IHHIIBBBxI48x",
    72,
    _SOCK_DIAG_BY_FAMILY,
    _DUMP_REQUEST,
    1,
    0,
    socket.AF_INET,
    socket.IPPROTO_TCP,
    1 << (_INET_DIAG_INFO - 1) | 1 << (_INET_DIAG_CONG - 1),
    _STATES,
)

_TIMEOUT = struct.pack("=qq", 2, 0)
"""A dump is answered within the call; after 2 s something is broken, and we must not hang."""


def port_key(sport: int, dport: int) -> bytes:
    """Return what identifies a connection within a host: the ports as the kernel writes them."""
    return struct.pack("!HH", sport, dport)


class Sockets(NamedTuple, Generic[T]):
    """What one dump found: three lists of one length."""

    owners: list[T]
    """What the caller keeps under the connection's key."""
    rows: list[Row]
    ccs: list[bytes]


class DiagSocket:
    """An open inet_diag socket of one namespace."""

    def __init__(self, open_socket: Callable[[int, int, int], socket.socket]) -> None:
        """``open_socket`` is ``Namespace.socket``, or ``socket.socket`` for the own namespace."""
        self._socket = open_socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _TIMEOUT)
        self._layout = Layout(_ATTRIBUTES + 4, _INFO_SIZE, _ATTRIBUTES + 4 + _INFO_SIZE + 4)

    def dump(self, wanted: Mapping[bytes, T]) -> Sockets[T]:
        """Read the sockets whose ``port_key`` is in ``wanted``. Raises ``OSError``."""
        found = Sockets[T]([], [], [])
        self._socket.send(_REQUEST)
        while self._take(self._socket.recv(1 << 16), wanted, found):
            pass
        return found

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _take(self, data: bytes, wanted: Mapping[bytes, T], found: Sockets[T]) -> bool:
        """Unpack one datagram; return whether more are to come."""
        owners, rows, ccs = found
        layout = self._layout
        unpack, info_header, name = layout.unpack, layout.info_header, layout.name
        position, end = 0, len(data)
        while position < end:
            length, kind = _HEADER.unpack_from(data, position)
            if kind != _SOCK_DIAG_BY_FAMILY:
                return _goes_on(data, position, kind)
            owner = wanted.get(data[position + 20 : position + 24])
            if owner is not None:
                row = unpack(data, position) if name < length else _NO_ROW
                if row[1] != info_header or row[-1] != _INET_DIAG_CONG:
                    layout = learn(data, position, length)
                    unpack, info_header, name = layout.unpack, layout.info_header, layout.name
                    self._layout = layout
                    row = unpack(data, position)
                owners.append(owner)
                rows.append(row)
                begin = position + name
                ccs.append(data[begin : begin + row[-2] - 5])
            position += (length + 3) & ~3
        return True


class Layout:
    """Where a message has its ``INET_DIAG_INFO`` and, after it, its ``INET_DIAG_CONG``."""

    __slots__ = ("info_header", "name", "unpack")

    def __init__(self, info: int, info_size: int, name: int) -> None:
        """``info`` and ``name`` are where the two payloads begin, counted from the message's."""
        self.info_header = _INET_DIAG_INFO << 16 | (info_size + 4)
        self.name = name
        places = [("Q", _COOKIE), ("I", info - 4)]
        places += [(code, info + offset) for _, code, offset in FIELDS]
        places += [("H", name - 4), ("H", name - 2)]
        self.unpack = struct.Struct(_format(places)).unpack_from


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


def _format(places: list[tuple[str, int]]) -> str:
    """Return the ``struct`` format that reads the given codes at the given offsets."""
    words, at = ["="], 0
    for code, offset in places:
        words.append(f"{offset - at}x{code}")
        at = offset + struct.calcsize("=" + code)
    return "".join(words)


def _goes_on(data: bytes, position: int, kind: int) -> bool:
    """Say whether a message that is no socket leaves more to come. Raises ``OSError``."""
    if kind in (_NLMSG_ERROR, _NLMSG_DONE):
        (error,) = _ERRNO.unpack_from(data, position + 16)
        if error:
            raise OSError(-error, f"inet_diag: {os.strerror(-error)}")
    return kind != _NLMSG_DONE

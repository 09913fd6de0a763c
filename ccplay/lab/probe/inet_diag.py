"""``struct tcp_info`` of every wanted TCP socket of one namespace, by one dump of the kernel.

Protocol: sock_diag(7), include/uapi/linux/inet_diag.h; ``tcp_info``: include/uapi/linux/tcp.h.
For speed, no ``tcp_info`` is unpacked alone: it is sliced at offsets learned from the first message
and checked in each later one, and ``columns`` reads each field of all sockets at once. With many
sockets, a ``Plan`` avoids the slices, too.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence

from ccplay.lab.network import dumps
from ccplay.lab.probe import algorithm_info
from ccplay.lab.probe.connection import Connection
from ccplay.lab.probe.layout import FIRST, HEADER, INET_DIAG_CONG, INET_DIAG_INFO, learn
from ccplay.lab.probe.plan import LEAST, Plan
from ccplay.lab.probe.tcp_info import FIELDS, INFO_SIZE

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20

_STATES = 1 << 1 | 1 << 4 | 1 << 8 | 1 << 9 | 1 << 11
"""States that may have unacknowledged data: ESTABLISHED, FIN_WAIT1, CLOSE_WAIT, LAST_ACK,
CLOSING."""


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
        1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1) | more,
        _STATES,
    )


_REQUEST, _REQUEST_OWN = _request(), _request(algorithm_info.ASKED)


def columns(connections: Iterable[Connection]) -> dict[str, list[int]]:
    """Return ``tcp_info.FIELDS`` by name, each as a list with one value per connection."""
    infos = memoryview(b"".join([each.info for each in connections]))
    views = {"B": (infos.cast("B"), 1), "I": (infos.cast("I"), 4), "Q": (infos.cast("Q"), 8)}
    found = {}
    for name, code, offset in FIELDS:
        view, size = views[code]
        found[name] = view[offset // size :: INFO_SIZE // size].tolist()
    return found


class DiagSocket:
    """An open inet_diag socket of one namespace."""

    def __init__(self, open_socket: Callable[[int, int, int], socket.socket]) -> None:
        """``open_socket`` is ``Namespace.socket``; ``socket.socket`` for the current one."""
        self._socket = open_socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG)
        dumps.set_timeout(self._socket)
        self._layout = FIRST
        self._own = False
        """Whether to request variables of algorithms, because the last dump had an algorithm with
        some."""
        self.plan: Plan | None = None
        """Plan by which dumps are read; None unless successive dumps have the same form."""
        self._sizes: list[int] = []

    def dump(self, wanted: Mapping[bytes, Connection]) -> list[Connection]:
        """Read the connections in ``wanted``, which are by ``key``; return those that exist.

        Call ``forget`` first if ``wanted`` has changed. Raises ``OSError``.
        """
        self._socket.send(_REQUEST_OWN if self._own else _REQUEST)
        if self.plan is None:
            return self._walk([], wanted)
        datagrams = self._receive(self.plan.sizes)
        if self.plan.follow(datagrams):
            return self.plan.found
        self.forget()
        return self._walk(datagrams, wanted)

    def forget(self) -> None:
        """Unpack each socket separately in the next dump."""
        if self.plan is not None:
            self.plan.end()
        self.plan, self._sizes = None, []

    def _receive(self, sizes: Sequence[int]) -> list[bytes]:
        """Receive datagrams of these sizes; stop after the first of another size."""
        receive, datagrams = self._socket.recv, list[bytes]()
        for size in sizes:
            datagrams.append(data := receive(1 << 16))
            if len(data) != size:
                break
        return datagrams

    def _walk(self, datagrams: list[bytes], wanted: Mapping[bytes, Connection]) -> list[Connection]:
        """Unpack each message of a dump; ``datagrams`` are those already received."""
        found: list[Connection] = []
        going = True
        for data in datagrams:
            going = self._take(data, wanted, found)
        while going:
            datagrams.append(data := self._socket.recv(1 << 16))
            going = self._take(data, wanted, found)
        asked = self._own
        self._own = not algorithm_info.REPORTING.isdisjoint([each.cc for each in found])
        if len(found) >= LEAST:
            self._foresee(datagrams, wanted, asked=asked)
        return found

    def _foresee(
        self, datagrams: Sequence[bytes], wanted: Mapping[bytes, Connection], *, asked: bool
    ) -> None:
        """Make a plan if the dump has the same form as the one before."""
        before, self._sizes = self._sizes, [len(each) for each in datagrams]
        if self._sizes == before and asked == self._own and dumps.ends(datagrams[-1]):
            self.plan = Plan(datagrams, wanted, own=asked)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _take(
        self, data: bytes, wanted: Mapping[bytes, Connection], found: list[Connection]
    ) -> bool:
        """Unpack one datagram; return whether more follow."""
        layout, own = self._layout, self._own
        unpack, size, header = layout.unpack, layout.size, layout.header
        get, add = wanted.get, found.append
        position, end = 0, len(data)
        while position < end:
            if end - position >= size:
                length, kind, key, cookie, got, info, cc_size, cc_type = unpack(data, position)
            else:
                length, kind, got = *HEADER.unpack_from(data, position), 0
            if got != header or cc_type != INET_DIAG_CONG:
                if kind != _SOCK_DIAG_BY_FAMILY:
                    return dumps.continues(data, position, kind, "inet_diag")
                layout = self._layout = learn(data, position, length)
                unpack, size, header = layout.unpack, layout.size, layout.header
                continue
            connection = get(key)
            if connection is not None and connection.cookie != cookie:
                connection = connection if connection.meets(cookie) else None
            if connection is not None:
                begin = position + size
                connection.lone_info = info
                connection.cc = data[begin : begin + cc_size - 5]
                attributes = data[begin + (cc_size - 1 & ~3) : position + length] if own else b""
                connection.lone_own = attributes
                add(connection)
            # Attributes are padded, so every length is a multiple of four already.
            position += length
        return True

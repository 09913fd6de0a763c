"""MPTCP connections and their subflows, as inet_diag reports them.

Protocol: sock_diag(7), include/uapi/linux/inet_diag.h; attributes of a subflow and ``struct
mptcp_info``: include/uapi/linux/mptcp.h.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from ccplay.lab.network import dumps
from ccplay.lab.probe.layout import ATTRIBUTES, INET_DIAG_INFO
from ccplay.lab.traffic.mptcp.path_manager import Ends, walk

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_IPPROTO_MPTCP = 262
_INET_DIAG_REQ_PROTOCOL, _INET_DIAG_ULP_INFO = 3, 19
_ULP_NAME, _ULP_MPTCP = 1, 3
_TOKEN_LOC, _ID_LOC = 2, 10

_ESTABLISHED, _SYN_SENT, _CLOSE = 1, 2, 7
_OPEN_STATES = 1 << _ESTABLISHED | 1 << 4 | 1 << 8 | 1 << 9 | 1 << 11
"""Bits of the states in which a connection is open, which are those that a sweep reads."""

_ATTRIBUTE = struct.Struct("=HH")
_MESSAGE = struct.Struct("=IH10xBB2x2s2s4s12x4s")
"""Length and type; then family, state, both ports and both IPv4 addresses of ``inet_diag_msg``."""

_TOKEN, _ACKED = 12, 72
"""Offsets in ``struct mptcp_info`` of ``mptcpi_token`` and ``mptcpi_bytes_acked`` (Linux 6.5)."""


class Subflow(NamedTuple):
    """One end of a subflow."""

    ends: Ends
    token: int
    """Token of the subflow's connection at this end."""
    local_id: int
    """Identifier of the subflow's address at this end."""
    established: bool
    """Whether the handshake is complete."""


class MptcpSockets:
    """An open inet_diag socket of one namespace, for MPTCP."""

    def __init__(self, open_socket: Callable[[int, int, int], socket.socket]) -> None:
        """``open_socket`` is ``Namespace.socket``; ``socket.socket`` for the current namespace."""
        self._socket = open_socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG)
        dumps.set_timeout(self._socket)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def subflows(self) -> list[Subflow]:
        """Return all subflows in the namespace, even those that are opening. Raises ``OSError``."""
        found = []
        for head, attributes in self._dump(socket.IPPROTO_TCP, _OPEN_STATES | 1 << _SYN_SENT):
            values = dict(walk(attributes))
            if (ulp := values.get(_INET_DIAG_ULP_INFO)) is None:
                continue
            about = dict(walk(dict(walk(ulp)).get(_ULP_MPTCP, b"")))
            _, _, _, state, sport, dport, src, dst = head
            found.append(
                Subflow(
                    Ends(_text(src), _port(sport), _text(dst), _port(dport)),
                    int.from_bytes(about.get(_TOKEN_LOC, b"")[:4], "little"),
                    about.get(_ID_LOC, b"\0")[0],
                    state != _SYN_SENT,
                )
            )
        return found

    def acknowledged(self, token: int) -> int | None:
        """Return how many bytes the other end has acknowledged at the level of the connection.

        None if the kernel does not count them, or there is no such connection. Raises ``OSError``.
        """
        for _, attributes in self._dump(_IPPROTO_MPTCP, _OPEN_STATES):
            info = dict(walk(attributes)).get(INET_DIAG_INFO, b"")
            if len(info) >= _ACKED + 8 and struct.unpack_from("=I", info, _TOKEN)[0] == token:
                return int(struct.unpack_from("=Q", info, _ACKED)[0])
        return None

    def _dump(self, protocol: int, states: int) -> list[tuple[tuple[Any, ...], bytes]]:
        """Return the head of each message, unpacked, and its attributes."""
        # A number above 255 does not fit into the protocol's field.
        more = _ATTRIBUTE.pack(8, _INET_DIAG_REQ_PROTOCOL) + struct.pack("=I", protocol)
        self._socket.send(
            struct.pack(
                "=IHHIIBBBxI48x",
                72 + len(more),
                _SOCK_DIAG_BY_FAMILY,
                dumps.REQUEST,
                1,
                0,
                socket.AF_INET,
                min(protocol, socket.IPPROTO_RAW),
                1 << (INET_DIAG_INFO - 1),
                states,
            )
            + more
        )
        found, going = [], True
        while going:
            data = self._socket.recv(1 << 16)
            at = 0
            while at < len(data):
                length, kind = struct.unpack_from("=IH", data, at)
                if kind == _SOCK_DIAG_BY_FAMILY:
                    head = _MESSAGE.unpack_from(data, at)
                    found.append((head, data[at + ATTRIBUTES : at + length]))
                else:
                    going = dumps.continues(data, at, kind, "inet_diag")
                at += (length + 3) & ~3
        return found


def _port(packed: bytes) -> int:
    return int.from_bytes(packed, "big")


def _text(packed: bytes) -> str:
    return socket.inet_ntoa(packed)

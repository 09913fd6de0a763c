"""Requests to the path manager of MPTCP: subflows, endpoints and limits, by generic netlink.

Protocol: Documentation/netlink/specs/mptcp_pm.yaml, include/uapi/linux/mptcp_pm.h.
"""

from __future__ import annotations

import os
import socket
import struct
from typing import NamedTuple

from ccplay.lab.network import dumps
from ccplay.lab.network.netns import Namespace

_NETLINK_GENERIC = 16
_HEADER = struct.Struct("=IHHII")
_GENERIC = struct.Struct("=BBxx")
_ATTRIBUTE = struct.Struct("=HH")
_REQUEST_ACK = 0x1 | 0x4
_ERROR = 2
_NESTED = 0x8000

_CONTROLLER, _GET_FAMILY = 0x10, 3
_FAMILY_ID, _FAMILY_NAME = 1, 2
_NAME, _VERSION = b"mptcp_pm\0", 1

_ADD_ADDR, _FLUSH_ADDRS, _SET_LIMITS, _SUBFLOW_CREATE, _SUBFLOW_DESTROY = 1, 4, 5, 10, 11
_ADDR, _RCV_ADD_ADDRS, _SUBFLOWS, _TOKEN, _ADDR_REMOTE = 1, 2, 3, 4, 6
_FAMILY, _ID, _ADDR4, _PORT, _FLAGS = 1, 2, 3, 5, 6

SIGNAL, SUBFLOW, FULLMESH = 1 << 0, 1 << 1, 1 << 3
"""Flags of an endpoint: see ip-mptcp(8)."""


class Ends(NamedTuple):
    """Addresses and ports of a subflow, as its sender has them."""

    src: str
    sport: int
    dst: str
    dport: int


class PathManager:
    """The path manager of one namespace. Every method raises ``OSError`` where it refuses."""

    def __init__(self, namespace: Namespace) -> None:
        self._socket = namespace.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_GENERIC)
        dumps.dont_hang(self._socket)
        self._sequence = 0
        self._family = 0
        self._family = self._find_family()

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def create(self, token: int, local_id: int, ends: Ends) -> None:
        """Ask the connection with ``token`` to open another subflow (userspace path manager)."""
        self._ask(_SUBFLOW_CREATE, *_of_subflow(token, local_id, ends))

    def destroy(self, token: int, local_id: int, ends: Ends) -> None:
        """Ask it to reset a subflow."""
        self._ask(_SUBFLOW_DESTROY, *_of_subflow(token, local_id, ends))

    def limit(self, subflows: int) -> None:
        """Let connections have so many subflows besides the first (in-kernel path manager)."""
        number = struct.pack("=I", subflows)
        self._ask(_SET_LIMITS, _attribute(_RCV_ADD_ADDRS, number), _attribute(_SUBFLOWS, number))

    def add_endpoint(self, address: str, flags: int) -> None:
        """Let connections use, or announce, another address of the host."""
        self._ask(_ADD_ADDR, _address(_ADDR, address, flags=flags))

    def _ask(self, command: int, *attributes: bytes) -> None:
        self._transact(self._family, _REQUEST_ACK, command, _VERSION, *attributes)

    def _find_family(self) -> int:
        name = _attribute(_FAMILY_NAME, _NAME)
        answer = self._transact(_CONTROLLER, 0x1, _GET_FAMILY, 1, name)
        at = _HEADER.size + _GENERIC.size
        while at + 4 <= len(answer):
            length, kind = _ATTRIBUTE.unpack_from(answer, at)
            if kind == _FAMILY_ID:
                return int(struct.unpack_from("=H", answer, at + 4)[0])
            at += max((length + 3) & ~3, 4)
        return 0

    def _transact(self, kind: int, flags: int, command: int, version: int, *parts: bytes) -> bytes:
        self._sequence += 1
        body = _GENERIC.pack(command, version) + b"".join(parts)
        length = _HEADER.size + len(body)
        self._socket.send(_HEADER.pack(length, kind, flags, self._sequence, 0) + body)
        while True:
            answer = self._socket.recv(1 << 16)
            _, answered, _, sequence, _ = _HEADER.unpack_from(answer)
            if sequence != self._sequence:
                continue
            if answered == _ERROR and (number := -struct.unpack_from("=i", answer, 16)[0]):
                raise OSError(number, os.strerror(number))
            return answer


def _of_subflow(token: int, local_id: int, ends: Ends) -> tuple[bytes, bytes, bytes]:
    return (
        _address(_ADDR, ends.src, identifier=local_id, port=ends.sport),
        _attribute(_TOKEN, struct.pack("=I", token)),
        _address(_ADDR_REMOTE, ends.dst, port=ends.dport),
    )


def _address(
    kind: int,
    address: str,
    *,
    identifier: int | None = None,
    port: int = 0,
    flags: int = 0,
) -> bytes:
    parts = [
        _attribute(_FAMILY, struct.pack("=H", socket.AF_INET)),
        _attribute(_ADDR4, socket.inet_aton(address)),
    ]
    if identifier is not None:
        parts.append(_attribute(_ID, bytes([identifier])))
    if port:
        # In the byte order of the host, unlike everywhere else.
        parts.append(_attribute(_PORT, struct.pack("=H", port)))
    if flags:
        parts.append(_attribute(_FLAGS, struct.pack("=I", flags)))
    return _attribute(kind | _NESTED, b"".join(parts))


def _attribute(kind: int, value: bytes) -> bytes:
    return _ATTRIBUTE.pack(4 + len(value), kind) + value + bytes(-len(value) % 4)

"""rtnetlink(7) in batches: many requests in one round trip to the kernel.

pyroute2's own sockets are asyncio objects that wait for one reply at a time; building a network
takes a hundred requests that need not wait for each other.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, Self

from ccplay.lab.network.netlink import nlmsg, tcmsg
from ccplay.lab.network.netns import Namespace

REQUEST, ACK, DUMP = 0x1, 0x4, 0x300
CREATE, EXCLUSIVE, REPLACE = 0x400, 0x200, 0x100

_HEADER = struct.Struct("=IHHII")
_ERROR, _DONE = 2, 3
_RECEIVE_BUFFER = 1 << 20


class NetlinkError(OSError):
    """Raised if the kernel refuses a request; ``errno`` and ``strerror`` are the reason."""


class RouteSocket:
    """A routing socket in a namespace (None: the caller's own). Not for concurrent use."""

    def __init__(self, namespace: Namespace | None = None) -> None:
        self._namespace = namespace
        family, kind, proto = socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE
        self._socket = (
            socket.socket(family, kind, proto)
            if namespace is None
            else namespace.socket(family, kind, proto)
        )
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        self._socket.bind((0, 0))
        self._sequence = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def request(self, messages: Iterable[nlmsg | bytes], what: str) -> None:
        """Carry out ``messages`` in order, all of them even if one fails.

        Bytes are a message from ``requests``, complete except for its sequence number. Raises
        ``NetlinkError`` for the first message that the kernel refused; ``what`` describes the work
        in its text.
        """
        encoded: list[bytes] = []
        first = self._sequence + 1
        for message in messages:
            self._sequence += 1
            encoded.append(_numbered(message, self._sequence))
        if not encoded:
            return
        self._socket.send(b"".join(encoded))
        failure = 0
        for _ in encoded:
            failure = failure or self._acknowledgement(first)
        if failure:
            raise NetlinkError(failure, f"{what}: {os.strerror(failure)}")

    def ask(self, request: bytes) -> bytes:
        """Return the only answer to a request from ``requests``.

        Raises ``NetlinkError`` if the kernel reports an error instead.
        """
        self._sequence += 1
        self._socket.send(_numbered(request, self._sequence))
        while True:
            data = self._socket.recv(1 << 16)
            _, kind, _, sequence, _ = _HEADER.unpack_from(data)
            if sequence != self._sequence:
                continue
            if kind == _ERROR:
                number = -int(struct.unpack_from("=i", data, 16)[0])
                raise NetlinkError(number, os.strerror(number))
            return data

    def dump(self, message: nlmsg) -> list[Any]:
        """Return the replies to a dump request, decoded as the request's own class."""
        message["header"]["flags"] = REQUEST | DUMP
        answers: list[Any] = []
        for data in self.dumped(message):
            answer = type(message)(data)
            answer.decode()
            answers.append(answer)
        return answers

    def dumped(self, message: nlmsg | bytes) -> list[bytes]:
        """Return the replies to a dump request undecoded, each with its header."""
        self._sequence += 1
        self._socket.send(_numbered(message, self._sequence))
        answers: list[bytes] = []
        while True:
            data = self._socket.recv(1 << 17)
            for kind, start, end in _split(data):
                if kind == _DONE:
                    return answers
                if kind == _ERROR:
                    number = -struct.unpack_from("=i", data, start + 16)[0]
                    raise NetlinkError(number, f"dump: {os.strerror(number)}")
                answers.append(data[start:end])

    def _acknowledgement(self, first: int) -> int:
        """Wait for an acknowledgement of request ``first`` or a later one; return its errno."""
        while True:
            data = self._socket.recv(1 << 16)
            _, kind, _, sequence, _ = _HEADER.unpack_from(data)
            if kind == _ERROR and sequence >= first:
                return -int(struct.unpack_from("=i", data, 16)[0])


def _numbered(message: nlmsg | bytes, sequence: int) -> bytes:
    """Return a message encoded with this sequence number, the third word of its header."""
    if isinstance(message, bytes):
        return message[:8] + struct.pack("=I", sequence) + message[12:]
    message["header"]["sequence_number"] = sequence
    message.encode()
    return bytes(message.data)


def message(
    template: type[nlmsg],
    kind: int,
    flags: int = 0,
    attributes: Sequence[tuple[str, Any]] = (),
    /,
    **fields: Any,
) -> nlmsg:
    """Build a request of type ``kind`` that asks for an acknowledgement."""
    built = template()
    built["header"]["type"] = kind
    built["header"]["flags"] = REQUEST | ACK | flags
    for name, value in fields.items():
        built[name] = value
    built["attrs"] = [list(each) for each in attributes]
    return built


def traffic_control(
    kind: int, flags: int, index: int, attributes: Sequence[tuple[str, Any]], /, **fields: Any
) -> nlmsg:
    """Build a request about a queue discipline, class or filter of interface ``index``."""
    return message(tcmsg, kind, flags, attributes, index=index, **fields)


def _split(data: bytes) -> Iterable[tuple[int, int, int]]:
    """Yield type, start and end of every message in the result of one read."""
    start = 0
    while start + _HEADER.size <= len(data):
        length, kind, _, _, _ = _HEADER.unpack_from(data, start)
        yield kind, start, start + length
        start += (length + 3) & ~3

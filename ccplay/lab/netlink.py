"""Messages of netlink(7): headers, flags, attributes, and the end of a dump.

Imports nothing of pyroute2, which the processes that hold packets need not wait for.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator, Mapping

HEADER = struct.Struct("=IHHII")
"""Format of ``struct nlmsghdr``: length, type, flags, sequence number, port."""

REQUEST, ACK, DUMP = 0x1, 0x4, 0x300
CREATE, EXCLUSIVE, REPLACE = 0x400, 0x200, 0x100
"""Flags of a request ``NLM_F_…``: create the object; fail if it exists; replace it."""
DUMP_REQUEST = REQUEST | DUMP

ERROR, DONE = 2, 3
"""Types of a message that reports an error or acknowledges, and of the end of a dump."""

U32, U64 = struct.Struct("=I"), struct.Struct("=Q")


def messages(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield type, start and end of every message in the result of one read."""
    start = 0
    while start + HEADER.size <= len(data):
        length, kind, _, _, _ = HEADER.unpack_from(data, start)
        yield kind, start, start + length
        start += (length + 3) & ~3


# --- attributes -----------------------------------------------------------------------------

ATTRIBUTE = struct.Struct("=HH")
"""Format of an attribute's header: its length without padding, and its type."""

NESTED = 0x8000
"""Flag ``NLA_F_NESTED`` of an attribute that contains others."""
_TYPE = 0x3FFF


def attribute(number: int, value: bytes) -> bytes:
    """Return one attribute with its header and padding."""
    return ATTRIBUTE.pack(4 + len(value), number) + value + bytes(-len(value) % 4)


def join(attributes: Mapping[int, bytes]) -> bytes:
    """Return numbered attributes as bytes for netlink."""
    return b"".join(attribute(number, value) for number, value in attributes.items())


def walk(data: bytes | bytearray, at: int, end: int) -> dict[int, tuple[int, int]]:
    """Return the start and end of each attribute's payload by type; the first of a type counts."""
    payloads: dict[int, tuple[int, int]] = {}
    while at + 4 <= end:
        size, kind = ATTRIBUTE.unpack_from(data, at)
        payloads.setdefault(kind & _TYPE, (at + 4, at + size))
        at += max((size + 3) & ~3, 4)
    return payloads


def split(image: bytes) -> dict[int, bytes]:
    """Return the attributes of an image by type; the first of a type counts."""
    return {kind: image[begin:end] for kind, (begin, end) in walk(image, 0, len(image)).items()}


# --- dumps that are read without a decoder ----------------------------------------------------

_ERRNO = struct.Struct("=i")
_END = struct.Struct("=IH10xi")

_TIMEOUT = struct.pack("=qq", 2, 0)
"""Timeout of 2 s as ``struct timeval``; the kernel answers a dump within the call."""


def set_timeout(reader: socket.socket) -> None:
    """Set a timeout for reads from a socket."""
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _TIMEOUT)


def failure(data: bytes, position: int = 0) -> int:
    """Return the error number in a message of type ``ERROR`` or ``DONE``; 0 for success."""
    return -int(_ERRNO.unpack_from(data, position + HEADER.size)[0])


def continues(data: bytes, position: int, kind: int, protocol: str) -> bool:
    """Return whether a dump continues after a message that is not a reply.

    Raises ``OSError`` if the message reports an error.
    """
    if kind in (ERROR, DONE) and (number := failure(data, position)):
        raise OSError(number, f"{protocol}: {os.strerror(number)}")
    return kind != DONE


def ends(data: bytes) -> bool:
    """Return whether a datagram contains only the end of a dump, without an error."""
    if len(data) != _END.size:
        return False
    _, kind, error = _END.unpack(data)
    return (kind, error) == (DONE, 0)

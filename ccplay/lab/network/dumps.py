"""Parts of netlink dumps that are read without a decoder: request, timeout, end; netlink(7)."""

from __future__ import annotations

import os
import socket
import struct

REQUEST = 0x301
"""Flags ``NLM_F_REQUEST | NLM_F_DUMP``."""

_ERROR, _DONE = 2, 3
_ERRNO = struct.Struct("=i")
_END = struct.Struct("=IH10xi")

_TIMEOUT = struct.pack("=qq", 2, 0)
"""Timeout of 2 s as ``struct timeval``; the kernel answers a dump within the call."""


def set_timeout(reader: socket.socket) -> None:
    """Set a timeout for reads from a socket."""
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _TIMEOUT)


def continues(data: bytes, position: int, kind: int, protocol: str) -> bool:
    """Return whether a dump continues after a message that is not a reply.

    Raises ``OSError`` if the message reports an error.
    """
    if kind in (_ERROR, _DONE):
        (error,) = _ERRNO.unpack_from(data, position + 16)
        if error:
            raise OSError(-error, f"{protocol}: {os.strerror(-error)}")
    return kind != _DONE


def ends(data: bytes) -> bool:
    """Return whether a datagram contains only the end of a dump, without an error."""
    if len(data) != _END.size:
        return False
    _, kind, error = _END.unpack(data)
    return (kind, error) == (_DONE, 0)

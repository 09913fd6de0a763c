"""Dumps of the kernel that are read without a decoder: asked for, waited for, ended; netlink(7)."""

from __future__ import annotations

import os
import socket
import struct

REQUEST = 0x301
"""``NLM_F_REQUEST | NLM_F_DUMP``."""

_ERROR, _DONE = 2, 3
_ERRNO = struct.Struct("=i")

_TIMEOUT = struct.pack("=qq", 2, 0)
"""A dump is answered within the call; after 2 s something is broken, and we must not hang."""


def dont_hang(reader: socket.socket) -> None:
    """Have a socket wait no longer for an answer than one may take."""
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _TIMEOUT)


def goes_on(data: bytes, position: int, kind: int, protocol: str) -> bool:
    """Say whether a message that is no answer leaves more to come. Raises ``OSError``."""
    if kind in (_ERROR, _DONE):
        (error,) = _ERRNO.unpack_from(data, position + 16)
        if error:
            raise OSError(-error, f"{protocol}: {os.strerror(-error)}")
    return kind != _DONE

"""Offsets in the messages of inet_diag, learned from one message and checked in the others.

Protocol: sock_diag(7), include/uapi/linux/inet_diag.h.
"""

from __future__ import annotations

import errno
import struct

from ccplay.lab.probe.tcp_info import INFO_SIZE

INET_DIAG_INFO, INET_DIAG_CONG = 2, 4

ATTRIBUTES = 16 + 72
"""Offset of the attributes: after ``nlmsghdr`` and ``inet_diag_msg``."""

PORTS, COOKIE = 16 + 4, 16 + 44
"""Offsets of the ports and the cookie of ``inet_diag_sockid`` in a message."""

HEADER = struct.Struct("=IH")
_ATTRIBUTE = struct.Struct("=HH")


class Layout:
    """Offsets of ``INET_DIAG_INFO`` and, after it, ``INET_DIAG_CONG`` in a message."""

    __slots__ = ("header", "info", "size", "unpack")

    def __init__(self, info: int, info_size: int, name: int) -> None:
        """``info`` and ``name`` are the offsets of the two payloads in the message."""
        self.info = info
        self.header = INET_DIAG_INFO << 16 | (info_size + 4)
        """Length and type before ``info``, read as one number."""
        self.size = name
        """Number of bytes that ``unpack`` reads; the name of the congestion control follows."""
        self.unpack = struct.Struct(
            f"=IH{PORTS - 6}x4s{COOKIE - PORTS - 4}xQ{info - 4 - COOKIE - 8}xI"
            f"{INFO_SIZE}s{name - 4 - info - INFO_SIZE}xHH"
        ).unpack_from
        """Function that returns length and type of the message, ports, cookie, ``header``,
        ``tcp_info``, and length and type of ``INET_DIAG_CONG``."""


FIRST = Layout(ATTRIBUTES + 4, INFO_SIZE, ATTRIBUTES + 4 + INFO_SIZE + 4)
"""Layout assumed before the first message."""


def learn(data: bytes, position: int, length: int) -> Layout:
    """Return the layout of one message, found by walking its attributes.

    Raises ``OSError`` if the kernel's ``tcp_info`` is too short (before Linux 4.19).
    """
    payloads: dict[int, tuple[int, int]] = {}
    at = ATTRIBUTES
    while at + 4 <= length:
        size, kind = _ATTRIBUTE.unpack_from(data, position + at)
        payloads[kind] = (at + 4, size - 4)
        at += max((size + 3) & ~3, 4)
    info, info_size = payloads.get(INET_DIAG_INFO, (0, 0))
    name, _ = payloads.get(INET_DIAG_CONG, (0, 0))
    if info_size < INFO_SIZE or name < info:
        raise OSError(errno.EPROTO, "inet_diag: tcp_info is too short; Linux 4.19 is needed")
    return Layout(info, info_size, name)

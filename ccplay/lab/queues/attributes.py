"""Attributes of a netlink message, read in place: netlink(7)."""

from __future__ import annotations

import struct

U32 = struct.Struct("=I")

_ATTRIBUTE = struct.Struct("=HH")
_TYPE = 0x3FFF
"""Mask ``NLA_TYPE_MASK`` of an attribute's type; the bits above it are flags, such as nested."""


def walk(data: bytes, at: int, end: int) -> dict[int, tuple[int, int]]:
    """Return the start and end of each attribute's payload by type; the first of a type counts."""
    payloads: dict[int, tuple[int, int]] = {}
    while at + 4 <= end:
        size, kind = _ATTRIBUTE.unpack_from(data, at)
        payloads.setdefault(kind & _TYPE, (at + 4, at + size))
        at += max((size + 3) & ~3, 4)
    return payloads

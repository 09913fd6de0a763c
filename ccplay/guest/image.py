"""Unpacks a kernel's image, which takes an emulated processor more than a second at each boot.

The layout is that of Linux's Documentation/arch/x86/boot.rst.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from ccplay.errors import CcplayError
from ccplay.guest.boot import UNPACKERS, run

_MAGIC, _MAGIC_AT = b"HdrS", 0x202
_VERSION, _VERSION_AT = 0x208, 0x206
"""First version of the boot protocol whose header has the place of the packed kernel, and the
offset of the version in the header."""

_SECTORS_AT, _SECTOR_BYTES = 0x1F1, 512
_PAYLOAD_AT = 0x248

_PACKED = {b"\x1f\x8b": ".gz", b"\xfd7zXZ\0": ".xz", b"\x28\xb5\x2f\xfd": ".zst"}
"""First bytes of each format, and the suffix of its files."""

_LENGTH = struct.Struct("<I")
"""Bytes of the unpacked kernel, the last field of a payload; part of the format for gzip only."""

_ELF64 = b"\x7fELF\x02\x01"
_PT_NOTE = 4
_XEN, _PHYS32_ENTRY = b"Xen\0", 18
"""Owner and type of the ELF note with the PVH entry point, where QEMU starts unpacked kernels."""


def unpacked(image: bytes) -> bytes | None:
    """Return the unpacked kernel of a bzImage; None if QEMU can't start it unpacked.

    Raises ``CcplayError``, and ``UnsupportedError`` if the program that unpacks it is missing.
    """
    payload = _payload(image)
    suffix = next((each for magic, each in _PACKED.items() if payload.startswith(magic)), None)
    if suffix is None:
        return None
    packed = payload if suffix == ".gz" else payload[: -_LENGTH.size]
    kernel = run(UNPACKERS[suffix], Path("/"), packed)
    if len(kernel) != _LENGTH.unpack(payload[-_LENGTH.size :])[0]:
        raise CcplayError("the kernel's image is damaged: it states another length")
    return kernel if _has_pvh(kernel) else None


def _payload(image: bytes) -> bytes:
    """Return the packed kernel; empty if ``image`` is no bzImage, or too old a version."""
    if len(image) < _PAYLOAD_AT + 8 or image[_MAGIC_AT : _MAGIC_AT + 4] != _MAGIC:
        return b""
    if struct.unpack_from("<H", image, _VERSION_AT)[0] < _VERSION:
        return b""
    offset, length = struct.unpack_from("<II", image, _PAYLOAD_AT)
    begin = (image[_SECTORS_AT] + 1) * _SECTOR_BYTES + offset
    return image[begin : begin + length]


def _has_pvh(kernel: bytes) -> bool:
    if not kernel.startswith(_ELF64):
        return False
    (headers_at,) = struct.unpack_from("<Q", kernel, 32)
    size, count = struct.unpack_from("<HH", kernel, 54)
    for number in range(count):
        kind, _, offset, _, _, length = struct.unpack_from(
            "<IIQQQQ", kernel, headers_at + number * size
        )
        if kind == _PT_NOTE and (_XEN, _PHYS32_ENTRY) in _notes(kernel[offset : offset + length]):
            return True
    return False


def _notes(segment: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield the owner and type of each ELF note in a segment."""
    at, head = 0, struct.Struct("<III")
    while at + head.size <= len(segment):
        name, description, kind = head.unpack_from(segment, at)
        at += head.size
        yield segment[at : at + name], kind
        at += (name + 3 & ~3) + (description + 3 & ~3)

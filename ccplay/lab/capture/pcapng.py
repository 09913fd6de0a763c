"""Reads the pcap of capture programs, and encodes the blocks of a pcapng file for Wireshark.

The formats are those of draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

_SECTION, _INTERFACE, _PACKET, _STATISTICS = 0x0A0D0D0A, 1, 6, 5
_BYTE_ORDER = 0x1A2B3C4D
_LENGTH_UNKNOWN = (1 << 64) - 1

_OS, _APPLICATION = 3, 4
_IF_NAME, _IF_DESCRIPTION, _IF_RESOLUTION = 2, 3, 9
_FLAGS, _INBOUND, _OUTBOUND = 2, 1, 2
_RECEIVED, _DROPPED = 4, 5

_NANOSECONDS = 9
"""Value of ``if_tsresol`` for a resolution of 10^-9 s."""

_PACKET_HEAD = struct.Struct("=IIIIIII")
_PACKET_TAIL = struct.Struct("=HHIHHI")
"""End of a packet's block: the option ``epb_flags``, the end of options, and the block's length,
repeated."""


class Record(NamedTuple):
    """A captured packet."""

    nanoseconds: int
    """Nanoseconds since the epoch."""
    data: bytes
    length: int
    """Length of the packet on the wire in bytes."""


def section(application: str, system: str) -> bytes:
    """Return the first block of a file: the program and the machine that wrote it."""
    body = struct.pack("=IHHQ", _BYTE_ORDER, 1, 0, _LENGTH_UNKNOWN)
    options = _text(_OS, system) + _text(_APPLICATION, application)
    return _block(_SECTION, body + options + _option(0, b""))


def interface(name: str, description: str, link_type: int, snaplen: int) -> bytes:
    """Return the block that describes the interface of the packets."""
    body = struct.pack("=HHI", link_type, 0, snaplen)
    options = _text(_IF_NAME, name) + _text(_IF_DESCRIPTION, description)
    options += _option(_IF_RESOLUTION, bytes([_NANOSECONDS]))
    return _block(_INTERFACE, body + options + _option(0, b""))


def packet(record: Record, *, outbound: bool) -> bytes:
    """Return the block of one packet, with its direction at the interface."""
    data = record.data + bytes(-len(record.data) % 4)
    total = _PACKET_HEAD.size + len(data) + _PACKET_TAIL.size
    high, low = divmod(record.nanoseconds, 1 << 32)
    head = _PACKET_HEAD.pack(_PACKET, total, 0, high, low, len(record.data), record.length)
    way = _OUTBOUND if outbound else _INBOUND
    return head + data + _PACKET_TAIL.pack(_FLAGS, 4, way, 0, 0, total)


def statistics(nanoseconds: int, received: int, dropped: int) -> bytes:
    """Return the block that ends a capture: counts of packets received and of those dropped."""
    high, low = divmod(nanoseconds, 1 << 32)
    options = _option(_RECEIVED, struct.pack("=Q", received))
    options += _option(_DROPPED, struct.pack("=Q", dropped)) + _option(0, b"")
    return _block(_STATISTICS, struct.pack("=III", 0, high, low) + options)


class PcapStream:
    """A pcap stream being read; its header determines the byte order and the unit of time."""

    def __init__(self) -> None:
        self.link_type: int | None = None
        """Link type, one of ``LINKTYPE_``…; None until the stream's header has arrived."""
        self._rest = b""
        self._header = struct.Struct("=IIII")
        self._unit_ns = 1000

    def feed(self, data: bytes) -> Iterator[Record]:
        """Process bytes and yield complete packets. Raises ``ValueError`` if this is not pcap."""
        data = self._rest + data
        at = 0
        if self.link_type is None:
            if len(data) < 24:
                self._rest = data
                return
            self._begin(data)
            at = 24
        size = self._header.size
        while at + size <= len(data):
            seconds, fraction, captured, length = self._header.unpack_from(data, at)
            end = at + size + captured
            if end > len(data):
                break
            when = seconds * 1_000_000_000 + fraction * self._unit_ns
            yield Record(when, data[at + size : end], length)
            at = end
        self._rest = data[at:]

    def _begin(self, data: bytes) -> None:
        for order in "<>":
            (magic,) = struct.unpack_from(f"{order}I", data)
            if magic in _UNITS_NS:
                self._unit_ns = _UNITS_NS[magic]
                self._header = struct.Struct(f"{order}IIII")
                (self.link_type,) = struct.unpack_from(f"{order}I", data, 20)
                return
        raise ValueError("not a pcap stream")


_UNITS_NS = {0xA1B2C3D4: 1000, 0xA1B23C4D: 1}
"""Nanoseconds in a stream's unit of time, by its magic number."""


def _block(kind: int, body: bytes) -> bytes:
    total = struct.pack("=I", len(body) + 12)
    return struct.pack("=I", kind) + total + body + total


def _text(code: int, text: str) -> bytes:
    return _option(code, text.encode()[:0xFFFF])


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("=HH", code, len(value)) + value + bytes(-len(value) % 4)


STATISTICS_SIZE = len(statistics(0, 0, 0))
"""Length of a statistics block in bytes."""

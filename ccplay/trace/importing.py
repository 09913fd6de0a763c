"""Traces from measurements: what a capture or a run of iperf3 shows that a path has carried.

It is a lower bound: where the sender had nothing to send, the path could have carried more.
"""

from __future__ import annotations

import struct
from array import array
from itertools import pairwise
from pathlib import Path

import msgspec

from ccplay.files.reading import read_regular
from ccplay.trace.content import LONGEST_US, Content, TraceError, steps
from ccplay.trace.formats import opened

EVERY_US = 100_000
"""Microseconds of each step of an imported rate."""

_LARGEST = 64 << 20
_MOST_PACKETS = 20_000_000
_LONGEST_BLOCK = 1 << 20


class _Sum(msgspec.Struct):
    start: float
    end: float
    bits_per_second: float


class _Interval(msgspec.Struct):
    sum: _Sum


class _Iperf(msgspec.Struct):
    intervals: list[_Interval]


def read_measurement(path: Path) -> Content:
    """Return the rates in a file, whose format its first bytes tell. Raises ``TraceError``."""
    with opened(path) as file:
        magic = file.read(4)
    if magic in _PCAP:
        return _of_packets(path, *_PCAP[magic])
    if magic == _PCAPNG:
        return _of_blocks(path)
    return _of_iperf(path)


def _of_iperf(path: Path) -> Content:
    try:
        found = msgspec.json.decode(read_regular(path, _LARGEST), type=_Iperf)
    except OSError as error:
        raise TraceError(f"{path.name}: can't be read: {error.strerror}") from None
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise TraceError(f"{path.name}: neither a capture nor of iperf3 --json: {error}") from None
    rows = [each.sum for each in found.intervals]
    times = [round(each.start * 1e6) for each in rows]
    rates = [each.bits_per_second for each in rows]
    bad = any(a >= b for a, b in pairwise(times)) or min(times, default=0) < 0
    if not rows or bad or not any(rates) or not all(0 <= each <= 1e11 for each in rates):
        raise TraceError(f"{path.name}: its intervals have no rates over time")
    period = round(rows[-1].end * 1e6)
    if not times[-1] < period <= LONGEST_US:
        raise TraceError(f"{path.name}: its intervals are longer than two days")
    return Content(rates=steps(times, rates, period))


_PCAP = {
    struct.pack("=I", 0xA1B2C3D4): ("=IIII", 1_000_000),
    struct.pack("=I", 0xA1B23C4D): ("=IIII", 1_000_000_000),
    struct.pack(">I", 0xA1B2C3D4): (">IIII", 1_000_000),
    struct.pack(">I", 0xA1B23C4D): (">IIII", 1_000_000_000),
}
"""Format of a packet's header and parts of a second, by the magic number; pcap-savefile(5)."""
_PCAPNG = struct.pack("=I", 0x0A0D0D0A)
_ENHANCED, _INTERFACE = 6, 1


class _Bins:
    """Bytes of packets in each step."""

    def __init__(self, path: Path) -> None:
        self._path, self._packets = path, 0
        self._first: float | None = None
        self._bytes = array("d")

    def add(self, moment: float, size: int) -> None:
        """Count a packet; those that came before the first one are of no step."""
        if self._first is None:
            self._first = moment
        at = int((moment - self._first) * 1e6) // EVERY_US
        self._packets += 1
        if at * EVERY_US > LONGEST_US or self._packets > _MOST_PACKETS:
            raise TraceError(f"{self._path.name}: longer than two days, or too many packets")
        if at < 0:
            return
        if at >= len(self._bytes):
            self._bytes.extend([0.0] * (at + 1 - len(self._bytes)))
        self._bytes[at] += size

    def content(self) -> Content:
        """Return the rate in each step."""
        if len(self._bytes) < 2:
            raise TraceError(f"{self._path.name}: packets of less than 0.2 s")
        rates = [each * 8e6 / EVERY_US for each in self._bytes]
        times = range(0, len(rates) * EVERY_US, EVERY_US)
        return Content(rates=steps(times, rates, len(rates) * EVERY_US))


def _of_packets(path: Path, layout: str, parts: int) -> Content:
    bins, header = _Bins(path), struct.Struct(layout)
    with opened(path) as file:
        file.seek(24)
        while len(head := file.read(header.size)) == header.size:
            seconds, fraction, kept, size = header.unpack(head)
            if kept > _LONGEST_BLOCK or size > _LONGEST_BLOCK:
                raise TraceError(f"{path.name}: not a packet at byte {file.tell()}")
            file.seek(kept, 1)
            bins.add(seconds + fraction / parts, size)
    return bins.content()


def _of_blocks(path: Path) -> Content:
    bins, parts = _Bins(path), 1_000_000
    with opened(path) as file:
        while len(head := file.read(8)) == 8:
            kind, length = struct.unpack("=II", head)
            if not 12 <= length <= _LONGEST_BLOCK:
                raise TraceError(f"{path.name}: not a block at byte {file.tell()}")
            body = file.read(length - 8)
            if kind == _INTERFACE:
                parts = _resolution(body)
            elif kind == _ENHANCED and len(body) >= 20:
                high, low, _, size = struct.unpack_from("=IIII", body, 4)
                bins.add((high << 32 | low) / parts, size)
    return bins.content()


def _resolution(body: bytes) -> int:
    """Return the parts of a second in which an interface's times are; option if_tsresol."""
    at = 8
    while at + 4 <= len(body):
        code, length = struct.unpack_from("=HH", body, at)
        if code == 9 and length == 1 and not body[at + 4] & 0x80:
            return int(10 ** min(body[at + 4], 12))
        if code == 0:
            break
        at += 4 + (length + 3 & ~3)
    return 1_000_000

"""Records of tracepoints by perf_event_open(2): all of it is gone when its descriptors close."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import mmap
import os
import platform
import struct
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from ccplay.errors import UnsupportedError
from ccplay.lab.tracepoints import Tracepoint, Unpack

BEFORE = "8xQ4x"
"""What stands before the tracepoint's own record: a header, the moment in ns, a length."""

RING_BYTES = 1 << 19
"""For each CPU: some 3,000 segments, which at 50 sweeps a second makes 160,000 a second."""

_SYSCALLS = {"x86_64": 298, "aarch64": 241, "riscv64": 241}
"""Number of perf_event_open by machine; libc has no function for it."""

_ATTR = struct.Struct("=IIQQQQQ44xi16x")
"""``perf_event_attr``: type, size, config, sample_period, sample_type, read_format, flags, and
clockid; as long as ``PERF_ATTR_SIZE_VER5``."""

_SOFTWARE, _TRACEPOINT = 1, 2
_DUMMY = 9
_SAMPLE_TIME_RAW = 1 << 2 | 1 << 10
_DISABLED, _USE_CLOCKID = 1 << 0, 1 << 25
_CLOEXEC = 8
_ENABLE, _SET_OUTPUT, _SET_FILTER = 0x2400, 0x2405, 0x40082406

_HEAD, _TAIL, _OFFSET = 128, 129, 130
"""``data_head``, ``data_tail`` and ``data_offset`` of ``perf_event_mmap_page``, in words of 8."""

_LOST, _SAMPLE = 2, 9
_HEADER = struct.Struct("=I2xH12xH")
"""Kind and length of a record, and the tracepoint's number."""

_COUNT = struct.Struct("=16xQ")
"""Of a record of kind LOST: how many."""

_libc = ctypes.CDLL(None, use_errno=True)


class Rings:
    """What the kernel writes into, a ring for each CPU, and what it is told to write."""

    def __init__(self, size: int = RING_BYTES) -> None:
        """Make the rings. Raises ``UnsupportedError`` where the kernel refuses."""
        self._rings: dict[int, _Ring] = {}
        with contextlib.ExitStack() as undo:
            undo.callback(self.close)
            for cpu in online_cpus():
                self._rings[cpu] = _Ring(cpu, size)
            undo.pop_all()

    def watch(self, tracepoint: Tracepoint, condition: str) -> list[int]:
        """Have records that meet a condition written, on every CPU; return the descriptors.

        Closing these ends it. Raises ``UnsupportedError``.
        """
        opened: list[int] = []
        try:
            for cpu, ring in self._rings.items():
                opened.append(open_event(_TRACEPOINT, tracepoint.id, cpu))
                fcntl.ioctl(opened[-1], _SET_OUTPUT, ring.descriptor)
                fcntl.ioctl(opened[-1], _SET_FILTER, condition.encode() + b"\0")
            for each in opened:
                fcntl.ioctl(each, _ENABLE, 0)
        except BaseException as error:
            unwatch(opened)
            if isinstance(error, OSError):
                raise UnsupportedError(f"tracing: {error.strerror}") from None
            raise
        return opened

    def drain(self, readers: Mapping[int, Unpack]) -> tuple[dict[int, list[tuple[int, ...]]], int]:
        """Take out all that has been written since: records by tracepoint, in order of time.

        Each is what its reader makes of it, which begins with ``BEFORE``: the moment, in ns of
        CLOCK_MONOTONIC. Second comes how many records did not fit.
        """
        found: dict[int, list[tuple[int, ...]]] = {each: [] for each in readers}
        lost = 0
        # One moment for all CPUs, as near as may be: a flow may move from one to another.
        heads = [ring.head for ring in self._rings.values()]
        for ring, head in zip(self._rings.values(), heads, strict=True):
            lost += sort_records(ring.take(head), readers, found)
        for records in found.values():
            records.sort()
        return found, lost

    def close(self) -> None:
        """Give the rings back."""
        for ring in self._rings.values():
            ring.close()


class _Ring:
    """One CPU's ring: an event that never happens, whose ring others write into."""

    def __init__(self, cpu: int, size: int) -> None:
        self.descriptor = open_event(_SOFTWARE, _DUMMY, cpu)
        try:
            self._map = mmap.mmap(self.descriptor, mmap.PAGESIZE + size)
        except OSError as error:
            os.close(self.descriptor)
            raise UnsupportedError(f"tracing: no ring ({error.strerror})") from None
        self._size = size
        self._words = memoryview(self._map).cast("Q")
        self._start = self._words[_OFFSET]

    @property
    def head(self) -> int:
        """How many bytes have been written so far."""
        return self._words[_HEAD]

    def take(self, head: int) -> bytes:
        """Take out what has been written up to ``head``."""
        tail = self._words[_TAIL]
        begin, length = tail % self._size, head - tail
        first = min(length, self._size - begin)
        place = self._start + begin
        data = self._map[place : place + first]
        data += self._map[self._start : self._start + length - first]
        self._words[_TAIL] = head
        return data

    def close(self) -> None:
        self._words.release()
        self._map.close()
        os.close(self.descriptor)


def open_event(kind: int, config: int, cpu: int) -> int:
    """Open an event of all processes on one CPU, disabled. Raises ``UnsupportedError``."""
    number = _SYSCALLS.get(platform.machine())
    if number is None:
        raise UnsupportedError(f"tracing: not known how on {platform.machine()}")
    attr = _ATTR.pack(
        *(kind, _ATTR.size, config, 1, _SAMPLE_TIME_RAW, 0),
        *(_DISABLED | _USE_CLOCKID, time.CLOCK_MONOTONIC),
    )
    descriptor: int = _libc.syscall(number, attr, -1, cpu, -1, _CLOEXEC)
    if descriptor < 0:
        raise UnsupportedError(f"perf_event_open: {os.strerror(ctypes.get_errno())}")
    return descriptor


def refusal() -> str:
    """Say why we may not listen, tried with an event that never happens; empty where we may.

    Every event needs the same right, and this one costs nothing: a tracepoint takes some 20 ms
    to be let go of.
    """
    try:
        os.close(open_event(_SOFTWARE, _DUMMY, online_cpus()[0]))
    except UnsupportedError as error:
        return str(error)
    return ""


def unwatch(descriptors: Iterable[int]) -> None:
    """End what ``watch`` began, without waiting for it."""

    def close() -> None:
        for each in descriptors:
            os.close(each)

    threading.Thread(target=close).start()


def online_cpus() -> list[int]:
    """Return all CPUs that run, not only our own: a packet may come in on any."""
    text = Path("/sys/devices/system/cpu/online").read_text(encoding="ascii")
    cpus: list[int] = []
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        cpus += range(int(first), int(last or first) + 1)
    return cpus


def sort_records(
    data: bytes, readers: Mapping[int, Unpack], found: dict[int, list[tuple[int, ...]]]
) -> int:
    """Put the records of one ring where they belong; return how many were lost."""
    at, lost, header = 0, 0, _HEADER.unpack_from
    while at < len(data):
        kind, size, tracepoint = header(data, at)
        if kind == _SAMPLE and tracepoint in readers:
            found[tracepoint].append(readers[tracepoint](data, at))
        elif kind == _LOST:
            lost += _COUNT.unpack_from(data, at)[0]
        at += size
    return lost

"""The tracer: reads records of each segment from a ring buffer that BPF programs fill.

The programs are attached through file descriptors, so the kernel removes them with the process. For
the ring, see Documentation/bpf/ringbuf.rst.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import struct
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

from ccplay.bpf.support import BTF, Lack, lack
from ccplay.errors import UnsupportedError

SOURCE = Path(__file__).parent / "tracer.bpf.c"

PROBE, STATE_SET = "tcp_probe", "tcp_cong_state_set"
"""Names of the tracepoints, which are also those of the programs that run there."""

_FIRST_KERNEL = (5, 12)
"""First kernel version in which programs at tracepoints can read sockets' cookies."""

_RING_BYTES = 1 << 20
"""Size of the ring in bytes: 21,845 records, or a million per second at 50 sweeps per second."""

_BTF_HEADER = struct.Struct("=HBBIIIII")
"""``struct btf_header``: the header's size, then offset and length of types and of names."""

_RECORD = struct.Struct("=I4xQQIIIIIHBx")
"""The ring's header, then ``struct record``."""

_BUSY = 1 << 31
"""Bit in the header of a record that another CPU is still writing."""

_SENDER = struct.Struct("=II")

_WORD = struct.Struct("Q")
"""Word in native byte order and size, which is read and written atomically."""

Sender: TypeAlias = tuple[int, int]
"""Key of a traced connection: inode of the network namespace, and port."""


class Record(NamedTuple):
    """A record of the ring: its header, then the fields of ``struct record``."""

    header: int
    ns: int
    """Nanoseconds of CLOCK_MONOTONIC."""
    cookie: int
    cwnd: int
    ssthresh: int
    snd_wnd: int
    srtt_us: int
    segs_in: int
    """Segments received so far, including those in the socket's backlog."""
    segments: int
    """Number of segments merged into the record; 0 for a change of the congestion state."""
    ca_state: int


def lack_of(tracepoint: str) -> Lack | None:
    """Return what a tracepoint lacks on this kernel; None if it should work."""
    if (missing := lack(_FIRST_KERNEL)) is not None:
        return missing
    if tracepoint not in _there():
        return Lack("this kernel does not have that tracepoint", "Linux 5.19 or newer has it")
    return None


@cache
def _there() -> set[str]:
    """Return which of the tracepoints this kernel has, by the names in its types (BTF).

    Only the names are read: they follow megabytes of types, and the kernel returns 4 kB per read.
    """
    with BTF.open("rb", buffering=0) as file:
        _, _, _, size, *_, names_at, _ = _BTF_HEADER.unpack(file.read(_BTF_HEADER.size))
        file.seek(size + names_at)
        names = file.readall()
    return {name for name in (PROBE, STATE_SET) if f"\0btf_trace_{name}\0".encode() in names}


class Tracer:
    """The loaded and attached programs. Without senders they cost one lookup per segment."""

    def __init__(self) -> None:
        """Build, load and attach the programs; the first build blocks for a second.

        Raises ``UnsupportedError``, ``LoadError``, or the errors of ``bpf.build``.
        """
        if (missing := lack_of(PROBE)) is not None:
            raise UnsupportedError(f"{missing.reason}; {missing.remedy}")
        # Importing ctypes and libbpf is slow, and most labs trace nothing.
        from ccplay.bpf import libbpf  # noqa: PLC0415
        from ccplay.bpf.build import build  # noqa: PLC0415
        from ccplay.bpf.objects import Programs  # noqa: PLC0415

        image, _ = build(SOURCE)
        absent = [STATE_SET] if lack_of(STATE_SET) else []
        with contextlib.ExitStack() as undo:
            self._programs = Programs(image, "the tracer", without=absent)
            undo.callback(self._programs.close)
            ring, page = self._programs.map("ring"), mmap.PAGESIZE
            try:
                self._ours = mmap.mmap(ring, page)
                # The kernel's page, then the ring mapped twice, so that records never wrap.
                size = page + 2 * _RING_BYTES
                self._theirs = mmap.mmap(ring, size, prot=mmap.PROT_READ, offset=page)
            except OSError as error:
                raise UnsupportedError(f"no ring to trace into: {error.strerror}") from None
            for each in self._programs.descriptors:
                undo.callback(os.close, libbpf.attach_to_tracepoint(each))
            self._undo = undo.pop_all()
        self._table = self._programs.map("senders")
        self._senders: set[Sender] = set()

    def listen(self, senders: set[Sender]) -> None:
        """Trace these senders from now on, and no others.

        Raises ``LoadError`` if there are too many.
        """
        for each in senders - self._senders:
            self._programs.put(self._table, _SENDER.pack(*each), b"\1")
        for each in self._senders - senders:
            self._programs.remove(self._table, _SENDER.pack(*each))
        self._senders = set(senders)

    def drain(self) -> list[Record]:
        """Remove and return the records written since the last call, in order."""
        (consumed,), (produced,) = _WORD.unpack_from(self._ours), _WORD.unpack_from(self._theirs)
        begin = mmap.PAGESIZE + consumed % _RING_BYTES
        data = self._theirs[begin : begin + produced - consumed]
        found = complete(data)
        _WORD.pack_into(self._ours, 0, consumed + len(found) * _RECORD.size)
        return found

    def close(self) -> None:
        """Detach and unload the programs."""
        self._undo.close()


def complete(data: bytes) -> list[Record]:
    """Return the records up to the first that is still being written."""
    found = list(map(Record._make, _RECORD.iter_unpack(data)))
    busy = (at for at, each in enumerate(found) if each.header & _BUSY)
    return found[: next(busy, len(found))]

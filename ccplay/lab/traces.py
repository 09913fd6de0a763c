"""Links that move, the lab's side: contents in memory that the packet-holding processes map.

A content is computed or unpacked once, in a thread, and put into a memfd. The software queue
and the delay line are told its path in ``/proc`` and the moment at which it began, and each reads
it as arrays, without a copy. So both, and the capacity that is reported, follow one clock.
"""

from __future__ import annotations

import mmap
import os
import time
import zlib
from collections.abc import Callable

import msgspec

from ccplay.errors import CommandError
from ccplay.model.commands import TraceData
from ccplay.model.moving import Trace, check_trace, show_trace, with_defaults
from ccplay.trace import schedule
from ccplay.trace.content import MOST_BYTES, Content, Steps, TraceError, digest_of, pack, unpack
from ccplay.trace.models import compute

_MEAN_S = 0.1
"""Seconds over which the reported capacity is a mean."""


class MappedTrace(msgspec.Struct, frozen=True, omit_defaults=True):
    """What moves a link, as the lab tells it to a process that holds packets."""

    path: str
    """Path of a packed ``Content``."""
    start: float
    """Beginning, on the monotonic clock."""
    loop: bool = True

    def read(self) -> Content:
        """Return the content in mapped memory. Raises ``OSError``."""
        number = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            image = mmap.mmap(number, 0, prot=mmap.PROT_READ)
        finally:
            os.close(number)
        return unpack(image, checked=True)

    def values(self, part: Steps, after: float = 0.0) -> schedule.Course | None:
        """Return the values of a part of the content by the moment; None if it is empty.

        A trace that ends has the value ``after`` from then on.
        """
        if not len(part):
            return None
        return schedule.Course(part, self.start, loop=self.loop, after=after)


class Moving:
    """What moves one direction of a link."""

    def __init__(self, trace: Trace, content: Content, descriptor: int, start: float) -> None:
        self.trace, self.content = trace, content
        self._path = f"/proc/{os.getpid()}/fd/{descriptor}"
        self.restart(start)

    def restart(self, start: float) -> None:
        """Begin anew at a moment of the monotonic clock."""
        self.course = MappedTrace(self._path, start, self.trace.loop)
        self._delay = self.course.values(self.content.delays)
        self._capacity: Callable[[float, float], float] | None = None

    def variables(self, rate: int) -> dict[str, int]:
        """Return the capacity and the delay of the moment, by the name of the variable.

        ``rate`` is the link's own, in bits per second.
        """
        now = time.monotonic()
        if self._capacity is None:
            course = self.course
            self._capacity = schedule.capacity(
                self.content, course.start, loop=course.loop, after=rate
            )
        begin = max(self.course.start, now - _MEAN_S)
        found = {}
        if self.content.paces and now > begin:
            found["trace_capacity_bps"] = round(self._capacity(begin, now))
        if self._delay is not None:
            found["trace_delay_us"] = round(self._delay.at(now))
        return found


class Traces:
    """All contents of a lab: those received, by digest, and those in memory for its processes."""

    def __init__(self) -> None:
        self._whole: dict[str, bytes] = {}
        self._partial: dict[str, bytearray] = {}
        self._ready: dict[str, tuple[Content, int]] = {}

    def receive(self, data: TraceData) -> None:
        """Add a piece of a content.

        Raises ``TraceError`` for one too many, or for a content that is wrong.
        """
        if data.digest in self._whole:
            return
        parts = self._partial.setdefault(data.digest, bytearray())
        parts += data.piece
        kept = sum(map(len, (*self._whole.values(), *self._partial.values())))
        if kept > MOST_BYTES or data.size > MOST_BYTES:
            self._partial.clear()
            raise TraceError("the traces take more than 512 MiB")
        if not data.last:
            return
        del self._partial[data.digest]
        unpacker = zlib.decompressobj()
        try:
            image = unpacker.decompress(bytes(parts), data.size + 1)
        except zlib.error as error:
            raise TraceError(f"a trace can't be unpacked: {error}") from None
        if len(image) != data.size or digest_of(image) != data.digest:
            raise TraceError("a trace differs from its digest")
        unpack(image)
        self._whole[data.digest] = image

    def content(self, trace: Trace) -> tuple[Content, bytes]:
        """Return what moves a link, also packed. Raises ``TraceError`` for an unknown file."""
        if trace.rate or trace.delay:
            image = self._whole.get(trace.digest)
            if image is None:
                raise TraceError(
                    f"trace {trace.rate or trace.delay}: the lab has not received this file: it "
                    "comes with the scenario that names it"
                )
            return unpack(image), image
        content = compute(trace)
        return content, pack(content)

    def open(self, trace: Trace) -> Moving:
        """Return what moves a link by a trace that begins now; takes up to a second before.

        Raises ``CommandError`` or ``TraceError``.
        """
        try:
            check_trace(trace)
        except ValueError as error:
            raise CommandError(str(error)) from None
        key = trace.digest or show_trace(with_defaults(trace))
        if key not in self._ready:
            content, image = self.content(trace)
            descriptor = os.memfd_create("trace")
            os.ftruncate(descriptor, len(image))
            with mmap.mmap(descriptor, len(image)) as memory:
                memory[:] = image
            self._ready[key] = content, descriptor
        return Moving(trace, *self._ready[key], time.monotonic())

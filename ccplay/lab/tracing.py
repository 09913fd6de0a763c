"""Traces of flows: the kernel's record of each ACK, by BPF programs and a ring buffer."""

from __future__ import annotations

import asyncio
import contextlib
import mmap
import os
import struct
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import dropwhile, pairwise
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec

from ccplay.bpf.support import BTF, Lack, lack
from ccplay.errors import CcplayError, CommandError, UnsupportedError
from ccplay.lab.connection import Connection
from ccplay.lab.netns import Namespace
from ccplay.model import blocks
from ccplay.model.base import Event
from ccplay.model.events import TraceEnded, TraceLost, TraceStarted
from ccplay.model.samples import CaStateChanged, TraceSamples
from ccplay.model.values import INFINITE_SSTHRESH

# --- the tracer: reads records of each segment from a ring buffer that BPF programs fill ----------
# The programs are attached through file descriptors, so the kernel removes them with the process.
# For the ring, see Documentation/bpf/ringbuf.rst.

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


class SegmentRecord(NamedTuple):
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
    if tracepoint not in _present_tracepoints():
        return Lack("this kernel does not have that tracepoint", "Linux 5.19 or newer has it")
    return None


@cache
def _present_tracepoints() -> set[str]:
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
        from ccplay.bpf.libbpf import Programs  # noqa: PLC0415

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

    def drain(self) -> list[SegmentRecord]:
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


def complete(data: bytes) -> list[SegmentRecord]:
    """Return the records up to the first that is still being written."""
    found = list(map(SegmentRecord._make, _RECORD.iter_unpack(data)))
    busy = (at for at, each in enumerate(found) if each.header & _BUSY)
    return found[: next(busy, len(found))]


# --- traces of flows: the kernel's record of each ACK, matched to the flow by socket cookie -------

_LINGER_S = 1.0
"""Seconds to wait for the last ACKs of a flow that has ended."""

_AWAITED_S = 15.0
"""Seconds after which an expected trace is given up; a network waits up to 10 s for traffic."""

_REPORT_MISSING_S = 1.0
"""Seconds between reports of missed segments."""


class SegmentCount(msgspec.Struct):
    """Segments of a connection that the trace reported, and those it missed.

    The kernel's count of segments leads ours by those in the socket's backlog, which is empty now
    and then. So the smallest lead of an interval, minus that of the first interval, is the number
    of segments missed. Those missed before the first record or after the last are unknown.
    """

    reported: int = 0
    ca_state: int | None = None
    """Last reported congestion state; None before the first record."""
    ahead: int | None = None
    """Smallest lead in the newest records."""
    least: int | None = None
    """Smallest lead since the last call of ``missing``."""
    before: int | None = None
    """Smallest lead in the first interval: the segments from before the trace."""
    missed: int = 0

    def add_records(self, records: list[SegmentRecord]) -> None:
        """Count the segments of new records."""
        ahead = []
        for each in records:
            self.reported += each.segments
            ahead.append(each.segs_in - self.reported)
        if ahead:
            self.ahead = min(ahead)
            self.least = self.ahead if self.least is None else min(self.least, self.ahead)

    def missing(self, *, at_the_end: bool) -> int:
        """Return the number of segments missed since the last call."""
        newest = self.ahead if at_the_end else self.least
        self.before = self.least if self.before is None else self.before
        if newest is None or self.before is None:
            return 0
        lacking = newest - self.before
        more = max(lacking - self.missed, 0)
        self.least, self.missed = None, self.missed + more
        return more


class _Trace(msgspec.Struct):
    """A flow under trace."""

    flow: str
    senders: frozenset[Sender]
    connections: list[Connection] = msgspec.field(default_factory=list)
    """Connections of the flow; empty until they are known."""
    counts: dict[str, SegmentCount] = msgspec.field(
        default_factory=lambda: defaultdict(SegmentCount)
    )
    """Segment counts by the connection's name."""
    until: float = 0.0
    """Lab time in seconds at which the trace ends unless the flow is running."""
    since_us: int | None = None
    """Time of CLOCK_MONOTONIC at which the flow began; None until the trace is requested, so that
    its records wait."""

    @property
    def known(self) -> bool:
        """Whether the flow's connections and all their cookies are known."""
        return bool(self.connections) and all(each.cookie for each in self.connections)


class Tracing:
    """All traces of a lab. Closing the tracer removes everything from the kernel."""

    def __init__(
        self,
        connections: Callable[[str], list[Connection]],
        runs: Callable[[str], bool],
        emit: Callable[[Event], None],
        clock: Callable[[], float],
        *,
        start: float,
        expected: Iterable[str] = (),
    ) -> None:
        """Start empty; ``connections`` returns a flow's connections, ``runs`` whether it runs.

        ``clock`` began at ``start``, a moment of ``time.monotonic``. The flows ``expected`` will be
        traced from their start.
        """
        self._expected = set(expected)
        self._connections, self._runs = connections, runs
        self._emit, self._clock = emit, clock
        self._epoch_us = round(start * 1e6)
        self._traces: dict[str, _Trace] = {}
        self._tracer: Tracer | None = None
        # Records by cookie, of connections whose flow is not known yet.
        self._unclaimed: dict[int, list[SegmentRecord]] = {}
        self._missing_reported_at = 0.0

    async def prepare(self) -> None:
        """Load the tracer, so that the first ACK of a new flow is not missed."""
        # An error is reported when a trace is requested.
        with contextlib.suppress(CcplayError):
            await self._ready()

    def expect(self, flow: str, namespace: Namespace, sports: range) -> None:
        """Keep the records of a flow that is about to start, if its trace is expected."""
        if flow in self._expected and self._tracer is not None:
            self._expected.remove(flow)
            senders = frozenset((namespace.number, sport) for sport in sports)
            # An error is reported when the trace is requested.
            with contextlib.suppress(CcplayError):
                self._tracer.listen(self._senders() | senders)
                self._traces[flow] = _Trace(flow, senders, until=self._clock() + _AWAITED_S)

    async def start(self, flow: str, namespace: Namespace, sports: range, since: float) -> None:
        """Trace a flow that sends from these ports of a node, ``since`` a lab time in seconds.

        It need not be open yet.

        Raises ``CommandError`` if it is already traced, ``UnsupportedError`` if it can't be.
        """
        trace = self._traces.get(flow)
        if trace is not None and trace.since_us is not None:
            raise CommandError(f"flow {flow} is already traced")
        if trace is None:
            trace = _Trace(flow, frozenset((namespace.number, sport) for sport in sports))
        try:
            tracer = await self._ready()
            tracer.listen(self._senders() | trace.senders)
        except CcplayError as error:
            raise UnsupportedError(f"flow {flow} is sampled, not traced: {error}") from None
        trace.since_us, trace.until = self._epoch_us + round(since * 1e6), 0.0
        self._traces[flow] = trace
        self._emit(TraceStarted(t=self._clock(), flow=flow))

    def stop(self, flow: str) -> None:
        """End a trace. Raises ``CommandError`` if there is none."""
        asked = [each.flow for each in self._traces.values() if each.since_us is not None]
        if flow not in asked:
            there = ", ".join(asked) or "none"
            raise CommandError(f"flow {flow!r} is not traced; traced: {there}")
        self.collect()
        if flow in self._traces:
            self._end(self._traces[flow])

    def collect(self) -> None:
        """Report all new records; costs nothing if no flow is traced."""
        if not self._traces or self._tracer is None:
            return
        now = self._clock()
        for trace in self._traces.values():
            if trace.since_us is not None and self._runs(trace.flow):
                trace.until = now + _LINGER_S
        over = [each for each in self._traces.values() if now > each.until]
        for record in self._tracer.drain():
            self._unclaimed.setdefault(record.cookie, []).append(record)
        for trace in self._traces.values():
            if trace.since_us is not None:
                trace.connections = trace.connections or self._connections(trace.flow)
            for connection in trace.connections:
                self._report(trace, connection)
        if all(trace.known for trace in self._traces.values()):
            # The remaining records belong to traces that have just ended.
            self._unclaimed.clear()
        if now >= self._missing_reported_at + _REPORT_MISSING_S:
            self._missing_reported_at = now
            for trace in self._traces.values():
                self._report_missing(trace, at_the_end=False)
        for trace in over:
            self._end(trace)

    def close(self) -> None:
        """End every trace."""
        self.collect()
        for trace in list(self._traces.values()):
            self._end(trace)
        if self._tracer is not None:
            self._tracer.close()
            self._tracer = None

    async def _ready(self) -> Tracer:
        if self._tracer is None:
            # Loading takes 0.1 s, building a second, and sweeps must continue.
            self._tracer = await asyncio.to_thread(Tracer)
        return self._tracer

    def _senders(self) -> set[Sender]:
        return {sender for trace in self._traces.values() for sender in trace.senders}

    def _end(self, trace: _Trace) -> None:
        del self._traces[trace.flow]
        if self._tracer is not None:
            self._tracer.listen(self._senders())
        if trace.since_us is None:
            return
        self._report_missing(trace, at_the_end=True)
        segments = sum(each.reported for each in trace.counts.values())
        self._emit(TraceEnded(t=self._clock(), flow=trace.flow, segments=segments))

    def _report(self, trace: _Trace, connection: Connection) -> None:
        """Report the new records of a connection."""
        name = connection.name
        records = self._unclaimed.pop(connection.cookie, []) if connection.cookie else []
        # What opened the connection is acknowledged before the moment of a flow that waits for it.
        since_ns = 1000 * (trace.since_us or 0)
        records = [*dropwhile(lambda each: each.ns < since_ns, records)]
        segments = [each for each in records if each.segments]
        for at in range(0, len(segments), blocks.LONGEST):
            self._emit(samples(name, segments[at : at + blocks.LONGEST], self._epoch_us))
        count = trace.counts[name]
        count.add_records(records)
        for each in records:
            if each.ca_state != count.ca_state:
                count.ca_state = each.ca_state
                t = (each.ns // 1000 - self._epoch_us) / 1e6
                self._emit(CaStateChanged(t=t, flow=name, ca_state=each.ca_state))

    def _report_missing(self, trace: _Trace, *, at_the_end: bool) -> None:
        counts = trace.counts.values()
        if missed := sum(each.missing(at_the_end=at_the_end) for each in counts):
            self._emit(TraceLost(t=self._clock(), segments=missed))


def samples(name: str, segments: Sequence[SegmentRecord], epoch_us: int) -> TraceSamples:
    """Return the samples of a connection at its segments; times count from ``epoch_us``."""
    us = [each.ns // 1000 - epoch_us for each in segments]
    thresholds = [each.ssthresh for each in segments]
    return TraceSamples(
        t=us[0] / 1e6,
        flow=name,
        after_us=[after - before for before, after in pairwise(us)],
        cwnd=blocks.row([each.cwnd for each in segments]),
        ssthresh=blocks.row([None if each == INFINITE_SSTHRESH else each for each in thresholds]),
        srtt_us=blocks.row([each.srtt_us for each in segments]),
        snd_wnd=blocks.row([each.snd_wnd for each in segments]),
    )

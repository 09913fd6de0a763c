"""Traces of flows: what the kernel says of each ACK, joined to the flow by its socket's cookie."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice, pairwise

from ccplay import blocks
from ccplay.errors import CommandError, UnsupportedError
from ccplay.lab import perf, tracepoints
from ccplay.lab.inet_diag import Connection
from ccplay.lab.perf import Rings
from ccplay.lab.tracepoints import PROBE, STATE_SET, Tracepoint, Unpack
from ccplay.model import (
    INFINITE_SSTHRESH,
    CaStateChanged,
    Event,
    TraceEnded,
    TraceLost,
    TraceSamples,
    TraceStarted,
)

PROBE_FIELDS = ("snd_cwnd", "ssthresh", "snd_wnd", "srtt", "sock_cookie", "skaddr")
STATE_FIELDS = ("skaddr", "cong_state")
"""A state change does not tell the cookie; the address of its socket, which ACKs tell, joins it."""

_LONGEST_TEST = 4000
"""The kernel takes a page of text."""

_MOST_STRANGERS = 1000
"""So many sockets may send from the ports of a flow whose cookie is not known yet."""

_TELL_LOST_S = 1.0

Row = tuple[int, ...]


def reader(tracepoint: Tracepoint) -> Unpack:
    """Return what reads a moment and the fields that we want. Raises ``UnsupportedError``."""
    fields = PROBE_FIELDS if tracepoint.name == PROBE else STATE_FIELDS
    return tracepoint.unpacker(fields, perf.BEFORE)


def refusal(name: str) -> str:
    """Say why a tracepoint is of no use here, tried for real; empty where it is."""
    try:
        tracepoint = tracepoints.read(name)
        reader(tracepoint)
    except UnsupportedError as error:
        return str(error)
    return perf.refusal()


@dataclass(slots=True)
class _Told:
    """A connection under trace, and what has been told of it."""

    connection: Connection
    us: int = 0
    """Moment of the newest segment: nothing is told of after what came later."""
    segments: int = 0
    untold: int | None = None
    """How many more than ``segments`` the kernel counts: those before the trace, and missed ones.

    None before both were first known at one moment.
    """
    address: int = 0
    """Of its socket in the kernel; 0 before its first segment."""
    ca_state: int | None = None


@dataclass(slots=True)
class _Trace:
    """A flow under trace."""

    flow: str
    descriptors: list[int]
    told: list[_Told] = field(default_factory=list)
    """Empty before it is known which connections are its own."""
    segments: int = 0


class Tracing:
    """All traces of a lab. The kernel keeps nothing of them once our descriptors are closed."""

    def __init__(
        self,
        connections: Callable[[str], list[Connection]],
        runs: Callable[[str], bool],
        emit: Callable[[Event], None],
        clock: Callable[[], float],
    ) -> None:
        """Begin with none: ``connections`` gives those of a flow, ``runs`` says whether it does."""
        self._connections, self._runs = connections, runs
        self._emit, self._clock = emit, clock
        self._epoch_us = round((time.monotonic() - clock()) * 1e6)
        self._traces: dict[str, _Trace] = {}
        self._rings: Rings | None = None
        self._points: list[Tracepoint] = []
        self._readers: dict[int, Unpack] = {}
        # What came before it was known whose it is: by cookie, and by address.
        self._segments: dict[int, list[Row]] = {}
        self._changes: dict[int, list[Row]] = {}
        self._lost, self._lost_told = 0, 0.0

    async def start(self, flow: str, sports: range) -> None:
        """Begin to trace a flow that sends from these ports; it need not be open yet.

        Raises ``CommandError`` and ``UnsupportedError``.
        """
        if flow in self._traces:
            raise CommandError(f"flow {flow} is traced already")
        connections = self._connections(flow)
        try:
            # The kernel takes some 10 ms for it, in which sweeps must go on.
            descriptors = await asyncio.to_thread(self._listen, condition(connections, sports))
        except UnsupportedError as error:
            raise UnsupportedError(f"flow {flow} is sampled, not traced: {error}") from None
        self._traces[flow] = _Trace(flow, descriptors)
        self._emit(TraceStarted(t=self._clock(), flow=flow))

    def stop(self, flow: str) -> None:
        """End a trace. Raises ``CommandError`` where there is none."""
        if flow not in self._traces:
            there = ", ".join(self._traces) or "none"
            raise CommandError(f"flow {flow!r} is not traced; traced: {there}")
        self.collect()
        if flow in self._traces:
            self._end(self._traces[flow])

    def collect(self, swept: tuple[float, float] | None = None) -> None:
        """Tell all that has come since; costs nothing where no flow is traced.

        ``swept`` is when the last sweep began and ended: what it read is compared.
        """
        if not self._traces or self._rings is None:
            return
        over = [each for each in self._traces.values() if not self._runs(each.flow)]
        self._drain(self._rings)
        for trace in self._traces.values():
            if not trace.told:
                trace.told = [_Told(each) for each in self._connections(trace.flow)]
            for told in trace.told:
                trace.segments += self._tell(told, swept if trace not in over else None)
        self._forget_strangers()
        self._tell_lost()
        for trace in over:
            self._end(trace)

    def close(self) -> None:
        """End every trace."""
        self.collect()
        for trace in list(self._traces.values()):
            self._end(trace)
        if self._rings is not None:
            self._rings.close()
            self._rings = None

    def _listen(self, tests: dict[str, str]) -> list[int]:
        """Have the kernel write what meets the tests, by tracepoint; return the descriptors."""
        if self._rings is None:
            points = [tracepoints.read(PROBE)]
            if not refusal(STATE_SET):
                points.append(tracepoints.read(STATE_SET))
            self._readers = {each.id: reader(each) for each in points}
            self._points = points
            self._rings = Rings()
        descriptors: list[int] = []
        for point in self._points:
            try:
                descriptors += self._rings.watch(point, tests[point.name])
            except BaseException:
                perf.unwatch(descriptors)
                raise
        return descriptors

    def _end(self, trace: _Trace) -> None:
        del self._traces[trace.flow]
        perf.unwatch(trace.descriptors)
        self._emit(TraceEnded(t=self._clock(), flow=trace.flow, segments=trace.segments))

    # --- records ----------------------------------------------------------------------------

    def _drain(self, rings: Rings) -> None:
        records, lost = rings.drain(self._readers)
        self._lost += lost
        for point, key, rows in zip(
            self._points, (5, 1), (self._segments, self._changes), strict=False
        ):
            for row in records[point.id]:
                rows.setdefault(row[key], []).append(row)

    def _tell(self, told: _Told, swept: tuple[float, float] | None) -> int:
        """Tell what has come of a connection; return how many segments that is."""
        name, cookie = told.connection.name, told.connection.cookie
        rows = self._segments.pop(cookie, []) if cookie else []
        if rows:
            told.address = rows[-1][6]
            remaining = iter(rows)
            while batch := list(islice(remaining, blocks.LONGEST)):
                event, told.us = samples(name, batch, self._epoch_us, told.us)
                self._emit(event)
        changes = self._changes.pop(told.address, [])
        for row in changes:
            self._change(told, self._us(row[0]) / 1e6, row[2])
        told.segments += len(rows)
        if swept is not None and told.connection.info and told.address:
            self._compare(told, rows, changes, swept)
        return len(rows)

    def _change(self, told: _Told, t: float, ca_state: int) -> None:
        if ca_state != told.ca_state:
            told.ca_state = ca_state
            self._emit(CaStateChanged(t=t, flow=told.connection.name, ca_state=ca_state))

    def _compare(
        self, told: _Told, rows: list[Row], changes: list[Row], swept: tuple[float, float]
    ) -> None:
        """Look whether the kernel has told all that a sweep counted; some don't when a CPU idles.

        Where anything came during the sweep, nothing can be said.
        """
        begun, ended = (round(each * 1e6) for each in swept)
        later = [self._us(row[0]) for row in rows if self._us(row[0]) > begun]
        if not later or later[0] > ended:
            untold = told.connection.field("segs_in") - told.segments + len(later)
            if told.untold is not None:
                self._lost += max(untold - told.untold, 0)
            told.untold = max(untold, told.untold or untold)
        if not changes or self._us(changes[-1][0]) <= begun:
            self._change(told, swept[0], told.connection.field("ca_state"))

    def _us(self, nanoseconds: int) -> int:
        """Return a moment of CLOCK_MONOTONIC in microseconds of the lab's clock."""
        return max(nanoseconds // 1000 - self._epoch_us, 0)

    def _forget_strangers(self) -> None:
        """Drop records of other labs with the same ports, unless one of them may yet be ours."""
        told = [each for trace in self._traces.values() for each in trace.told]
        waiting = not all(each.told for each in self._traces.values())
        if not waiting and all(each.connection.cookie for each in told):
            self._segments.clear()
        if not waiting and all(each.address for each in told):
            self._changes.clear()
        for rows in (self._segments, self._changes):
            while len(rows) > _MOST_STRANGERS:
                del rows[next(iter(rows))]

    def _tell_lost(self) -> None:
        now = self._clock()
        if self._lost and now >= self._lost_told + _TELL_LOST_S:
            self._emit(TraceLost(t=now, segments=self._lost))
            self._lost, self._lost_told = 0, now


def samples(name: str, rows: list[Row], epoch_us: int, least_us: int) -> tuple[TraceSamples, int]:
    """Return what rows of the probe say of a connection, and the moment of the last.

    Moments count from ``epoch_us``, and none is before ``least_us``: CPUs are read one after the
    other, and what one of them tells may be a little older than what another has told.
    """
    moments, cwnd, ssthresh, snd_wnd, srtt, *_ = zip(*rows, strict=True)
    us = [max(each // 1000 - epoch_us, least_us) for each in moments]
    thresholds: list[int | None] = [
        None if each == INFINITE_SSTHRESH else each for each in ssthresh
    ]
    event = TraceSamples(
        t=us[0] / 1e6,
        flow=name,
        after_us=[after - before for before, after in pairwise(us)],
        cwnd=blocks.row(cwnd),
        ssthresh=blocks.row(thresholds),
        srtt_us=blocks.row(srtt),
        snd_wnd=blocks.row(snd_wnd),
    )
    return event, us[-1]


def condition(connections: list[Connection], sports: range) -> dict[str, str]:
    """Return for each tracepoint the filter that lets a flow through and hardly anything else.

    Cookies belong to one socket, but state changes do not tell them, and sockets that are not open
    yet have none. Other labs may send from the same ports.
    """
    by_ports = f"sport >= {sports.start} && sport < {sports.stop}"
    cookies = [each.cookie for each in connections if each.cookie]
    by_cookies = " || ".join(f"sock_cookie == {each}" for each in cookies)
    complete = connections and len(cookies) == len(connections)
    if complete and len(by_cookies) <= _LONGEST_TEST:
        return {PROBE: by_cookies, STATE_SET: by_ports}
    return {PROBE: by_ports, STATE_SET: by_ports}

"""Limits the memory that reading a recording may take."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

from ccplay.errors import WireError
from ccplay.model.base import Event
from ccplay.model.samples import CaStateChanged, Sweep, Sweeps, TraceSamples
from ccplay.model.traffic import STARTED
from ccplay.model.traffic_events import FlowStarted

MOST_TRANSFERS = 10_000
"""Greatest number of names of traffic in a recording; each stream of a flow counts as one."""

MOST_QUEUES = 1000
"""Greatest number of queues in a recording, of links and of their classes."""

MOST_BYTES = 1 << 30
"""Greatest number of bytes of samples in memory. An hour of 8 flows at 200 Hz takes a quarter, or
0.6 with 16 variables of every flow's algorithm; a minute of 1,000 flows at 200 Hz takes half."""

KEPT = 1 << 20
"""Greatest number of sweeps kept for one flow or queue; see ``series.Timeline``."""

OF_FLOW, OF_QUEUE, OF_SEGMENT, _OF_VARIABLE = 40, 24, 24, 4
"""Bytes that ``LabState`` keeps per sweep of a flow, per sweep of a queue, per traced segment, and
per sweep of a variable."""


class RecordingLimits:
    """Counts what a recording takes in memory and raises ``WireError`` beyond the limits.

    The length of a line is no measure: a few bytes may stand for many values, and a flow that
    returns after a long time adds a long gap.
    """

    def __init__(self) -> None:
        self._swept = 0.0
        self._ticks = 0
        self._transfers = 0
        self._bytes = 0
        self._queues: set[str] = set()
        self._held: dict[Hashable, int] = {}
        self._until: dict[Hashable, int] = {}
        self._traced: dict[tuple[str, type], float] = {}

    def check(self, event: object) -> None:
        """Count the next event. Raises ``WireError`` beyond a limit."""
        if isinstance(event, Sweep):
            self._sweep(event, 1, event.t)
        elif isinstance(event, Sweeps):
            span_us = sum(event.after_us)
            self._sweep(event, len(event.after_us) + 1, event.t + span_us / 1e6)
        elif isinstance(event, TraceSamples | CaStateChanged):
            self._trace(event)
        elif isinstance(event, Event):
            self._other(event)

    def _sweep(self, event: Sweep | Sweeps, sweeps: int, end: float) -> None:
        if event.t < self._swept - 1e-6:
            raise WireError(f"time goes back, from {self._swept:.6f} to {event.t:.6f} s")
        self._swept = end
        until = self._ticks + sweeps
        if event.tcp is not None:
            self._keep(event.tcp.flow, until, OF_FLOW)
            self._keep_own(event.tcp.flow, event.own, until)
        if event.qdisc is not None:
            self._queues.update(event.qdisc.link)
            if len(self._queues) > MOST_QUEUES:
                raise WireError(f"more than {MOST_QUEUES:,} queues")
            self._keep(event.qdisc.link, until, OF_QUEUE)
            self._keep_own(event.qdisc.link, event.queue_own, until)
        self._ticks = until
        self._check_bytes()

    def _trace(self, event: TraceSamples | CaStateChanged) -> None:
        key = (event.flow, type(event))
        if event.t < self._traced.get(key, 0.0) - 1e-6:
            raise WireError(f"a trace of flow {event.flow} goes back to {event.t:.6f} s")
        after_us = event.after_us if isinstance(event, TraceSamples) else []
        self._traced[key] = event.t + sum(after_us) / 1e6
        self._bytes += (len(after_us) + 1) * OF_SEGMENT
        self._check_bytes()

    def _keep_own(
        self, members: Sequence[str], own: Mapping[str, Sequence[object]], until: int
    ) -> None:
        for name, rows in own.items():
            known = zip(members, rows, strict=True)
            keys = ((member, name) for member, row in known if row is not None)
            self._keep(keys, until, _OF_VARIABLE)

    def _keep(self, keys: Iterable[Hashable], until: int, size: int) -> None:
        """Count ``size`` bytes per tick for each key's series, gaps included, until ``until``."""
        for key in keys:
            held = self._held.get(key, 0)
            if held < KEPT:
                now = min(held + until - self._until.get(key, self._ticks), KEPT)
                self._held[key] = now
                self._bytes += (now - held) * size
            self._until[key] = until

    def _check_bytes(self) -> None:
        if self._bytes > MOST_BYTES:
            raise WireError(
                f"its samples need more than the limit of {MOST_BYTES >> 30} GiB of memory"
            )

    def _other(self, event: Event) -> None:
        if isinstance(event, FlowStarted):
            self._transfers += event.streams
        elif isinstance(event, STARTED):
            self._transfers += 1
        if self._transfers > MOST_TRANSFERS:
            raise WireError(f"more than {MOST_TRANSFERS:,} names of traffic")

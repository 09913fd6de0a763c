"""Bounds: what a recording may ask of whoever reads it."""

from __future__ import annotations

from collections.abc import Sequence

from ccplay.errors import WireError
from ccplay.model.base import Event
from ccplay.model.events import DownloadStarted, FlowStarted, PingStarted, UdpStarted
from ccplay.model.samples import CaStateChanged, Sweep, Sweeps, TraceSamples

MOST_TRANSFERS = 10_000
"""Flows' streams, downloads, pings and UDP."""

MOST_SAMPLES = 1 << 26
"""Sweeps, of every flow and queue, that are kept: nearly 3 GB."""

KEPT = 1 << 20
"""So many sweeps of one flow are kept at the most; see ``series.Timeline``."""


class Bounds:
    """Follows a recording and raises ``WireError`` where it goes too far for this machine.

    A line of a few bytes may stand for many values, and a flow that comes back after a long time
    for a long gap.
    """

    def __init__(self) -> None:
        self._swept = 0.0
        self._ticks = 0
        self._transfers = 0
        self._samples = 0
        self._held: dict[str, int] = {}
        self._until: dict[str, int] = {}
        self._traced: dict[tuple[str, type], float] = {}

    def check(self, event: object) -> None:
        """Take the next event into account."""
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
        if event.tcp is not None:
            self._sample(event.tcp.flow, sweeps)
            self._samples += sum(len(each) for each in event.own.values()) * sweeps
        if event.qdisc is not None:
            self._sample(event.qdisc.link, sweeps)
        self._ticks += sweeps
        if self._samples > MOST_SAMPLES:
            raise WireError(f"more than {MOST_SAMPLES} samples; no more are read")

    def _trace(self, event: TraceSamples | CaStateChanged) -> None:
        key = (event.flow, type(event))
        if event.t < self._traced.get(key, 0.0) - 1e-6:
            raise WireError(f"a trace of flow {event.flow} goes back to {event.t:.6f} s")
        after_us = event.after_us if isinstance(event, TraceSamples) else []
        self._traced[key] = event.t + sum(after_us) / 1e6
        self._samples += len(after_us) + 1
        if self._samples > MOST_SAMPLES:
            raise WireError(f"more than {MOST_SAMPLES} samples; no more are read")

    def _sample(self, names: Sequence[str], sweeps: int) -> None:
        end = self._ticks + sweeps
        for name in names:
            held = self._held.get(name, 0)
            if held < KEPT:
                self._held[name] = held + end - self._until.get(name, self._ticks)
                self._samples += self._held[name] - held
            self._until[name] = end

    def _other(self, event: Event) -> None:
        if isinstance(event, FlowStarted):
            self._transfers += event.streams
        elif isinstance(event, DownloadStarted | PingStarted | UdpStarted):
            self._transfers += 1
        if self._transfers > MOST_TRANSFERS:
            raise WireError(f"more than {MOST_TRANSFERS} flows, downloads, pings and UDP")

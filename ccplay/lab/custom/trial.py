"""Tries a discipline on generated traffic, and reports its mistakes.

Four flows together send at 0.5, 1 and 2 times the rate of a link; one of them uses ECN, one sends
small packets. At the end of each load the waiting packets are sent. Every packet must leave or be
dropped exactly once.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import sys
import time
from collections.abc import Iterator, Mapping

import msgspec

from ccplay.lab.custom import limits, loading
from ccplay.lab.custom.limits import Printed
from ccplay.lab.custom.loading import MisuseError, SourceError
from ccplay.lab.disciplines.base import ECT_0, NOT_ECT, Discipline, Packet
from ccplay.model.base import Option

RATE = 10_000_000
"""Rate of the link in bits per second."""

_LOADS = (0.5, 1.0, 2.0)
_LOAD_S = 2.0
"""Duration of each load in seconds."""

_PATIENCE_S = 0.5
_LOOK_S = 1e-3
_LOOK_EVERY = 20
"""Number of packets between two calls of ``statistics``."""

_SLOW_S = 80e-6
"""Seconds of CPU per packet above which the discipline is too slow for 100 Mbit/s."""

_LONGEST_S = 30.0
"""Longest time of a trial in seconds."""

_REHEARSED = 20
"""Number of packets that pass through a discipline before it serves a link."""

_REHEARSAL_S = 5.0
"""Longest time in seconds of loading a discipline and passing these packets."""

_SMALL, _FULL = 98, 1514
_MEAN = (_SMALL + 3 * _FULL) / 4
"""Mean length in bytes of the packets of four flows, of which one sends small packets."""


class TrialResult(msgspec.Struct):
    """Result of trying a discipline."""

    mistakes: list[SourceError] = msgspec.field(default_factory=list)
    packets: int = 0
    sent: int = 0
    dropped: int = 0
    marked: int = 0
    cost_us: float = 0.0
    """Microseconds of CPU per packet."""
    printed: list[str] = msgspec.field(default_factory=list)
    """First lines that it printed."""

    @property
    def slow(self) -> bool:
        """Whether the discipline is too slow for 100 Mbit/s."""
        return self.cost_us > _SLOW_S * 1e6


def try_discipline(name: str, source: str) -> TrialResult:
    """Try a discipline on generated traffic, with a new object for each load."""
    trial = TrialResult()
    begun = time.process_time()
    for load in _LOADS:
        for mistake in _mistakes(name, source, load, trial):
            if str(mistake) not in map(str, trial.mistakes):
                trial.mistakes.append(mistake)
    trial.cost_us = (time.process_time() - begun) * 1e6 / max(1, trial.packets)
    return trial


def try_in_process(name: str, source: str) -> TrialResult:
    """Try a discipline as ``try_discipline`` does, in a process of its own that is limited."""
    try:
        result = limits.run_alone(name, lambda: _encoded(name, source), _LONGEST_S)
    except SourceError as fault:
        return TrialResult([fault])
    return msgspec.json.decode(
        result, type=TrialResult, dec_hook=lambda _, words: SourceError(name, *words)
    )


def _encoded(name: str, source: str) -> bytes:
    printed = Printed()
    sys.stdout = sys.stderr = printed
    trial = try_discipline(name, source)
    trial.printed = printed.due_lines(time.monotonic()).splitlines()
    return msgspec.json.encode(trial, enc_hook=lambda fault: (fault.line, fault.words))


def rehearse(name: str, source: str, options: Mapping[str, Option]) -> None:
    """Load a discipline and let some packets pass, in a process of its own that is limited.

    Raises ``SourceError`` if it can't be loaded, or ends the process. Other exceptions over packets
    are not reported: where it serves, a FIFO takes over, and no packet is lost.
    """

    def work() -> bytes:
        sys.stdout = sys.stderr = Printed()
        try:
            with limits.Limited():
                discipline = loading.make_discipline(name, source, options, seed=1)
        except SourceError as fault:
            return msgspec.json.encode((fault.line, fault.words))
        with contextlib.suppress(Exception, SystemExit):
            for now, packet in itertools.islice(_traffic(1.0), _REHEARSED):
                packet.arrived = now
                with limits.Limited():
                    discipline.arrive(packet, now)
                    discipline.depart(now)
                    discipline.statistics()
        return b"null"

    if found := msgspec.json.decode(limits.run_alone(name, work, _REHEARSAL_S)):
        raise SourceError(name, *found)


def _mistakes(name: str, source: str, load: float, trial: TrialResult) -> Iterator[SourceError]:
    try:
        with limits.Limited():
            discipline = loading.make_discipline(name, source, {}, seed=1)
    except SourceError as fault:
        yield fault
        return
    kind = type(discipline)
    try:
        _Run(discipline, trial).through(load)
        with limits.Limited():
            loading.check_statistics(name, kind, discipline.statistics())
        trial.dropped += discipline.drops.total()
        trial.marked += discipline.marks
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it is the user's code
        yield loading.explain_error(name, error, kind)


class _Run:
    """A link with its queue and a clock."""

    def __init__(self, discipline: Discipline, trial: TrialResult) -> None:
        self._discipline, self._trial = discipline, trial
        self._waiting: dict[int, Packet] = {}
        self._free = self._since = 0.0
        self._held_since = 0.0

    def through(self, load: float) -> None:
        """Enqueue and send all packets. Raises ``MisuseError``, and what the discipline raises."""
        now = 0.0
        for now, packet in _traffic(load):
            self._send(now)
            packet.arrived = now
            if not self._waiting:
                self._since = now
            self._waiting[packet.number] = packet
            self._trial.packets += 1
            with limits.Limited():
                self._discipline.arrive(packet, now)
            self._settle()
            if not self._trial.packets % _LOOK_EVERY:
                with limits.Limited():
                    self._discipline.statistics()
        while self._waiting:
            now = max(now + _LOOK_S, self._free)
            self._send(now)

    def _send(self, now: float) -> None:
        """Send the packets that are due by ``now``."""
        self._free = max(self._free, self._since)
        while self._waiting and self._free <= now:
            with limits.Limited():
                packet = self._discipline.depart(self._free)
            self._settle()
            if packet is None:
                if not self._waiting:
                    return
                self._held_since = self._held_since or self._free
                if self._free - self._held_since > _PATIENCE_S:
                    raise MisuseError(
                        f"dequeue has returned None for {_PATIENCE_S:g} s while "
                        f"{len(self._waiting)} packets wait"
                    )
                self._free += _LOOK_S
                continue
            self._held_since = 0.0
            if self._waiting.pop(packet.number, None) is not packet:
                raise MisuseError("dequeue returned a packet that is no longer waiting")
            self._trial.sent += 1
            self._free += packet.length * 8 / min(RATE, self._discipline.rate or RATE)

    def _settle(self) -> None:
        for packet in self._discipline.dropped:
            if self._waiting.pop(packet.number, None) is None:
                raise MisuseError("drop was called for a packet that is no longer waiting")
        self._discipline.dropped.clear()


def _traffic(load: float) -> Iterator[tuple[float, Packet]]:
    """Yield moments in seconds and packets: Poisson arrivals, the same in every trial."""
    draw = random.Random(load)  # noqa: S311 - it is traffic, not a key
    now, number = 0.0, 0
    while now < _LOAD_S:
        flow = draw.randrange(4)
        now += draw.expovariate(load * RATE / 8 / _MEAN)
        number += 1
        yield (
            now,
            Packet(
                _SMALL if flow == 3 else _FULL,
                flow,
                ECT_0 if flow == 1 else NOT_ECT,
                number=number,
                source=0x0A000001 + flow % 2,
                destination=0x0A000101 + flow // 2,
                dscp=46 if flow == 3 else 0,
            ),
        )

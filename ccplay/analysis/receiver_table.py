"""The receiver's table: bytes delivered by every flow at each whole second, and the checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import msgspec

from ccplay.analysis.checkpoint import Checkpoint, checkpoint, fixed_sizes
from ccplay.state.lab_state import Flow, LabState

_TINY_S = 1e-6
"""Tolerance in seconds for moments as floats: 3 s after 0.1 s may be slightly above 3.1 s."""


class Second(msgspec.Struct, frozen=True):
    """All flows at one whole second, as of the last sweep before it."""

    elapsed_s: int
    """Seconds since the first flow opened its connection."""
    bytes: tuple[int | None, ...]
    """Acknowledged payload in bytes, in the order of the flows; None before a flow's start."""
    rates_bps: tuple[float | None, ...]
    """Rates over the previous second in bits per second, in the order of the flows."""


class Receiver:
    """The table at one moment of a session; rows are computed on demand."""

    def __init__(self, state: LabState, until: float) -> None:
        """Read ``state`` as of ``until``."""
        self._state, self._until = state, until
        self._streams: dict[str, list[Flow]] = {}
        for flow in state.flows.values():
            if flow.kind == "flow":
                self._streams.setdefault(flow.parent, []).append(flow)
        self.sizes = fixed_sizes(state)
        """Flows of a fixed size with their bytes, in the order of the scenario."""
        self.flows = self._started(until)
        """The flows started so far; flows of a fixed size come first."""

    def rows(self, most: int | None = None, *, after: int = 0) -> list[Second]:
        """Return the rows of all whole seconds ``after`` one, or the last ``most`` of them."""
        if not self.flows:
            return []
        start = self._start(self.flows)
        ended = [self._state.flows[name].ended for name in self.flows]
        over = max((inf if each is None else each) for each in ended)
        seconds = int(min(self._until, over) - start + _TINY_S)
        first = after + 1 if most is None else max(seconds - most, after) + 1
        rows = (self._row(start, second) for second in range(first, seconds + 1))
        return [row for row in rows if row is not None]

    def checkpoint(self) -> Checkpoint | None:
        """Return the race's checkpoint; None before it."""
        found = checkpoint(self._state)
        return None if found is None or found.t > self._until + _TINY_S else found

    def _started(self, t: float) -> tuple[str, ...]:
        started = [name for name in self._streams if self._state.flows[name].started <= t]
        fixed = [name for name in self.sizes if name in started]
        return (*fixed, *(name for name in started if name not in self.sizes))

    def _start(self, names: Sequence[str]) -> float:
        fixed = [name for name in names if name in self.sizes]
        return min(self._state.flows[name].started for name in fixed or names)

    def _row(self, start: float, second: int) -> Second | None:
        sweeps = self._state.sweeps
        t = start + second
        tick, before = sweeps.before_or_at(t + _TINY_S), sweeps.before_or_at(t - 1 + _TINY_S)
        if tick < sweeps.first:
            return None
        acked = tuple(self._acked(name, tick, t) for name in self.flows)
        rates: tuple[float | None, ...] = (None,) * len(acked)
        if sweeps.first <= before < tick:
            took_s = sweeps.time(tick) - sweeps.time(before)
            earlier = (self._acked(name, before, t - 1) or 0 for name in self.flows)
            rates = tuple(
                None if now is None else (now - then) * 8 / took_s
                for now, then in zip(acked, earlier, strict=True)
            )
        return Second(second, acked, rates)

    def _acked(self, name: str, tick: int, t: float) -> int | None:
        """Return a flow's delivered bytes at a moment, and the sweep."""
        flow = self._state.flows[name]
        if flow.started > t:
            return None
        seen = self._sum(name, tick)
        return max(seen, flow.bytes) if flow.ended is not None and flow.ended <= t else seen

    def _sum(self, name: str, tick: int) -> int:
        return sum(_bytes(each, tick) for each in self._streams[name])


def _bytes(flow: Flow, tick: int) -> int:
    """Return a stream's delivered bytes at a tick."""
    acked = flow.series["bytes_acked"]
    for at in range(min(tick, acked.end - 1), acked.first - 1, -1):
        # A sweep that missed a flow leaves a gap. tcp_info counts the SYN too.
        if (value := acked.at(at)) is not None:
            return max(int(value) - 1, 0)
    return 0

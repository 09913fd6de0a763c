"""Benches: places that make runs. This machine is one; a cluster has many."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Protocol

from ccplay.experiment.handover import Handover
from ccplay.experiment.orders import Finished, Order, carry_out
from ccplay.model.commands import Build
from ccplay.state.lab_state import LabState
from ccplay.stream.sinks import Sink
from ccplay.stream.sources import Source

STARTS = max(1, (os.cpu_count() or 1) // 2)
"""Number of labs that may start at a time: a start takes a core from the labs that measure."""

_KEPT = 0.7
"""Share of the jobs that remain after a failure, like CUBIC's beta (RFC 9438, section 4.6)."""

_PATIENCE = 2
"""Number of times that all jobs must succeed before one more is allowed: a failure costs as many
runs."""


class BenchLostError(Exception):
    """A bench was lost, or refused work, before a run was finished; another has to make it."""


class Bench(Protocol):
    """A place that makes runs, several at a time."""

    window: Window
    """Window that limits the runs in parallel."""

    @property
    def name(self) -> str:
        """Name for messages; empty for this machine."""

    @property
    def machine(self) -> str:
        """Name of the bench's machine, which may have several benches."""

    def lacks(self, order: Order) -> str:
        """Return what the bench's kernel lacks for an order, with the remedy; empty if nothing."""

    async def carry_out(
        self,
        order: Order,
        record: Path | None,
        *,
        watch: Callable[[LabState], None] = lambda _: None,
        share: Callable[[], Sink | None] = lambda: None,
    ) -> Finished:
        """Make a run; write its recording to ``record``.

        ``watch`` receives the state of runs on this machine after every event; ``share`` opens a
        sink for spectators. Raises ``BenchLostError`` if another bench has to make the run, and
        what ``orders.carry_out`` raises.
        """


class Benches(Protocol):
    """The current benches, which may join and leave."""

    changed: asyncio.Event
    """Event set when a bench has joined or left; the waiting side clears it."""

    def there(self) -> Sequence[Bench]:
        """Return the benches that accept runs."""

    def settled(self, order: Order) -> None:
        """Record that an order's outcome is kept, so that benches may delete it."""


class Away(Benches, Protocol):
    """Benches elsewhere, which can continue an experiment by themselves."""

    def pause(self) -> None:
        """Send the benches no more regular queries; current runs continue."""

    async def hand_over(self, handover: Handover) -> None:
        """Let the benches make the rest of an experiment and keep it, without further queries.

        Raises ``LabError`` if they can't be reached.
        """


class Window:
    """The number of runs that a bench makes in parallel, adapted as TCP adapts cwnd.

    The number is reduced when parallel labs starve each other, and grows by one, up to the
    requested number, after as many good runs in a row as would fill the machine twice.
    """

    def __init__(self, most: int) -> None:
        self.jobs = most
        self.most = most
        self._good = 0

    def narrow(self, jobs: int) -> bool:
        """Reduce the number, unless that has been done since a run began among ``jobs``."""
        if jobs == 1 or jobs > self.jobs or self.jobs == 1:
            return False
        self.jobs, self._good = max(1, round(self.jobs * _KEPT)), 0
        return True

    def widen(self, jobs: int) -> bool:
        """Count a good run that began among ``jobs``; return whether one more is now allowed."""
        if self.jobs == self.most or jobs > self.jobs:
            return False
        self._good += 1
        if self._good < _PATIENCE * self.jobs:
            return False
        self.jobs, self._good = self.jobs + 1, 0
        return True


class Door:
    """Limits how many labs start at a time."""

    def __init__(self, width: int | None = None) -> None:
        self._places = asyncio.Semaphore(STARTS if width is None else width)

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[Callable[[], None]]:
        """Wait for a turn to start a lab; yield a function that ends it before the block does."""
        await self._places.acquire()
        with contextlib.ExitStack() as turn:
            turn.callback(self._places.release)
            yield turn.close


class LocalBench:
    """A bench on this machine, or wherever ``open_source`` starts labs."""

    name = ""
    machine = ""

    def __init__(
        self, open_source: Callable[[Build], Source], jobs: int, stop: asyncio.Event
    ) -> None:
        """Prepare the bench; ``stop`` ends every run."""
        self.window = Window(jobs)
        self._open_source = open_source
        self._stop = stop
        self._door = Door()

    def lacks(self, order: Order) -> str:  # noqa: ARG002 - the same for every bench
        """Return nothing: the first lab reports what this kernel lacks."""
        return ""

    async def carry_out(
        self,
        order: Order,
        record: Path | None,
        *,
        watch: Callable[[LabState], None] = lambda _: None,
        share: Callable[[], Sink | None] = lambda: None,
    ) -> Finished:
        """Make a run as soon as no other lab is starting."""
        async with self._door.turn() as end_turn:

            def watched(state: LabState) -> None:
                if state.ready_at is not None:
                    end_turn()
                watch(state)

            sink = None if self._stop.is_set() else share()
            return await carry_out(
                order, self._open_source, self._stop, record=record, watch=watched, share=sink
            )


class Here:
    """The only bench of an experiment on one machine."""

    def __init__(self, bench: Bench) -> None:
        self.changed = asyncio.Event()
        self._bench = bench

    def there(self) -> Sequence[Bench]:
        """Return the bench."""
        return [self._bench]

    def settled(self, order: Order) -> None:
        """Do nothing: this machine keeps no second copy."""

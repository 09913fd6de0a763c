"""Physics on a busy machine: where the lab says that it was starved, a test is tried again.

A bound on physics is no wider for it: a test that fails is only excused where a lab that ran in it
did not keep time by its own judgement, and is skipped with that reason where none ever did. A test
that judges milliseconds compares how late the machine wakes a process, see ``sleeper``.
Where tests run side by side, a further try waits until no other test of physics runs, see ``turn``;
one that fails at last is tried again alone, see ``tests.__main__``.
"""

import asyncio
import functools
import inspect
import os
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from fcntl import LOCK_EX, LOCK_SH, LOCK_UN, flock
from pathlib import Path
from statistics import StatisticsError
from typing import Any, TypeVar, cast

import pytest
from msgspec.structs import replace

from ccplay.analysis.trust import MOST_STEAL, HealthResult, for_want_of_cpu

ATTEMPTS = 3

AGAIN_ALONE = "failed beside others: to be tried again, alone"
"""Reason of a skip that is tried again in the next pass."""

side_by_side = False
"""Whether other tests run at the same time; failed ones are then tried again alone."""

_TOO_FEW = (StatisticsError, ArithmeticError, LookupError)
"""What comes of a mean of nothing, and of the last one of none."""

_GATE, _MACHINE = (os.open(path, os.O_RDONLY) for path in (__file__, Path(__file__).parent))
"""Locks that the processes of all tests share, see flock(2). Only who holds the gate may wait for
the machine, so that one who wants it alone does not wait for those who come later."""

_alone: list[bool] = []
"""For each turn of this process that has not ended whether it has the machine alone."""

Test = TypeVar("Test", bound=Callable[..., Any])
Result = TypeVar("Result")

_noted: list[HealthResult] = []
"""Health of all labs that have ended since a test began."""

_overslept: list[float] = []
"""What each ``sleeper`` reported since a test began."""

MOST_OVERSLEPT_MS = 0.5
"""Largest lateness of a ``sleeper``, p99.5 in ms, beside which a test is judged: half of
the time and half of the share that a test allows whose own p99 is held to 1 ms."""

_SLEEPER = """
import contextlib, os, select, sys, time
with contextlib.suppress(OSError):
    os.sched_setscheduler(0, getattr(os, sys.argv[1]), os.sched_param(sys.argv[1] == "SCHED_FIFO"))
late, due = [], time.monotonic()
while True:
    due += 0.001
    if select.select([0], [], [], max(0, due - time.monotonic()))[0]:
        break
    late.append(time.monotonic() - due)
late.sort()
print(late[int(len(late) * 0.995)] * 1000)
"""
"""Program that wakes each millisecond until stdin ends, and prints its lateness in ms, p99.5."""


def note(health: HealthResult) -> None:
    """Record how well a lab kept time."""
    _noted.append(health)


@contextmanager
def turn(*, alone: bool) -> Iterator[None]:
    """Share the machine with other tests of physics, or wait for them and have it alone."""
    flock(_GATE, LOCK_EX)
    flock(_MACHINE, LOCK_EX if alone else LOCK_SH)
    if not alone:
        flock(_GATE, LOCK_UN)
    _alone.append(alone)
    try:
        yield
    finally:
        _alone.pop()
        flock(_MACHINE, LOCK_UN)
        flock(_GATE, LOCK_UN)


class Measured(dict[str, Result]):
    """Results by name, each measured when a test first uses it, or before by ``measure``.

    A test that uses one is judged by its lab's timekeeping, see ``physical``. One for which the
    machine was too busy is measured again by a test that has the machine alone.
    """

    def __init__(
        self,
        one: Callable[[str], Coroutine[Any, Any, Result]],
        health: Callable[[Result], HealthResult],
    ) -> None:
        super().__init__()
        self._one, self._health = one, health

    def measure(self, names: Sequence[str], at_once: int) -> None:
        """Measure several in this order, some at a time."""
        with turn(alone=False):
            asyncio.run(self._measure(names, asyncio.Semaphore(at_once)))

    async def _measure(self, names: Sequence[str], turns: asyncio.Semaphore) -> None:
        async def one(name: str) -> None:
            async with turns:
                self[name] = await self._one(name)

        tasks = [asyncio.create_task(one(name)) for name in names]
        # An error is raised only once all labs have ended in order.
        await asyncio.wait(tasks)
        await asyncio.gather(*tasks)

    def __missing__(self, name: str) -> Result:
        self[name] = found = asyncio.run(self._one(name))
        return found

    def __getitem__(self, name: str) -> Result:
        found = super().__getitem__(name)
        if any(_alone) and _disturbed(self._health(found)):
            found = self.__missing__(name)
        note(self._health(found))
        return found


@contextmanager
def sleeper(policy: str = "SCHED_FIFO") -> Iterator[None]:
    """Measure how late the machine wakes a process that does nothing else, in the same seconds.

    It has the priority of those that hold packets, or with ``SCHED_OTHER`` that of a lab. Steal of
    2 %, a millisecond at a time, makes 1 % of its wakes and of a queue's departures 0.8 ms late.
    """
    argv = [sys.executable, "-S", "-c", _SLEEPER, policy]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield
        _overslept.append(float(process.communicate()[0]))


def starved(health: HealthResult) -> bool:
    """Return whether the machine was too busy for a lab; a link off its rate may be our own fault.

    A kernel that skipped an algorithm's call counts too: see ``impossible_windows``.
    """
    kept = replace(health, rate_accuracy=None)
    stolen = (health.steal or 0.0) > MOST_STEAL
    return for_want_of_cpu(kept) or stolen or health.impossible_windows > 0


def _disturbed(health: HealthResult) -> bool:
    """Return whether other tests may have disturbed a lab: a late step's programs start slowly."""
    return starved(health) or health.late_steps > 0


def physical(test: Test) -> Test:
    """Let a test of physics, or with a bound on seconds, fail only if its labs kept time."""

    @functools.wraps(test)
    async def tried(*args: Any, **named: Any) -> None:
        for left in reversed(range(ATTEMPTS)):
            with _excused(left), ExitStack() as stack:
                # In a thread, so that a lab that tests share is read on.
                await asyncio.to_thread(stack.enter_context, turn(alone=left < ATTEMPTS - 1))
                await test(*args, **_afresh(named, left))
                return
        _give_up(test)

    @functools.wraps(test)
    def tried_at_once(*args: Any, **named: Any) -> None:
        for left in reversed(range(ATTEMPTS)):
            with _excused(left), turn(alone=left < ATTEMPTS - 1):
                test(*args, **_afresh(named, left))
                return
        _give_up(test)

    chosen = tried if inspect.iscoroutinefunction(test) else tried_at_once
    return cast("Test", pytest.mark.physical(chosen))


def _afresh(named: dict[str, Any], left: int) -> dict[str, Any]:
    """Return a test's arguments, with a folder of its own for each further try."""
    if (folder := named.get("tmp_path")) is None or left == ATTEMPTS - 1:
        return named
    (own := folder / str(left)).mkdir()
    return {**named, "tmp_path": own}


@contextmanager
def _excused(left: int) -> Iterator[None]:
    """Excuse a failure in a starved lab; beside other tests the last one counts, with none left."""
    _noted.clear()
    _overslept.clear()
    try:
        yield
    except (AssertionError, *_TOO_FEW):
        late = max(_overslept, default=0.0) > MOST_OVERSLEPT_MS
        # Only the first try shares the machine: a step that is late without others is a failure.
        excuse = _disturbed if side_by_side and left == ATTEMPTS - 1 else starved
        if not (late or any(map(excuse, _noted))) or (side_by_side and not left):
            raise


def _give_up(test: Callable[..., Any]) -> None:
    reasons = dict.fromkeys(reason for each in filter(starved, _noted) for reason in each.reasons)
    if (late_ms := max(_overslept, default=0.0)) > MOST_OVERSLEPT_MS:
        reasons[f"a process that only sleeps was {late_ms:.1f} ms late (p99.5)"] = None
    why = f"too busy a machine, {ATTEMPTS} times: {', '.join(reasons)}"
    pytest.skip(f"{test.__name__}: {why}")

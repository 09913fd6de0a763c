"""Runs a real lab for a benchmark, over its usual pipe, and keeps its events."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from ccplay.lab.delay_line import NAME
from ccplay.model.base import Command, Event
from ccplay.model.commands import Build
from ccplay.model.events import Applied, Failed, Health, Ready
from ccplay.model.samples import Sweep
from ccplay.session import launch
from ccplay.stream import wire
from ccplay.stream.sources import LabSource
from ccplay.stream.wire import UnknownEvent
from ccplay.traffic.ping import PingSample, PingStarted

E = TypeVar("E", bound=Event)


class WatchedLab:
    """A running lab with all its events in order; ``async with running(build)`` makes one."""

    def __init__(self, build: Build, custom: Sequence[Path] = (), argv: Sequence[str] = ()) -> None:
        """Start the lab with ``argv``, by default on this kernel with the files ``custom``."""
        self.source = LabSource(argv or launch.lab_argv(None, None, custom), build)
        self.events: list[Event] = []
        self.written = 0
        """Number of bytes of the stream so far."""
        self._pump = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for event in self.source.events():
            assert not isinstance(event, UnknownEvent | Failed), event
            self.written += len(wire.encode(event))
            self.events.append(event)

    async def until(self, condition: Callable[[], object], within_s: float = 60.0) -> None:
        async with asyncio.timeout(within_s):
            while not condition():
                if self._pump.done():
                    await self._pump
                await asyncio.sleep(0.005)

    async def send(self, *commands: Command) -> None:
        """Send commands and wait until each has taken effect."""
        done = len(self.all(Applied)) + len(commands)
        for command in commands:
            self.source.send(command)
        await self.until(lambda: len(self.all(Applied)) >= done)

    async def run_for(self, seconds: float) -> None:
        """Wait until ``seconds`` have passed on the lab's clock."""
        end = self.events[-1].t + seconds
        await self.until(lambda: self.events[-1].t >= end, seconds * 3 + 10)

    def all(self, kind: type[E], since: float = 0.0) -> list[E]:
        """Return all events of a kind from lab time ``since`` on."""
        return [each for each in self.events if isinstance(each, kind) and each.t >= since]

    def acked(self, since: float) -> tuple[float, int]:
        """Return the seconds from ``since`` to now, and the bytes of all flows acked meanwhile."""
        sweeps = [each for each in self.all(Sweep, since) if each.tcp is not None]
        first, last = sweeps[0], sweeps[-1]
        assert first.tcp is not None
        assert last.tcp is not None
        return last.t - first.t, sum(last.tcp.bytes_acked) - sum(first.tcp.bytes_acked)

    def rtts_ms(self, since: float) -> list[float]:
        """Return the RTTs of pings answered from ``since`` on, in ms."""
        return [e.rtt_us / 1e3 for e in self.all(PingSample, since) if e.rtt_us is not None]

    def last_ping(self) -> str:
        """Return the name of the most recently started ping."""
        return self.all(PingStarted)[-1].ping

    def worst_steal(self, since: float) -> float:
        return max(each.steal for each in self.all(Health, since))

    def missed(self, since: float) -> int:
        return sum(each.missed for each in self.all(Health, since))


def family(pid: int) -> dict[int, list[str]]:
    """Return a process and its descendants, each with its command line."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            # The name may contain spaces and brackets; the fields after the last bracket don't.
            words = (folder / "stat").read_text().rpartition(")")[2].split()
            parents[int(folder.name)] = int(words[1])
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return {each: _command_line(each) for each in found}


def _command_line(pid: int) -> list[str]:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    return []


def part(pid: int, module: str) -> int | None:
    """Return the process at or below ``pid`` that runs a Python module; None if there is none."""
    for each, argv in family(pid).items():
        if argv and argv[0] != "unshare" and module in argv:
            return each
    return None


def delay_line(pid: int) -> int | None:
    """Return the delay line's process below ``pid``; None if there is none."""
    for each in family(pid):
        with contextlib.suppress(OSError):
            if Path(f"/proc/{each}/comm").read_bytes().strip() == NAME:
                return each
    return None


@asynccontextmanager
async def running(build: Build, custom: Sequence[Path] = ()) -> AsyncIterator[WatchedLab]:
    """Start a lab, wait until it is ready, and end it afterwards.

    ``custom`` are files with the user's algorithms and disciplines.
    """
    lab = WatchedLab(build, custom)
    try:
        await lab.until(lambda: lab.all(Ready))
        yield lab
    finally:
        await lab.source.close()
        await lab._pump

"""Whole labs for tests: started by the product's own path, ended with the test."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import psutil
import pytest
import pytest_asyncio

from ccplay.analysis.trust import judge
from ccplay.lab.netns import Namespace
from ccplay.model.base import Command, StartTraffic
from ccplay.model.commands import Build
from ccplay.session import launch
from ccplay.session.launch import WarmLabs
from ccplay.session.session import Session
from ccplay.state.lab_state import LabState
from ccplay.stream.sinks import Sink
from ccplay.stream.sources import LabSource
from ccplay.traffic import KINDS
from ccplay.traffic.udp import Udp
from tests.lab.trust import note

Kind = TypeVar("Kind")

_labs = WarmLabs()


def forked(argv: Sequence[str], build: Build) -> LabSource:
    """Return a lab forked from this worker's warm process, which saves most of its start."""
    return LabSource(argv, build, start=_labs.start)


class Events(list[object]):
    """All events of a lab; also the sink that receives them."""

    def put(self, event: object) -> None:
        self.append(event)

    def close(self) -> None:
        pass

    def of(self, kind: type[Kind]) -> list[Kind]:
        return [each for each in self if isinstance(each, kind)]


class RunningLab:
    """A lab with its state, and methods that await conditions."""

    def __init__(self, source: LabSource, *sinks: Sink) -> None:
        self.source = source
        self.session = Session(source, sinks=sinks)
        self._pump = asyncio.create_task(self.session.run())

    @property
    def state(self) -> LabState:
        return self.session.state

    def send(self, *commands: Command) -> None:
        for command in commands:
            self.session.send(command)

    async def until(self, condition: Callable[[LabState], object], within_s: float = 60.0) -> None:
        """Wait until ``condition`` holds; if it never does, fail with the lab's log."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + within_s
        while not condition(self.state):
            tail = [entry.text for entry in self.state.log[-5:]]
            if self.session.done:
                raise AssertionError(f"the lab ended: {self.session.error}; log: {tail}")
            if loop.time() > deadline:
                raise AssertionError(f"not within {within_s} s; phase {self.state.phase}, {tail}")
            await asyncio.sleep(0.01)

    async def swept(self) -> None:
        """Wait for a sweep that is newer than all events received so far."""
        told = self.state.now
        await self.until(lambda state: state.sweeps.before_or_at(told) < state.sweeps.end - 1)

    async def run_for(self, seconds: float) -> None:
        """Wait until the lab's own clock has advanced by so many seconds."""
        end = self.state.now + seconds
        # An emulated guest's clock may take its time.
        await self.until(lambda state: state.now >= end, seconds * 10 + 10)

    def namespace(self, host: str) -> Namespace:
        """Return the network namespace of a host, which a ``cat`` holds open."""
        assert self.source.pid is not None
        for process in psutil.Process(self.source.pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess, OSError):
                interfaces = Path(f"/proc/{process.pid}/net/dev").read_text()
                if process.cmdline() == ["cat"] and f"{host}-" in interfaces:
                    return Namespace(host, process.pid)
        raise AssertionError(f"no process is in {host}")

    async def close(self) -> None:
        """End the lab in order; its timekeeping counts for tests of physics."""
        await self.session.close()
        await self._pump
        note(judge(self.state))


@asynccontextmanager
async def running(
    build: Build, *sinks: Sink, argv: Sequence[str] = (), fork: bool = True
) -> AsyncIterator[RunningLab]:
    """Start a lab, wait until it accepts commands, and end it afterwards.

    A lab that is not forked has the test's environment, by which its processes can be found.
    """
    start = forked if fork else LabSource
    lab = RunningLab(start(argv or launch.lab_argv(), build), *sinks)
    try:
        await lab.until(lambda state: state.phase == "ready")
        yield lab
    finally:
        await lab.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_lab(request: pytest.FixtureRequest) -> AsyncIterator[RunningLab]:
    """Return the lab of the module's ``BUILD`` that its tests share through ``lab``."""
    async with running(request.module.BUILD) as lab:
        yield lab


@pytest_asyncio.fixture(loop_scope="module")
async def lab(shared_lab: RunningLab) -> AsyncIterator[RunningLab]:
    """Return a lab that tests share; what a test starts ends with it, and no link is changed.

    For tests that name their traffic, and are marked with ``SHARING`` and a group of xdist.
    """
    yield shared_lab
    state = shared_lab.state
    # Traffic that a test has begun and not waited for is known once its programs run.
    begun = {each.command.name for each in state.applied if isinstance(each.command, StartTraffic)}
    await shared_lab.until(lambda _: begun <= state.traffic.keys())
    running = [each for each in state.traffic.values() if each.ended is None]
    shared_lab.send(*(KINDS[each.kind].stopping(each.name) for each in running))
    await shared_lab.until(lambda _: all(each.ended is not None for each in running))


SHARING = pytest.mark.asyncio(loop_scope="module")
"""Mark of tests that use ``lab``."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip with the reason where the machine does not allow labs."""
    try:
        launch.lab_argv()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the reason
        for item in items:
            item.add_marker(pytest.mark.skip(reason=str(error)))


def all_arrived(udp: Udp) -> bool:
    """Return whether the monitor saw every packet arrive; iperf3 may miss the last ones."""
    assert udp.monitored is not None
    return udp.monitored.received == udp.monitored.sent == udp.sent

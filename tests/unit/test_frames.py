"""A lab is read once a frame while nothing is urgent, and never later than a quarter second."""

import array
import asyncio
import fcntl
import sys
import termios
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from ccplay.model.commands import Build, Mark
from ccplay.model.events import Log, Ready
from ccplay.session.session import Session
from ccplay.stream import sources, wire
from ccplay.stream.sources import LabSource
from tests.events import HELLO
from tests.terminals import PATIENCE_S, eventually

ECHO = f"""
import sys
sys.stdout.write({(wire.encode(HELLO) + wire.encode(Ready(t=0.0))).decode()!r})
sys.stdout.flush()
sys.stdin.readline()
for line in sys.stdin:
    sys.stdout.write({wire.encode(Log(t=1.0, level="info", text="heard")).decode()!r})
    sys.stdout.flush()
"""
"""Answers each command after the first with a line of the log."""


@asynccontextmanager
async def playing(*, idle: bool = True) -> AsyncIterator[tuple[Session, LabSource]]:
    lab = LabSource([sys.executable, "-c", ECHO], Build())
    session = Session(lab, idle=lambda _: idle)
    running = asyncio.create_task(session.run())
    async with asyncio.timeout(PATIENCE_S):
        await eventually(lambda: session.state.ready_at is not None)
        yield session, lab
        await session.close()
        await asyncio.wait([running])


def waiting(lab: LabSource) -> int:
    """Return how many bytes are in the pipe."""
    assert lab._process is not None
    output = lab._process.output
    size = array.array("i", [0])
    fcntl.ioctl(output.get_extra_info("pipe").fileno(), termios.FIONREAD, size)
    return size[0]


async def test_what_arrives_waits_for_the_next_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "LONGEST_WAIT_S", 1000.0)
    async with playing() as (session, lab):
        await session.read_on()
        lab.send(Mark(text="read at once, as nothing was read since the last frame"))
        await eventually(lambda: len(session.state.log) == 1)
        for count in (1, 2):
            lab.send(Mark(text="waits"))
            await eventually(lambda: waiting(lab))
            assert len(session.state.log) == count
            await session.read_on()
            # It is in the state when the frame is drawn.
            assert len(session.state.log) == count + 1


async def test_without_frames_it_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "LONGEST_WAIT_S", 0.01)
    async with playing() as (session, lab):
        await session.read_on()
        for _ in range(5):
            lab.send(Mark(text="a"))
        await eventually(lambda: len(session.state.log) == 5)


async def test_nothing_waits_while_a_step_may_be_due(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "LONGEST_WAIT_S", 1000.0)
    async with playing(idle=False) as (session, lab):
        await session.read_on()
        for count in range(5):
            lab.send(Mark(text="a"))
            await eventually(lambda: len(session.state.log) > count)  # noqa: B023 - awaited here


async def test_a_lab_that_waits_to_be_read_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "LONGEST_WAIT_S", 1000.0)
    async with playing() as (session, lab):
        await session.read_on()
        lab.send(Mark(text="a"))
        await eventually(lambda: len(session.state.log) == 1)
        lab.send(Mark(text="b"))
        await eventually(lambda: waiting(lab))
    assert session.done

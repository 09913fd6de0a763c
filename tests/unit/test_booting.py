"""A guest that boots: how far it has come is told until the lab in it says something."""

import asyncio
import sys
from pathlib import Path

import pytest

from ccplay.model.base import Event
from ccplay.model.commands import Build, Mark
from ccplay.model.events import Building, Ended
from ccplay.session.session import Session
from ccplay.stream import sources, wire
from ccplay.stream.sinks import Recorder
from ccplay.stream.sources import LabSource
from ccplay.stream.wire import UnknownEvent
from tests.events import HELLO
from tests.terminals import PATIENCE_S, eventually

GUEST = f"""
import sys
sys.stdin.readline()
sys.stdin.readline()
sys.stderr.write({wire.GUEST_RUNS!r} + "\\r\\n")
sys.stderr.flush()
sys.stdin.readline()
sys.stdout.write({(wire.encode(HELLO) + wire.encode(Ended(t=1.0, reason="done"))).decode()!r})
"""
"""Writes that it runs at the first command after build, and hello at the second."""


def guest(monkeypatch: pytest.MonkeyPatch) -> LabSource:
    monkeypatch.setattr(sources, "_BEAT_S", 0.01)
    return LabSource([sys.executable, "-c", GUEST], Build(), boots=True)


async def test_each_stage_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = guest(monkeypatch)
    told: list[Event | UnknownEvent] = []
    steps: list[str] = []
    async with asyncio.timeout(PATIENCE_S):
        async for event in lab.events():
            told.append(event)
            if isinstance(event, Building) and (stage := event.step.partition(":")[0]) not in steps:
                steps.append(stage)
                lab.send(Mark(text="go on"))
    assert steps == [
        "booting a full kernel in a virtual machine",
        "the virtual machine is running, the lab is starting in it",
    ]
    assert [type(each) for each in told if not isinstance(each, Building)] == [type(HELLO), Ended]


async def test_a_recording_begins_with_hello_all_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lab, path = guest(monkeypatch), tmp_path / "a.ccplay"
    session = Session(lab, sinks=[Recorder(path)])
    running = asyncio.create_task(session.run())
    for stage in ("booting", "the lab is starting"):
        await eventually(lambda: (now := session.state.building) and stage in now.step)  # noqa: B023
        assert session.state.phase == "starting"
        session.send(Mark(text="go on"))
    await asyncio.wait_for(running, PATIENCE_S)
    assert session.state.phase == "ended"
    assert path.read_bytes().startswith(b'{"event":"hello"')

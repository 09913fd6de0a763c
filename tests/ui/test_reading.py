"""The screen of a long recording appears at once, and shows the requested moment once read."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ccplay.session.archive import preview
from ccplay.session.session import Session
from ccplay.state.lab_state import LabState
from ccplay.stream.sources import ReplaySource
from ccplay.ui.app import CcplayApp
from tests.ui.synthetic import SyntheticSource, stream
from tests.ui.test_main import until
from tests.ui.view import text_of

RECORDING = Path(__file__).parent / "recordings" / "playground.ccplay"


class SlowlyRead(SyntheticSource):
    """A recording that is read to its half, and further once ``go_on`` is set."""

    def __init__(self) -> None:
        super().__init__(stream(seconds=30))
        self.go_on = asyncio.Event()

    async def events(self) -> AsyncIterator[Any]:
        async for event in super().events():
            if event.t > 15.0:
                await self.go_on.wait()
            yield event


async def test_until_the_moment_is_read_the_screen_reports_it() -> None:
    source = SlowlyRead()
    app = CcplayApp(Session(source, title="test"), start_at=25.0)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "reading 00:25" in text_of(app, "header"))
        source.go_on.set()
        # It begins at 00:25 and plays on, perhaps to the end, while a busy machine looks elsewhere.
        await until(pilot, lambda: "reading" not in text_of(app, "header"))
        assert re.search("replay 1× 00:(2[5-9]|3)|paused 00:(29|3)", text_of(app, "header"))


async def test_a_recording_that_is_damaged_shows_what_comes_before(tmp_path: Path) -> None:
    path = tmp_path / "damaged.ccplay"
    lines = RECORDING.read_bytes().splitlines(keepends=True)
    half = len(lines) // 2
    path.write_bytes(b"".join(lines[:half]) + json.dumps({"event": 1}).encode() + b"\n")
    app = CcplayApp(Session(ReplaySource(path), title="test"), start_at=10.0)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.session.done)
        await until(
            pilot, lambda: f"damaged.ccplay:{half + 1}: not an event" in text_of(app, "banner")
        )
        assert "rest unreadable" in text_of(app, "header")
        assert "reno" in text_of(app, "flows")


class Held(ReplaySource):
    """A recording that is read once ``go_on`` is set."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.go_on = asyncio.Event()

    async def events(self) -> AsyncIterator[Any]:
        await self.go_on.wait()
        async for event in super().events():
            yield event


async def seen_at_20(early: Callable[[], LabState | None] | None) -> tuple[str, dict[str, str]]:
    """Return the ribbon before the recording is read, and the whole screen after that."""
    source = Held(RECORDING)
    app = CcplayApp(Session(source, title="test", preview=early), start_at=20.0, speed=1e-9)
    async with app.run_test(size=(120, 40)) as pilot:
        before = ""
        if early is not None:
            await until(pilot, lambda: "cubic" in text_of(app, "flows"))
            assert not app.session.done
            before = text_of(app, "ribbon")
            app.main.action_seek_start()
            assert "reading 00:00" in text_of(app, "header")
            app.main.shown.playhead.jump(20.0, 20.0)
            app.main.shown.playhead.running = True
        source.go_on.set()
        await until(pilot, lambda: app.session.done)
        app.main.draw()
        app.main.redraw()
        # Without the plots, whose axes depend on what was drawn before.
        parts = ("header", "flows", "ribbon", "events")
        return before, {part: text_of(app, part) for part in parts}


async def test_a_glimpse_is_drawn_first_and_nothing_of_it_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A glimpse, here shorter than the window, is drawn first, and no part of it remains."""
    monkeypatch.setattr("ccplay.session.archive.BEFORE_S", 8.0)
    monkeypatch.setattr("ccplay.session.archive.AFTER_S", 2.0)
    before, whole = await seen_at_20(partial(preview, RECORDING, 20.0))
    _, alone = await seen_at_20(None)
    assert whole == alone
    assert before != whole["ribbon"]

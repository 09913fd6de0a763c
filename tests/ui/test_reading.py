"""A long recording: the screen is there at once, and shows the moment asked for when it is read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from ccplay.session.session import Session
from ccplay.stream.sources import ReplaySource
from ccplay.ui.app import CcplayApp
from tests.ui.synthetic import SyntheticSource, stream
from tests.ui.test_main import until
from tests.ui.view import text_of

RECORDING = Path(__file__).parent / "recordings" / "playground.ccplay"


class SlowlyRead(SyntheticSource):
    """A recording whose reader has come as far as half of it."""

    def __init__(self) -> None:
        super().__init__(stream(seconds=30))
        self.go_on = asyncio.Event()

    async def events(self) -> AsyncIterator[Any]:
        async for event in super().events():
            if event.t > 15.0:
                await self.go_on.wait()
            yield event


async def test_until_the_moment_is_read_the_screen_says_so() -> None:
    source = SlowlyRead()
    app = CcplayApp(Session(source, title="test"), start_at=25.0)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "reading 00:25" in text_of(app, "header"))
        source.go_on.set()
        await until(pilot, lambda: "replay 1× 00:25" in text_of(app, "header"))


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
        assert "not readable further" in text_of(app, "header")
        assert "reno" in text_of(app, "flows")

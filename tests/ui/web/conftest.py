"""A session that is shared and served to browsers, with events from the test."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from ccplay.model.base import Event
from ccplay.share import sockets
from ccplay.share.presenter import Sharing, WebAddress
from ccplay.share.web.gateway import serve
from tests.terminals import PATIENCE_S
from tests.ui.synthetic import stream
from tests.ui.web.chromium import chromium


class Stage:
    """A shared session, its server for browsers, and the link."""

    def __init__(self, sharing: Sharing) -> None:
        self.sharing = sharing
        self.link = ""
        self.browsers = 0
        self.events: list[Event] = list(stream(seconds=30))
        self._next = 0
        self._serving: asyncio.Task[None] | None = None

    def play(self, until: float) -> None:
        """Share the events until this time, in seconds."""
        while self._next < len(self.events) and self.events[self._next].t <= until:
            self.sharing.put(self.events[self._next])
            self._next += 1

    def restart(self) -> None:
        """Begin the events again, for another network."""
        self._next = 0

    async def serve(self, port: int = 0) -> str:
        """Start the server for browsers; return the link."""
        ready = asyncio.get_running_loop().create_future()

        def counted(browsers: int) -> None:
            self.browsers = browsers

        self._serving = asyncio.create_task(
            serve(self.sharing.path, WebAddress(port=port), ready.set_result, counted)
        )
        await asyncio.wait([self._serving, ready], return_when=asyncio.FIRST_COMPLETED)
        if self._serving.done():
            await self._serving
        self.link = ready.result()
        return self.link

    async def stop(self) -> None:
        """End the server for browsers at once, as a crash would."""
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.gather(self._serving, return_exceptions=True)
            self._serving = None

    async def over(self) -> None:
        """Stop sharing, and wait for the server to end."""
        await asyncio.to_thread(self.sharing.close)
        if self._serving is not None:
            async with asyncio.timeout(PATIENCE_S):
                await self._serving
            self._serving = None


@pytest.fixture(scope="package")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run a browser for all tests of pages; yield its address."""
    with chromium(tmp_path_factory.mktemp("chromium")) as address:
        yield address


@pytest_asyncio.fixture
async def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(sockets, "_GROUPS", tmp_path / "groups")
    it = Stage(Sharing("test", "A <script>title</script>"))
    try:
        yield it
    finally:
        await it.stop()
        it.sharing.close()

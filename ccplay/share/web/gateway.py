"""Watches a shared session and serves it to browsers until it ends."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ccplay.errors import CcplayError
from ccplay.model.base import Event
from ccplay.session.session import Session
from ccplay.share.frames import Wants
from ccplay.share.presenter import BrowserReport, WebAddress, read_place
from ccplay.share.sockets import WatchSource
from ccplay.share.web.feed import PageFeed, message
from ccplay.stream.wire import UnknownEvent

if TYPE_CHECKING:
    from ccplay.share.web import pages

_GATHER_S = 0.01
"""Seconds for which events are collected before browsers receive them."""

_LOOK_S = 0.1
"""Seconds without an event before the presenter's view is checked."""

_LAST_S = 1.5
"""Seconds that browsers have to receive the last messages."""

_REQUEST_S = 15.0
"""Seconds within which the first and every later request of a connection must be read whole."""

_FILES = 4096
"""Limit of this process's file descriptors; a browser that shows the past needs two."""

_WAITING = 512
"""Backlog of listen(2): a whole class may open the page at once."""

MISSING = (
    "browsers need aiohttp and segno, which are not installed: pip install 'ccplay[web]', "
    "or make play in a checkout"
)
"""Message shown if a library that serves browsers is missing."""


def require_libraries() -> None:
    """Raise ``CcplayError`` if a library that only this package needs is missing."""
    try:
        import aiohttp  # noqa: F401, PLC0415 - only checked for
        import segno  # noqa: F401, PLC0415 - only checked for
    except ImportError:
        raise CcplayError(MISSING) from None


class _WatchedSession:
    """The session as this process watches it; also a sink that wakes the process at events."""

    def __init__(self, source: WatchSource) -> None:
        """Watch the session of ``source``."""
        self.source, greeting = source, source.greeting
        self.votes = greeting.seats > 0
        """Whether the session's server accepts browsers' votes and number from this process."""
        self._reported = 0
        self.session = Session(
            source, title=greeting.title, sinks=[self], recorded=greeting.recorded
        )
        self._event = asyncio.Event()
        self._playing = asyncio.create_task(self.session.run())
        self.feed = PageFeed(self.session, votes=self.votes)

    async def read_past(self) -> None:
        """Read the session's past, so that the first message to browsers contains it."""
        while not (self.source.present or self.session.done):
            await self.await_event()
        self.feed.messages(time.monotonic(), self.source.view, self.source.board)

    async def leave(self) -> None:
        """Leave the session."""
        await self.session.close()
        await self._playing

    def put(self, _: Event | UnknownEvent) -> None:
        """Wake the process for an event."""
        self._event.set()

    def close(self) -> None:
        """Wake the process for the end of the session."""
        self._event.set()

    def report(self, browsers: int) -> None:
        """Send the number of browsers to the server if it has changed."""
        if self.votes and browsers != self._reported and self.source.report(browsers):
            self._reported = browsers

    async def await_event(self) -> bool:
        """Wait briefly for an event; return whether there was one."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_S):
                await self._event.wait()
        woken = self._event.is_set()
        self._event.clear()
        return woken


async def serve(
    path: Path, place: WebAddress, ready: Callable[[str], None], count: Callable[[int], None]
) -> None:
    """Serve the session on the socket at ``path`` until it ends, and those that follow it there.

    ``ready`` is called once with the link, ``count`` repeatedly with the number of browsers.
    Raises ``CcplayError`` if the session can't be watched, or the address can't be listened on.
    """
    from aiohttp import web  # noqa: PLC0415 - it may be missing

    from ccplay.share.web import pages  # noqa: PLC0415 - it imports aiohttp

    # Errors of clients must not appear on the presenter's terminal.
    logging.getLogger("aiohttp").setLevel(logging.CRITICAL)
    _allow_files()
    watched = _WatchedSession(WatchSource.join(path, Wants.BROWSERS))
    broadcast = pages.Broadcast()
    token = pages.make_token()
    ballot = pages.BrowserVotes(watched.source) if watched.votes else None
    page = pages.Pages(pages.Admission(place, token), watched.feed, broadcast, ballot)
    listener = page.server(
        handler_cancellation=True,
        keepalive_timeout=_REQUEST_S,
        max_line_size=2048,
        max_field_size=4096,
        max_headers=64,
    )
    runner = web.ServerRunner(listener, shutdown_timeout=_LAST_S)
    try:
        await watched.read_past()
        await runner.setup()
        port = await _listen(web.TCPSite, runner, place)
        ready(f"http://{pages.link_name(place)}:{port}/{token}/")

        def counted() -> None:
            count(page.browsers)
            watched.report(page.browsers)

        while True:
            await _broadcast(watched, broadcast, counted)
            if watched.source.another:
                broadcast.put(message("another", {}))
            if (following := await watched.source.rejoin()) is None:
                break
            await watched.leave()
            watched = _WatchedSession(following)
            await watched.read_past()
            if ballot is not None:
                ballot.source = watched.source
            page.feed = watched.feed
            broadcast.put(watched.feed.opening())
        session = watched.session
        reason = session.error or session.state.end_reason or "the session has ended"
        if watched.source.another:
            reason = "the presenter's next network was not shared"
        broadcast.put(message("over", {"reason": reason}))
        broadcast.close()
    finally:
        await runner.cleanup()
        await watched.leave()


async def _broadcast(
    watched: _WatchedSession, broadcast: pages.Broadcast, count: Callable[[], None]
) -> None:
    """Broadcast new messages until the session ends."""
    while not watched.session.done:
        if await watched.await_event():
            await asyncio.sleep(_GATHER_S)
        source = watched.source
        if new := watched.feed.messages(time.monotonic(), source.view, source.board):
            broadcast.put(new)
        count()


async def _listen(site: type, runner: object, place: WebAddress) -> int:
    """Listen, and return the port. Raises ``CcplayError`` if the address can't be used."""
    try:
        listening = site(runner, place.address, place.port, backlog=_WAITING)
        await listening.start()
    except OSError as error:
        reason = error.strerror or error
        raise CcplayError(
            f"can't serve browsers at {place.address}:{place.port}: {reason}; "
            "choose another with --web ADDRESS:PORT"
        ) from None
    port: int = listening._server.sockets[0].getsockname()[1]
    return port


def _allow_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


# --- the link as a QR code for a terminal: a line of half blocks shows two rows of modules --------

_QUIET = 2
"""Width in modules of the light border around the code."""

_BLOCKS = {(0, 0): " ", (1, 0): "▀", (0, 1): "▄", (1, 1): "█"}


def draw_code(link: str) -> list[str]:
    """Return the lines of the code, to be printed dark on light in any terminal."""
    import segno  # noqa: PLC0415 - it may be missing

    matrix = segno.make(link, error="l", micro=False).matrix_iter(border=_QUIET)
    modules = [[int(module) & 1 for module in row] for row in matrix]
    if len(modules) % 2:
        modules.append([0] * len(modules[0]))
    return [
        "".join(_BLOCKS[pair] for pair in zip(upper, lower, strict=True))
        for upper, lower in zip(modules[::2], modules[1::2], strict=True)
    ]


# --- serves browsers for a presenter, with the arguments ``SOCKET ADDRESS:PORT`` ------------------
# It prints lines of JSON: the link once, then the number of browsers, or the reason for a failure.


def main(words: list[str]) -> int:
    """Serve until the session ends; return the exit code."""
    # The presenter and its lab have priority.
    os.nice(5)
    try:
        require_libraries()
        asyncio.run(serve(Path(words[0]), read_place(words[1]), _ready, _Counter().count))
    except CcplayError as error:
        _write(BrowserReport(failed=str(error)))
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _ready(link: str) -> None:
    _write(BrowserReport(link=link, code=draw_code(link)))


class _Counter:
    """Writes the number of browsers when it changes."""

    def __init__(self) -> None:
        self._written = 0

    def count(self, browsers: int) -> None:
        if browsers != self._written:
            self._written = browsers
            _write(BrowserReport(browsers=browsers))


def _write(report: BrowserReport) -> None:
    try:
        sys.stdout.buffer.write(msgspec.json.encode(report) + b"\n")
        sys.stdout.buffer.flush()
    except OSError:
        # The presenter has ended.
        sys.exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The HTTP server: a page, its files, the stream of messages, and windows of the past.

A browser can only request windows of the past, and vote in a lesson.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from ccplay.web import ballot
from ccplay.web.admission import Admission
from ccplay.web.ballot import Ballot
from ccplay.web.broadcast import Broadcast
from ccplay.web.feed import Feed, message
from ccplay.web.looks import looks
from ccplay.web.windows import TooBusyError, Windows

PAGE = Path(__file__).parent / "page"
"""Folder of the page's files: HTML, a style sheet and ES modules, served unchanged."""

MOST_BROWSERS = 500
"""Largest number of browsers at a time."""

_SENT_S = 30.0
"""Seconds that a browser may take to receive a message before its connection is closed."""

_QUIET_S = 10.0
"""Seconds without a message before a comment is sent, which detects browsers that are gone."""

_BUFFER = 1 << 16
"""Largest number of bytes that this process buffers for a browser."""

_BODY_S = 5.0
"""Seconds within which the few bytes of a vote must arrive."""

_TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
    "Server": "ccplay",
}


class Pages:
    """The HTTP handlers that serve the page of one session."""

    def __init__(
        self,
        admission: Admission,
        feed: Feed,
        broadcast: Broadcast,
        windows: Windows,
        ballot: Ballot | None = None,
    ) -> None:
        """Serve the session; ``ballot`` receives votes. Without a ballot nobody can vote."""
        self.browsers = 0
        """Number of browsers that receive the stream at present."""
        self._admission = admission
        self._feed = feed
        self._broadcast = broadcast
        self._windows = windows
        self._ballot = ballot
        self._files = {
            path.name: path.read_bytes() for path in PAGE.iterdir() if path.suffix in _TYPES
        }

    def show(self, feed: Feed, windows: Windows) -> None:
        """Serve another session from now on."""
        self._feed, self._windows = feed, windows

    def server(self, **options: Any) -> web.Server:
        """Return the HTTP server, all of whose responses are ours."""
        return _Server(self._respond, access_log=None, auto_decompress=False, **options)

    async def _respond(self, request: web.BaseRequest) -> web.StreamResponse:
        """Refuse requests that are not from the page; add the headers to all responses."""
        try:
            response = self._refusal(request) or await self._answer(request)
        except ValueError:
            # The library checks some parts of a request when they are read.
            response = web.Response(status=400)
        if not response.prepared:
            response.headers.update(_HEADERS)
        return response

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        name = request.path.split("/", 2)[2:]
        if request.method == "POST":
            return await self._vote(request) if name == ["vote"] else web.Response(status=405)
        if request.method not in ("GET", "HEAD"):
            return web.Response(status=405)
        match name:
            case ["events"] if request.method == "GET":
                return await self._events(request)
            case ["window"]:
                return await self._window(request)
            case ["looks"]:
                return self._looks()
            case [file]:
                return self._file(file or "index.html")
        return web.Response(status=404)

    def _refusal(self, request: web.BaseRequest) -> web.Response | None:
        host = request.headers.get("Host", "")
        if not self._admission.is_ours(host):
            return web.Response(status=421)
        origin = request.headers.get("Origin")
        ours = self._admission.is_same(origin, host)
        site = request.headers.get("Sec-Fetch-Site", "none")
        followed = request.headers.get("Sec-Fetch-Mode") == "navigate"
        if request.method == "POST":
            # Browsers send Origin with a POST; a request without it is not from our page.
            ours, followed = ours and origin is not None, False
        if not ours or (site not in ("none", "same-origin") and not followed):
            return web.Response(status=403)
        # What is no path, as in "OPTIONS *", has no slash.
        if not self._admission.knows(request.path.partition("/")[2].partition("/")[0]):
            return web.Response(status=404)
        return None

    def _file(self, name: str) -> web.Response:
        if (content := self._files.get(name)) is None:
            return web.Response(status=404)
        kind = _TYPES[Path(name).suffix]
        return web.Response(body=content, content_type=kind, charset="utf-8")

    def _looks(self) -> web.Response:
        body = msgspec.json.encode(looks())
        return web.Response(body=body, content_type="application/json")

    async def _window(self, request: web.BaseRequest) -> web.Response:
        try:
            since, until = (float(request.query[name]) for name in ("from", "to"))
        except (KeyError, ValueError):
            return web.Response(status=400)
        if not (math.isfinite(since) and math.isfinite(until)):
            return web.Response(status=400)
        try:
            body = await self._windows.get(since, until)
        except TooBusyError:
            return web.Response(status=503)
        response = web.Response(body=body, content_type="application/json")
        response.enable_compression()
        return response

    async def _vote(self, request: web.BaseRequest) -> web.Response:
        if self._ballot is None:
            return web.Response(status=403)
        if request.content_type != "application/json":
            # A form on another site can't send this content type.
            return web.Response(status=415)
        if not 0 < (request.content_length or 0) <= ballot.LONGEST:
            return web.Response(status=413)
        try:
            async with asyncio.timeout(_BODY_S):
                body = await request.read()
        except TimeoutError:
            return web.Response(status=408)
        return web.Response(status=self._ballot.cast(request.query.get("as", ""), body))

    @contextlib.contextmanager
    def _seated(self, name: str) -> Iterator[None]:
        """Let a browser vote while it receives the stream."""
        seats = self._ballot.seats if self._ballot is not None else None
        seat = seats.enter(name) if seats is not None else None
        try:
            yield
        finally:
            if seats is not None and seat is not None:
                seats.leave(name)

    async def _events(self, request: web.BaseRequest) -> web.StreamResponse:
        if self.browsers >= MOST_BROWSERS:
            return web.Response(status=503)
        response = web.StreamResponse(headers={**_HEADERS, "Content-Type": "text/event-stream"})
        await response.prepare(request)
        if request.transport is not None:
            request.transport.set_write_buffer_limits(high=_BUFFER)
        self.browsers += 1
        try:
            with self._seated(request.query.get("as", "")):
                await self._send(response)
        except (ConnectionError, TimeoutError):
            if request.transport is not None:
                request.transport.abort()
        finally:
            self.browsers -= 1
        return response

    async def _send(self, response: web.StreamResponse) -> None:
        """Send the opening and later messages; a browser that falls behind gets a new opening."""
        broadcast = self._broadcast
        # The browser reconnects after a second if the connection is lost.
        lines = b"retry: 1000\n\n" + self._feed.opening()
        place = broadcast.end
        while True:
            async with asyncio.timeout(_SENT_S):
                await response.write(lines)
            more = True
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_QUIET_S):
                    more = await broadcast.more(place)
            if not more:
                return
            found = broadcast.since(place)
            lines = found or b": nothing new\n\n"
            if found is None:
                missed = message("gap", {})
                lines = missed + self._feed.opening()
            place = broadcast.end


class _Connection(web.RequestHandler):
    """A connection that refuses what it can't read as briefly as everything else."""

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,  # noqa: ARG002 - the library's
        message: str | None = None,  # noqa: ARG002 - the same
    ) -> web.StreamResponse:
        """Return a response without content, in place of the library's with its banner."""
        if request.writer.output_size > 0:
            raise ConnectionError("a part of the response is sent already")
        response = web.Response(status=status, headers=_HEADERS)
        response.force_close()
        return response


class _Server(web.Server):
    """A server of such connections."""

    def __call__(self) -> web.RequestHandler:
        """Return what reads the requests of a new connection."""
        return _Connection(self, loop=self._loop, **self._kwargs)

"""The HTTP server: a page, its files, the stream of messages, and windows of the past.

A browser can only request windows of the past, and vote in a lesson.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

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

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


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

    def application(self) -> web.Application:
        """Return the application for an HTTP server."""
        application = web.Application(middlewares=[self._admit], client_max_size=1024)
        application.router.add_get("/{token}/events", self._events, allow_head=False)
        application.router.add_get("/{token}/window", self._window, allow_head=False)
        application.router.add_get("/{token}/looks", self._looks, allow_head=False)
        application.router.add_post("/{token}/vote", self._vote)
        application.router.add_get("/{token}/{name:[a-z.]*}", self._file)
        return application

    @web.middleware
    async def _admit(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Refuse requests that are not from the page; add the headers to all responses."""
        refusal = self._refusal(request)
        if refusal is not None:
            return refusal
        try:
            response = await handler(request)
        except web.HTTPException as error:
            response = web.Response(status=error.status)
        if not response.prepared:
            response.headers.update(_HEADERS)
        return response

    def _refusal(self, request: web.Request) -> web.Response | None:
        host = request.headers.get("Host", "")
        if not self._admission.is_ours(host):
            return web.Response(status=421, headers=_HEADERS)
        origin = request.headers.get("Origin")
        ours = self._admission.is_same(origin, host)
        site = request.headers.get("Sec-Fetch-Site", "none")
        followed = request.headers.get("Sec-Fetch-Mode") == "navigate"
        if request.method == "POST":
            # Browsers send Origin with a POST; a request without it is not from our page.
            ours, followed = ours and origin is not None, False
        if not ours or (site not in ("none", "same-origin") and not followed):
            return web.Response(status=403, headers=_HEADERS)
        if not self._admission.knows(request.path.split("/")[1]):
            return web.Response(status=404, headers=_HEADERS)
        return None

    async def _file(self, request: web.Request) -> web.Response:
        name = request.match_info["name"] or "index.html"
        if (content := self._files.get(name)) is None:
            return web.Response(status=404)
        kind = _TYPES[Path(name).suffix]
        return web.Response(body=content, content_type=kind, charset="utf-8")

    async def _looks(self, _: web.Request) -> web.Response:
        body = msgspec.json.encode(looks())
        return web.Response(body=body, content_type="application/json")

    async def _window(self, request: web.Request) -> web.Response:
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

    async def _vote(self, request: web.Request) -> web.Response:
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

    async def _events(self, request: web.Request) -> web.StreamResponse:
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

"""The HTTP server: who is admitted and may vote, the page, and the stream of messages.

A browser can only request windows of the past, and vote in a lesson.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
import math
import re
import secrets
import socket
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec
from aiohttp import web

from ccplay.share.frames import MOST_SLOTS
from ccplay.share.presenter import WebAddress
from ccplay.share.relay import is_answer
from ccplay.share.sockets import WatchSource
from ccplay.share.web.facts import looks
from ccplay.share.web.feed import PageFeed, TooBusyError, message

# --- admission of browsers: by the token in the link and the server's names in ``Host`` -----------

TOKEN_BYTES = 16
"""Number of random bytes in a token, which has 22 characters in a link."""

_ANY = ("0.0.0.0", "::")  # noqa: S104 - compared only


def make_token() -> str:
    """Return a new random token."""
    return secrets.token_urlsafe(TOKEN_BYTES)


class Admission:
    """Checks tokens, hosts and origins of requests."""

    def __init__(self, place: WebAddress, token: str) -> None:
        self._token = token.encode()
        self._names = {"localhost", place.address.lower(), socket.gethostname().lower()}

    def knows(self, token: str) -> bool:
        """Return whether this is the token; the comparison takes constant time."""
        return hmac.compare_digest(token.encode("utf-8", "replace"), self._token)

    def is_ours(self, host: str) -> bool:
        """Return whether a ``Host`` names this server; another name may be DNS rebinding.

        Any IP address is accepted; of names only the machine's own and ``localhost``.
        """
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        name = name.rstrip(".")
        if name in self._names or name.removesuffix(".local") in self._names:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    @staticmethod
    def is_same(origin: str | None, host: str) -> bool:
        """Return whether a request is from our page, or has no origin, as a link opened by hand."""
        try:
            return origin is None or urlsplit(origin).netloc == host
        except ValueError:
            return False


def link_name(place: WebAddress) -> str:
    """Return the address for a link: if the server listens on all, one that others can reach."""
    if place.address not in _ANY:
        return f"[{place.address}]" if ":" in place.address else place.address
    family = socket.AF_INET6 if place.address == "::" else socket.AF_INET
    target = ("2001:db8::1", 9) if family == socket.AF_INET6 else ("192.0.2.1", 9)
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            # Nothing is sent: the kernel only chooses the source address.
            probe.connect(target)
            found: str = probe.getsockname()[0]
        except OSError:
            return socket.gethostname()
    return f"[{found}]" if ":" in found else found


# --- slots, which limit the number of browsers that may vote, and how often each may --------------

_NAME = re.compile(r"[0-9a-f]{32}")
"""Pattern of a random word of 128 bits, which a page chooses and no other page can know."""

VOTES_AT_ONCE = 10
"""Number of votes that a browser may send at once."""

VOTES_S = 1.0
"""Number of votes per second that a browser may send on average."""


class VotingSlot(msgspec.Struct):
    """The slot of one browser."""

    number: int
    """Number of the slot, from 1."""
    streams: int = 0
    """Number of streams that the browser receives at present."""
    left: float = VOTES_AT_ONCE
    """Number of votes that the browser may send at once, at the moment ``at``."""
    at: float = 0.0
    """Moment for which ``left`` was computed, in seconds of a clock."""


class VotingSlots:
    """Assigns a slot to each browser that receives the stream; only these may vote.

    A browser keeps its slot while others are free. If none is free, the browser that left
    first loses its slot to the new one, whose vote replaces the earlier vote: so there are never
    more votes than slots.
    """

    def __init__(self, most: int = MOST_SLOTS, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._slots: OrderedDict[str, VotingSlot] = OrderedDict()

    def occupy(self, name: str) -> VotingSlot | None:
        """Assign a slot to a browser that starts receiving the stream; None if it can't vote."""
        if not _NAME.fullmatch(name):
            return None
        slot = self._slots.get(name) or self._new(name)
        if slot is not None:
            slot.streams += 1
        return slot

    def release(self, name: str) -> None:
        """Record that a browser has stopped receiving the stream."""
        self._slots[name].streams -= 1
        self._slots.move_to_end(name)

    def find(self, name: str) -> VotingSlot | None:
        """Return the slot of a browser that receives the stream; None if it has none."""
        slot = self._slots.get(name)
        return slot if slot is not None and slot.streams else None

    def count_vote(self, slot: VotingSlot) -> bool:
        """Return whether a browser may vote now, and count the vote."""
        now = self._clock()
        slot.left = min(slot.left + (now - slot.at) * VOTES_S, VOTES_AT_ONCE)
        slot.at = now
        if slot.left < 1:
            return False
        slot.left -= 1
        return True

    def _new(self, name: str) -> VotingSlot | None:
        number = len(self._slots) + 1
        if number > self._most:
            gone = next((each for each, slot in self._slots.items() if not slot.streams), None)
            if gone is None:
                return None
            number = self._slots.pop(gone).number
        slot = self._slots[name] = VotingSlot(number, at=self._clock())
        return slot


# --- the votes of browsers: read, checked against the open question, and passed on ----------------

LONGEST = 64
"""Largest size of a vote's body in bytes."""


class VoteRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A vote exactly as a browser sends it."""

    question: Annotated[int, msgspec.Meta(ge=1, le=0xFFFF)]
    choice: float
    """Index of the chosen answer from 0, or the number entered."""


_decoder = msgspec.json.Decoder(VoteRequest)


class BrowserVotes:
    """The votes of browsers, checked and passed on; only those with the stream may vote."""

    def __init__(self, source: WatchSource) -> None:
        self.slots = VotingSlots()
        self.source = source
        """Receiver of the votes."""

    def cast(self, name: str, body: bytes) -> HTTPStatus:
        """Check a browser's vote and pass it on; return the status of the response."""
        if (slot := self.slots.find(name)) is None:
            return HTTPStatus.FORBIDDEN
        if not self.slots.count_vote(slot):
            return HTTPStatus.TOO_MANY_REQUESTS
        try:
            vote = _decoder.decode(body)
        except (msgspec.MsgspecError, UnicodeError):
            return HTTPStatus.BAD_REQUEST
        board = self.source.board
        if board is None or not board.open or board.question != vote.question:
            return HTTPStatus.CONFLICT
        if not is_answer(vote.choice, len(board.choices), (board.low, board.high)):
            return HTTPStatus.BAD_REQUEST
        passed_on = self.source.vote_for(slot.number, vote.question, vote.choice)
        return HTTPStatus.NO_CONTENT if passed_on else HTTPStatus.SERVICE_UNAVAILABLE


# --- the newest messages to all browsers, each of which reads them at its own pace ----------------

MOST_MESSAGES = 200
"""Largest number of messages kept, some 30 s of them; a browser further behind starts again."""

MOST_BYTES = 4 << 20
"""Largest size in bytes of all messages kept."""


class Broadcast:
    """The newest messages to all browsers; one more browser costs only its own transmission."""

    def __init__(self) -> None:
        self.first = 0
        """Number of the oldest message kept."""
        self.closed = False
        """Whether no more messages follow."""
        self._messages: deque[bytes] = deque()
        self._bytes = 0
        self._changed = asyncio.Event()

    @property
    def end(self) -> int:
        """Number of the next message."""
        return self.first + len(self._messages)

    def put(self, message: bytes) -> None:
        """Add a message and wake all browsers' tasks; discard old messages beyond the limits."""
        self._messages.append(message)
        self._bytes += len(message)
        while len(self._messages) > MOST_MESSAGES or (
            self._bytes > MOST_BYTES and len(self._messages) > 1
        ):
            self._bytes -= len(self._messages.popleft())
            self.first += 1
        self._wake()

    def close(self) -> None:
        """End the broadcast; no more messages follow."""
        self.closed = True
        self._wake()

    def since(self, number: int) -> bytes | None:
        """Return all messages from ``number`` on; None if that one is no longer kept."""
        if number < self.first:
            return None
        return b"".join(self._messages[at - self.first] for at in range(number, self.end))

    async def await_message(self, number: int) -> bool:
        """Wait for the message with this number; return False if none will follow."""
        while number >= self.end and not self.closed:
            await self._changed.wait()
        return number < self.end

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


# --- the HTTP server: a page, its files, the stream of messages, and windows of the past ----------

PAGE = Path(__file__).parent / "page"
"""Folder of the page's files: HTML, a style sheet and ES modules, served unchanged."""

MOST_BROWSERS = 500
"""Largest number of browsers at a time."""

MOST_CONNECTIONS = 1200
"""Largest number of connections at a time: each may send 256 KB of headers before it is refused."""

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
        feed: PageFeed,
        broadcast: Broadcast,
        ballot: BrowserVotes | None = None,
    ) -> None:
        """Serve the session; ``ballot`` receives votes. Without a ballot nobody can vote."""
        self.browsers = 0
        """Number of browsers that receive the stream at present."""
        self._admission = admission
        self.feed = feed
        """Messages of the session that is served now."""
        self._broadcast = broadcast
        self._ballot = ballot
        self._files = {
            path.name: path.read_bytes() for path in PAGE.iterdir() if path.suffix in _TYPES
        }

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
            body = await self.feed.windows.get(since, until)
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
        if not 0 < (request.content_length or 0) <= LONGEST:
            return web.Response(status=413)
        try:
            async with asyncio.timeout(_BODY_S):
                body = await request.read()
        except TimeoutError:
            return web.Response(status=408)
        return web.Response(status=self._ballot.cast(request.query.get("as", ""), body))

    @contextlib.contextmanager
    def _occupy_slot(self, name: str) -> Iterator[None]:
        """Let a browser vote while it receives the stream."""
        slots = self._ballot.slots if self._ballot is not None else None
        slot = slots.occupy(name) if slots is not None else None
        try:
            yield
        finally:
            if slots is not None and slot is not None:
                slots.release(name)

    async def _events(self, request: web.BaseRequest) -> web.StreamResponse:
        if self.browsers >= MOST_BROWSERS:
            return web.Response(status=503)
        response = web.StreamResponse(headers={**_HEADERS, "Content-Type": "text/event-stream"})
        await response.prepare(request)
        if request.transport is not None:
            request.transport.set_write_buffer_limits(high=_BUFFER)
        self.browsers += 1
        try:
            with self._occupy_slot(request.query.get("as", "")):
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
        lines = b"retry: 1000\n\n" + self.feed.opening()
        place = broadcast.end
        while True:
            async with asyncio.timeout(_SENT_S):
                await response.write(lines)
            more = True
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_QUIET_S):
                    more = await broadcast.await_message(place)
            if not more:
                return
            found = broadcast.since(place)
            lines = found or b": nothing new\n\n"
            if found is None:
                missed = message("gap", {})
                lines = missed + self.feed.opening()
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
    """A server of such connections, of which it accepts ``MOST_CONNECTIONS``."""

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        """Close a connection at once if there are too many."""
        super().connection_made(handler, transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()

    def __call__(self) -> web.RequestHandler:
        """Return what reads the requests of a new connection."""
        return _Connection(self, loop=self._loop, **self._kwargs)

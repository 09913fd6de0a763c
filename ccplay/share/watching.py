"""The source of a spectator's events: the stream of a shared session."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from socket import SHUT_RDWR, socket

from ccplay.errors import CcplayError, RecordingError, WireError
from ccplay.model.base import Command, Event
from ccplay.model.events import Ended, Log
from ccplay.model.samples import Sweep
from ccplay.share import frames, places
from ccplay.share.backlog import Unpacker
from ccplay.share.frames import AnyFrame, Board, Gap, Greeting, Over, Present, PresenterView, Wants
from ccplay.stream import wire
from ccplay.stream.sources import RecordingLimits
from ccplay.stream.wire import UnknownEvent
from ccplay.units import format_clock

_CHUNK = 1 << 18

_NEXT_S = 60.0
"""Longest time in seconds to wait for the presenter's next network."""

_TRY_S = 0.2
"""Seconds between attempts to join it."""

_TRY_PATIENCE_S = 2.0
"""Seconds that its server may take to answer."""

_TURN_S = 0.01
"""Seconds for which the past is read before other tasks run."""


class WatchSource:
    """The stream from the server of a shared session, with the limits of a recording."""

    live = False

    def __init__(self, connection: socket, greeting: Greeting) -> None:
        """Hold a connection and its greeting, as ``places.join`` returns them."""
        self._place: tuple[Path, Wants] | None = None
        self.greeting = greeting
        self.view: PresenterView | None = None
        """The presenter's newest view; None before the first is received."""
        self.board: Board | None = None
        """Page of the presenter's lesson; None if there is none."""
        self.present = False
        """Whether the past has been read, so that further events happen now."""
        self._connection = connection
        self._limits = RecordingLimits()
        self._begun = self._ended = self._closing = False
        self.another = False
        """Whether the presenter has announced another network, under the same name."""
        self._now = 0.0

    @classmethod
    def join(cls, path: Path, wants: Wants, patience_s: float = places.PATIENCE_S) -> WatchSource:
        """Join the session on the socket at ``path``. Raises ``CcplayError``."""
        source = cls(*places.join(path, wants, patience_s))
        source._place = path, wants
        return source

    async def rejoin(self) -> WatchSource | None:
        """Join the next network after the end of this one, if the presenter has announced one.

        Return None if there is none, or if it is not shared within a minute.
        """
        if not self.another or self._place is None:
            return None
        until = time.monotonic() + _NEXT_S
        while time.monotonic() < until:
            with contextlib.suppress(CcplayError):
                return await asyncio.to_thread(WatchSource.join, *self._place, _TRY_PATIENCE_S)
            await asyncio.sleep(_TRY_S)
        return None

    async def events(self) -> AsyncIterator[Event | UnknownEvent]:
        """Yield every event; if some were missed, an empty sweep and a message in their place.

        Raises ``CcplayError`` for an invalid stream.
        """
        turn_ends = time.monotonic() + _TURN_S
        try:
            async for line in self._lines():
                for event in self._read(line):
                    yield event
                if time.monotonic() > turn_ends:
                    await asyncio.sleep(0)
                    turn_ends = time.monotonic() + _TURN_S
        except WireError as error:
            raise CcplayError(f"what the presenter's ccplay sends can't be read: {error}") from None
        except RecordingError as error:
            raise CcplayError(str(error)) from None
        finally:
            self._connection.close()
        if self._begun and not self._ended and not self._closing:
            yield Ended(t=self._now, reason="the connection to the presenter is lost")

    def send(self, command: Command) -> None:
        """Do nothing: spectators can't send anything to the lab."""

    def vote(self, question: int, choice: float) -> None:
        """Vote on the question of a lesson; the newest vote counts."""
        self._ask(frames.encode_vote(question, choice))

    def vote_for(self, seat: int, question: int, choice: float) -> bool:
        """Vote for one of the browsers served; return whether the vote was sent."""
        return self._ask(frames.encode_vote(question, choice, seat))

    def report(self, browsers: int) -> bool:
        """Report the number of browsers; return whether the report was sent."""
        return self._ask(frames.encode_browsers(browsers))

    def _ask(self, request: bytes) -> bool:
        try:
            # The kernel accepts so few bytes either completely or not at all.
            return self._connection.send(request) == len(request)
        except OSError:
            return False

    async def close(self) -> None:
        """End the connection, and with it the stream."""
        self._closing = True
        with contextlib.suppress(OSError):
            self._connection.shutdown(SHUT_RDWR)

    async def _lines(self) -> AsyncIterator[bytes]:
        """Yield complete lines. Raises ``WireError`` for an invalid stream."""
        self._connection.setblocking(False)
        loop, unpacker = asyncio.get_running_loop(), Unpacker()
        while data := await _received(loop, self._connection):
            for line in unpacker.lines(data):
                yield line

    def _read(self, line: bytes) -> list[Event | UnknownEvent]:
        """Return the events of a line."""
        if line.startswith(frames.PREFIX):
            return self._take(frames.decode(line))
        event = wire.decode_event(line) if self._begun else wire.decode_hello(line, "the stream")
        self._begun = True
        self._limits.check(event)
        self._now = max(self._now, event.t)
        self._ended = self._ended or isinstance(event, Ended)
        return [event]

    def _take(self, frame: AnyFrame) -> list[Event | UnknownEvent]:
        if isinstance(frame, PresenterView):
            self.view = frame
        elif isinstance(frame, Board):
            self.board = frame if frame.page else None
        elif isinstance(frame, Present):
            self.present = True
        elif isinstance(frame, Over):
            self.another = frame.another
            if not self._begun or self._ended:
                return []
            self._ended = True
            return [Ended(t=self._now, reason=frame.reason)]
        elif isinstance(frame, Gap) and self._begun:
            since, until = format_clock(frame.since), format_clock(frame.until)
            text = f"missed {since} to {until}: this screen did not keep up with the session"
            hole = Sweep(t=max(frame.since, self._now))
            self._limits.check(hole)
            return [hole, Log(t=max(frame.until, self._now), level="warning", text=text)]
        return []


async def _received(loop: asyncio.AbstractEventLoop, connection: socket) -> bytes:
    """Return the next bytes; empty at the end of the connection, errors included."""
    try:
        return await loop.sock_recv(connection, _CHUNK)
    except OSError:
        return b""

"""A spectator as the server sees it: a position in the backlog, and a socket that may be slow."""

from __future__ import annotations

import errno
import os
from collections import Counter, deque
from itertools import count
from socket import SO_SNDBUF, SOL_SOCKET, socket

import msgspec

from ccplay.errors import WireError
from ccplay.share import frames
from ccplay.share.backlog import Backlog
from ccplay.share.ballot import Ballot
from ccplay.share.frames import Browsers, Gap, Greeting, Over, Present, Vote, Wants

_SOCKET_BYTES = 1 << 16
"""Bytes that the kernel buffers for a spectator who does not read: some seconds of the stream."""

_PIECE = 1 << 18
"""Most bytes of the past sent at once, so that one spectator does not delay the others."""

_PIECES = 4
"""Most pieces sent to a spectator per turn: parts of the past, chunks, or lines."""

MOST_VOTES = 1000
"""Votes that a voter may send; a spectator who sends more is disconnected."""

_numbers = count()


class Spectator:
    """Sends one spectator what it asked for; keeps only the lines being sent in memory."""

    def __init__(
        self,
        connection: socket,
        backlog: Backlog,
        greeting: Greeting,
        ballot: Ballot | None = None,
        *,
        trusted: bool = False,
    ) -> None:
        """Prepare to serve a connection; ``ballot`` receives the spectator's votes.

        A ``trusted`` spectator may vote for browsers that it serves, and report their number.
        """
        connection.setblocking(False)
        connection.setsockopt(SOL_SOCKET, SO_SNDBUF, _SOCKET_BYTES)
        self.connection = connection
        self.wants: Wants | None = None
        """What the spectator asked for; None before its hello."""
        self.blocked = False
        """Whether the socket is full, so that sending must wait until it is writable."""
        self.over = False
        """Whether everything was sent that the spectator will ever receive."""
        self._ballot = ballot
        self._voter = f"spectator {next(_numbers)}"
        self._backlog = backlog
        self._greeting = greeting
        self._trusted = trusted
        self._seats = 0
        self._browsers = 0
        self._unread = b""
        self._votes: Counter[int] = Counter()
        self._rest = memoryview(b"")
        self._queue: deque[bytes | range] = deque()
        """Lines to send before anything else, or ranges of numbers of the backlog's kept lines."""
        self._finish = b""
        self._past: int | None = None
        self._at = 0
        self._kept = 0
        self._t = 0.0
        self._unpacks = False
        """Whether the spectator has received all packed chunks of the current context."""

    @property
    def watching(self) -> int:
        """The number of those who watch over this connection: one, or the browsers it serves."""
        if self.wants in (None, Wants.GREETING):
            return 0
        return self._browsers if self._seats else 1

    def receive(self) -> bool:
        """Read what the spectator sends, a hello and then votes; return False to drop it."""
        size = frames.HELLO_BYTES if self.wants is None else frames.REQUEST_BYTES
        try:
            data = self.connection.recv(size - len(self._unread))
        except BlockingIOError:
            return True
        except OSError:
            return False
        self._unread += data
        if not data:
            return False
        if len(self._unread) < size:
            return True
        message, self._unread = self._unread, b""
        try:
            if self.wants is None:
                self._join(frames.decode_hello(message))
            else:
                self._take(frames.decode_request(message))
        except WireError:
            return False
        return self._votes[0] <= MOST_VOTES

    def _take(self, request: Vote | Browsers) -> None:
        """Cast a vote, or note the number of browsers. Raises ``WireError`` if not allowed."""
        if isinstance(request, Browsers):
            if not self._seats:
                raise WireError("this spectator may not report browsers")
            self._browsers = request.number
            return
        seat = request.seat
        if seat > self._seats:
            raise WireError("this spectator may not vote for others")
        self._votes[seat] += 1
        # A browser that votes too often is ignored, so that the others can still vote.
        if self._ballot is not None and self._votes[seat] <= MOST_VOTES:
            voter = f"{self._voter} browser {seat}" if seat else self._voter
            self._ballot.cast(voter, str(request.question), request.choice)

    def _join(self, wants: Wants) -> None:
        self.wants = wants
        if wants is Wants.BROWSERS and self._trusted:
            self._seats = frames.MOST_SEATS
        greeting = msgspec.structs.replace(self._greeting, seats=self._seats)
        self._queue.append(frames.encode(greeting))
        if wants in (Wants.WHOLE, Wants.BROWSERS):
            self._past = 0
        elif wants is Wants.NOW:
            self._go_to_now()
        else:
            self.over = True

    def _go_to_now(self) -> None:
        """Queue all missed events except samples, and continue with the next chunk."""
        backlog = self._backlog
        backlog.take()
        self._unpacks = False
        self._queue.append(range(self._kept, backlog.chunked))
        self._kept, self._at, self._t = backlog.chunked, backlog.end, backlog.now
        self._queue.append(frames.encode(Present()) + backlog.shown)

    def end(self, over: Over) -> None:
        """End the stream after what is left to send, with ``over`` as the last line."""
        self._finish = frames.encode(over)

    def send(self) -> bool:
        """Send as much as the socket takes now; return False once the spectator is gone."""
        self.blocked = False
        try:
            for _ in range(_PIECES):
                if self._rest:
                    self._rest = self._rest[self.connection.send(self._rest) :]
                elif self._past is not None and not self._queue:
                    self._send_past(self._past)
                elif (lines := self._next()) is not None:
                    self._rest = memoryview(lines)
                else:
                    return not self.over
            # The rest must wait until other spectators had their turn.
            self.blocked = True
        except BlockingIOError:
            self.blocked = True
        except OSError:
            return False
        return True

    def _send_past(self, at: int) -> None:
        backlog = self._backlog
        if at < backlog.past_end:
            there, most = self.connection.fileno(), min(backlog.past_end - at, _PIECE)
            sent = os.sendfile(there, backlog.past.fileno(), at, most)
            if not sent:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            self._past = at + sent
            return
        self._past = None
        self._at, self._kept, self._t = backlog.past_until, backlog.past_kept, backlog.past_now
        self._queue.append(frames.encode(Present()) + backlog.shown)

    def _next(self) -> bytes | None:
        """Return the next lines to send; None if the spectator has everything."""
        if self._queue:
            first = self._queue.popleft()
            return self._kept_lines(first) if isinstance(first, range) else first
        if self.wants is None or self.over:
            return None
        if self._at < self._backlog.first:
            since = self._t
            self._go_to_now()
            return frames.encode(Gap(since=since, until=max(self._t, since)))
        if (chunk := self._backlog.chunk(self._at)) is not None:
            self._at, self._kept, self._t = self._at + 1, chunk.kept, chunk.t
            self._unpacks = bool(chunk.packed) and (self._unpacks or chunk.begins)
            return chunk.packed if self._unpacks else chunk.lines
        if self._finish:
            self.over = True
            return self._finish
        return None

    def _kept_lines(self, numbers: range) -> bytes:
        """Return the first of these kept lines, up to a piece; queue the others."""
        piece = bytearray()
        for number in numbers:
            if len(piece) >= _PIECE:
                self._queue.appendleft(range(number, numbers.stop))
                break
            piece += self._backlog.kept[number]
        return bytes(piece)

    def close(self) -> None:
        """Close the spectator's connection."""
        self.connection.close()

"""A spectator as the server sees it: a place in the backlog, and a socket that may be slow."""

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
"""Bytes that the kernel holds for a spectator who does not read: some seconds of the stream."""

_PIECE = 1 << 18
"""Bytes of the past that are sent at once, so that one spectator does not hold up the others."""

_PIECES = 4
"""Most pieces of the past or of kept lines sent in a turn."""

MOST_VOTES = 1000
"""Votes that a voter may send; a spectator who changes it more often leaves."""

_numbers = count()


class Spectator:
    """Sends one spectator what it asked for; it holds no more than the lines being sent."""

    def __init__(
        self,
        connection: socket,
        backlog: Backlog,
        greeting: Greeting,
        ballot: Ballot | None = None,
        *,
        trusted: bool = False,
    ) -> None:
        """``ballot`` takes its votes, each in place of the one before.

        ``trusted``: whether it may vote for browsers that it serves, and report how many there are.
        """
        connection.setblocking(False)
        connection.setsockopt(SOL_SOCKET, SO_SNDBUF, _SOCKET_BYTES)
        self.connection = connection
        self.wants: Wants | None = None
        """What it asked for; None before its hello."""
        self.blocked = False
        """Whether the socket took less than there was to send."""
        self.over = False
        """Whether everything was sent that it will ever receive."""
        self._ballot = ballot
        self._voter = f"spectator {next(_numbers)}"
        self._backlog = backlog
        self._greeting = greeting
        self._trusted = trusted
        self._seats = 0
        self._browsers = 0
        self._heard = b""
        self._votes: Counter[int] = Counter()
        self._rest = memoryview(b"")
        self._queue: deque[bytes | range] = deque()
        """Lines to send before anything else, or the numbers of kept ones."""
        self._finish = b""
        self._past: int | None = None
        self._at = 0
        self._kept = 0
        self._t = 0.0
        self._unpacks = False
        """Whether it has all packed chunks since their context began."""

    @property
    def watching(self) -> int:
        """How many watch by it: one, or the browsers that it serves."""
        if self.wants in (None, Wants.GREETING):
            return 0
        return self._browsers if self._seats else 1

    def hear(self) -> bool:
        """Read what it sends; return whether it stays: it may send a hello, then votes alone."""
        size = frames.HELLO_BYTES if self.wants is None else frames.REQUEST_BYTES
        try:
            data = self.connection.recv(size - len(self._heard))
        except BlockingIOError:
            return True
        except OSError:
            return False
        self._heard += data
        if not data:
            return False
        if len(self._heard) < size:
            return True
        heard, self._heard = self._heard, b""
        try:
            if self.wants is None:
                self._join(frames.decode_hello(heard))
            else:
                self._take(frames.decode_request(heard))
        except WireError:
            return False
        return self._votes[0] <= MOST_VOTES

    def _take(self, request: Vote | Browsers) -> None:
        """Cast a vote, or note how many browsers there are. Raises ``WireError``."""
        if isinstance(request, Browsers):
            if not self._seats:
                raise WireError("this spectator may not report browsers")
            self._browsers = request.number
            return
        seat = request.seat
        if seat > self._seats:
            raise WireError("this spectator may not vote for others")
        self._votes[seat] += 1
        # One browser that never stops is ignored, so that the others can still vote.
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
        """Continue with what comes next, after all events but samples that it has not received."""
        backlog = self._backlog
        backlog.take()
        self._unpacks = False
        self._queue.append(range(self._kept, backlog.chunked))
        self._kept, self._at, self._t = backlog.chunked, backlog.end, backlog.now
        self._queue.append(frames.encode(Present()) + backlog.shown)

    def end(self, reason: str) -> None:
        """Let it receive the rest, and then the reason why nothing follows."""
        self._finish = frames.encode(Over(reason=reason))

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
            # Others come first, then the rest.
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
        """Return the next lines; None where it has everything."""
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
        """Return some of these kept lines; the others come next."""
        piece = bytearray()
        for number in numbers:
            if len(piece) >= _PIECE:
                self._queue.appendleft(range(number, numbers.stop))
                break
            piece += self._backlog.kept[number]
        return bytes(piece)

    def close(self) -> None:
        """Close its connection."""
        self.connection.close()

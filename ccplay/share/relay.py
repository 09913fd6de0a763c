"""The server of a shared session: one process between the presenter and all spectators."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import selectors
import sys
import time
from collections import Counter, deque
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from socket import SO_SNDBUF, SOL_SOCKET, socket
from typing import TypeGuard

from msgspec.structs import replace

from ccplay.errors import CcplayError, WireError
from ccplay.share import frames, sockets
from ccplay.share.backlog import LIVE_S, Backlog
from ccplay.share.frames import (
    Board,
    BrowserCount,
    Gap,
    Greeting,
    Over,
    Present,
    Setup,
    Shown,
    Vote,
    Votes,
    Wants,
    Watching,
)
from ccplay.stream import wire

# --- the ballot of a shared lesson: one vote per voter, which may change until the run starts -----

MOST_VOTERS = 2000
"""Greatest number of voters on one question; later voters are not counted."""

MOST_CHOICES = 9
"""Greatest number of choices of a question, which are selected with the number keys."""

BINS = 8
"""Number of intervals of equal width in which votes for a number are counted."""

_LONGEST_NAME = 100
"""Greatest number of characters of a voter's name."""


def is_answer(choice: object, choices: int, bounds: tuple[float, float]) -> TypeGuard[int | float]:
    """Return whether ``choice`` is one of ``choices``, or if that is 0, a number in ``bounds``."""
    if isinstance(choice, bool) or not isinstance(choice, int | float):
        return False
    if choices:
        return 0 <= choice < choices and choice == int(choice)
    # NaN is not within any bounds.
    return bounds[0] <= choice <= bounds[1]


class Ballot:
    """The votes on the open question. All that a voter can do is change its own vote."""

    def __init__(self) -> None:
        self.question = 0
        """Number of the newest question; 0 before the first."""
        self.open = False
        """Whether votes on the question count now."""
        self._choices = 0
        self._bounds: tuple[float, float] = (0.0, 0.0)
        self._width = 0.0
        self._votes: dict[str, float] = {}

    def ask(
        self,
        question: int,
        *,
        choices: int = 0,
        bounds: tuple[float, float] = (0.0, 0.0),
        width: float = 0.0,
    ) -> None:
        """Open a question with ``choices`` choices, or for a number within ``bounds``.

        With a ``width`` the number is the lower end of a region. Deletes the votes on an earlier
        question; the same question keeps its votes, also after ``close``. Raises ``ValueError``
        for a question that can't be answered.
        """
        low, high = bounds
        if not (
            2 <= choices <= MOST_CHOICES or (choices == 0 and -math.inf < low < high < math.inf)
        ):
            raise ValueError("a question needs 2 to 9 choices, or two bounds")
        if question != self.question:
            self._votes = {}
        self.question, self.open = question, True
        self._choices, self._bounds, self._width = choices, (low, high), width

    def close(self) -> None:
        """Accept no more votes, as the run that answers the question starts; the counts stay."""
        self.open = False

    def cast(self, voter: str, question: int, choice: object) -> bool:
        """Count a vote in place of the voter's earlier one; return False if it is ignored.

        ``choice`` is the number of a choice, from 0, or a number within the bounds. Anything else,
        and a vote on a question that is not open, is ignored.
        """
        if not self.open or not question or question != self.question:
            return False
        if not 0 < len(voter) <= _LONGEST_NAME:
            return False
        if not is_answer(choice, self._choices, self._bounds):
            return False
        if voter not in self._votes and len(self._votes) >= MOST_VOTERS:
            return False
        self._votes[voter] = float(choice)
        return True

    @property
    def voters(self) -> int:
        """The number of voters so far."""
        return len(self._votes)

    @property
    def counts(self) -> tuple[int, ...]:
        """The number of votes for each choice, or in each eighth of the range of numbers.

        The vote for a region counts where its middle is.
        """
        low, high = self._bounds
        counts = [0] * (self._choices or BINS)
        for vote in self._votes.values():
            at = vote if self._choices else (vote + self._width / 2 - low) / (high - low) * BINS
            counts[min(int(at), len(counts) - 1)] += 1
        return tuple(counts)

    def within(self, low: float, high: float) -> int:
        """Return the number of votes from ``low`` to ``high``, both included."""
        return sum(low <= vote <= high for vote in self._votes.values())


# --- A spectator as the server sees it: a position in the backlog, a socket that may be slow ------

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
        self.joined = time.monotonic()
        """Moment at which the spectator connected, by this machine's clock."""
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
        self._slots = 0
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
        return self._browsers if self._slots else 1

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
                self._handle_request(frames.decode_request(message))
        except WireError:
            return False
        return self._votes[0] <= MOST_VOTES

    def _handle_request(self, request: Vote | BrowserCount) -> None:
        """Cast a vote, or note the number of browsers. Raises ``WireError`` if not allowed."""
        if isinstance(request, BrowserCount):
            if not self._slots:
                raise WireError("this spectator may not report browsers")
            self._browsers = request.number
            return
        slot = request.slot
        if slot > self._slots:
            raise WireError("this spectator may not vote for others")
        self._votes[slot] += 1
        # A browser that votes too often is ignored, so that the others can still vote.
        if self._ballot is not None and self._votes[slot] <= MOST_VOTES:
            voter = f"{self._voter} browser {slot}" if slot else self._voter
            self._ballot.cast(voter, request.question, request.choice)

    def _join(self, wants: Wants) -> None:
        self.wants = wants
        if wants is Wants.BROWSERS and self._trusted:
            self._slots = frames.MOST_SLOTS
        greeting = replace(self._greeting, seats=self._slots)
        self._queue.append(frames.encode(greeting))
        if wants in (Wants.WHOLE, Wants.BROWSERS):
            self._past = 0
        elif wants is Wants.NOW:
            self._skip_to_now()
        else:
            self.over = True

    def _skip_to_now(self) -> None:
        """Queue all missed events except samples, and continue with the next chunk."""
        backlog = self._backlog
        backlog.make_chunk()
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
                elif (lines := self._next_lines()) is not None:
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

    def _next_lines(self) -> bytes | None:
        """Return the next lines to send; None if the spectator has everything."""
        if self._queue:
            first = self._queue.popleft()
            return self._kept_lines(first) if isinstance(first, range) else first
        if self.wants is None or self.over:
            return None
        if self._at < self._backlog.first:
            since = self._t
            self._skip_to_now()
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


# --- the server of a shared session: one process between the presenter and all spectators ---------

MOST_SPECTATORS = 1000
"""Greatest number of spectators at a time."""

EXTEND_S = 2.0
"""Seconds between extensions of the past by the newest seconds."""

_HELLO_S = 5.0
"""Seconds within which a spectator must send its hello."""

_LAST_S = 2.0
"""Seconds that slow spectators have to receive the rest once the presenter has ended."""

_CHUNK = 1 << 20


class Server:
    """Reads the presenter's feed and sends it to all spectators who connect."""

    def __init__(self, feed: socket, listener: socket, past: int | None = None) -> None:
        """Prepare to serve; ``past`` is the descriptor of a recording that begins the stream."""
        self.backlog = Backlog()
        self.spectators: set[Spectator] = set()
        self._selector = selectors.DefaultSelector()
        self._feed, self._listener, self._past = feed, listener, past
        self._setup = Setup()
        self._rest = bytearray()
        self._ended = False
        self.ballot = Ballot()
        self._right: tuple[float, float] | None = None
        """Least and greatest right answer to the question; None before the reveal."""
        self._reported: Votes | None = None
        self._counted = 0
        self._began = time.time()
        self._fed = time.monotonic()
        self._over = Over(reason="the presenter has stopped sharing")
        for each in (feed, listener):
            each.setblocking(False)
        self._selector.register(feed, selectors.EVENT_READ, self._read_feed)

    def run(self) -> None:
        """Serve until the presenter ends."""
        extended = time.monotonic()
        sent = 0
        while not self._ended:
            for key, events in self._selector.select(LIVE_S if self.spectators else EXTEND_S):
                call: Callable[[int], None] = key.data
                call(events)
            self.backlog.packs = bool(self.spectators)
            now = time.monotonic()
            if now - extended >= EXTEND_S:
                extended = now
                self.backlog.extend_past()
                self._drop_silent(now)
            elif now - self._fed >= LIVE_S:
                # No further sweep arrives to end the block of the last ones.
                self.backlog.flush()
            if self.backlog.end != sent:
                sent = self.backlog.end
                self._send_all()
            self._count()
            self._report_votes()
        self.backlog.flush()

    def finish(self) -> None:
        """Send the rest to spectators who read it within two seconds, then close everything."""
        self._selector.unregister(self._listener)
        self._listener.close()
        until = time.monotonic() + _LAST_S
        for each in self.spectators:
            each.end(self._over)
        while self.spectators and (left := until - time.monotonic()) > 0:
            self._send_all()
            if self.spectators:
                for key, events in self._selector.select(left):
                    key.data(events)
        for each in list(self.spectators):
            self._drop(each)
        self._selector.close()
        self.backlog.close()

    # --- the presenter ----------------------------------------------------------------------

    def _read_feed(self, _: int) -> None:
        try:
            data = self._feed.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._ended = True
            self._selector.unregister(self._feed)
            return
        self._fed = time.monotonic()
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._rest += line
            self._read_line(bytes(self._rest))
            self._rest.clear()
        self._rest += rest
        self.backlog.make_chunk()

    def _read_line(self, line: bytes) -> None:
        if line.startswith(frames.PREFIX):
            frame = frames.decode(line)
            if isinstance(frame, Setup):
                self._prepare(frame)
            elif isinstance(frame, Shown):
                self.backlog.show(line + b"\n")
            elif isinstance(frame, Board):
                self.backlog.write_board(line + b"\n")
                self._update_ballot(frame)
            elif isinstance(frame, Over):
                self._over = frame
        else:
            self.backlog.put(wire.decode_event(line + b"\n"))

    def _update_ballot(self, board: Board) -> None:
        """Open the ballot for the question of a page, or close it if the page has no open one."""
        with contextlib.suppress(ValueError):
            if board.open:
                self.ballot.ask(
                    board.question,
                    choices=len(board.choices),
                    bounds=(board.low, board.high),
                    width=board.width,
                )
                self._right = None
                return
        self.ballot.close()
        self._right = board.answers if board.question == self.ballot.question else None

    def _prepare(self, setup: Setup) -> None:
        """Prepare what the first spectator receives, then let spectators connect."""
        self._setup = setup
        if self._past is not None:
            with contextlib.suppress(OSError):
                self.backlog.preload(self._past, setup.past_bytes)
            os.close(self._past)
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)

    def _count(self) -> None:
        watching = sum(each.watching for each in self.spectators)
        if watching != self._counted:
            self._counted = watching
            with contextlib.suppress(OSError):
                self._feed.send(frames.encode(Watching(count=watching)))

    def _report_votes(self) -> None:
        votes = Votes(
            question=self.ballot.question,
            counts=self.ballot.counts,
            voters=self.ballot.voters,
            right=self.ballot.within(*self._right) if self._right else None,
        )
        if votes.question and votes != self._reported:
            self._reported = votes
            with contextlib.suppress(OSError):
                self._feed.send(frames.encode(votes))

    # --- spectators -------------------------------------------------------------------------

    def _accept(self, _: int) -> None:
        try:
            connection, _address = self._listener.accept()
        except OSError:
            return
        if len(self.spectators) >= MOST_SPECTATORS:
            with contextlib.suppress(OSError):
                connection.setblocking(False)
                connection.send(frames.encode(Over(reason="there are too many spectators")))
            connection.close()
            return
        greeting = Greeting(
            protocol=frames.PROTOCOL,
            title=self._setup.title,
            recorded=self._setup.recorded,
            began=self._began,
            now=self.backlog.now,
            watching=self._counted,
        )
        trusted = sockets.is_from_presenter(connection)
        spectator = Spectator(connection, self.backlog, greeting, self.ballot, trusted=trusted)
        self.spectators.add(spectator)
        serve = partial(self._serve, spectator)
        self._selector.register(connection, selectors.EVENT_READ, serve)

    def _serve(self, spectator: Spectator, events: int) -> None:
        if events & selectors.EVENT_READ and not spectator.receive():
            self._drop(spectator)
        elif events & selectors.EVENT_WRITE or spectator.wants is not None:
            self._send(spectator)

    def _send_all(self) -> None:
        for each in list(self.spectators):
            if not each.blocked:
                self._send(each)

    def _send(self, spectator: Spectator) -> None:
        was_blocked = spectator.blocked
        if not spectator.send():
            self._drop(spectator)
        elif spectator.blocked != was_blocked:
            wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if spectator.blocked else 0)
            key = self._selector.get_key(spectator.connection)
            self._selector.modify(spectator.connection, wanted, key.data)

    def _drop(self, spectator: Spectator) -> None:
        if spectator in self.spectators:
            self.spectators.discard(spectator)
            self._selector.unregister(spectator.connection)
            spectator.close()

    def _drop_silent(self, now: float) -> None:
        for spectator in list(self.spectators):
            if spectator.wants is None and now - spectator.joined > _HELLO_S:
                self._drop(spectator)


def main(words: list[str]) -> int:
    """Run the server; return its exit code.

    ``words`` are the descriptors of feed, listener and past (-1: none), and the socket's path.
    """
    feed_fd, listener_fd, past_fd, path = int(words[0]), int(words[1]), int(words[2]), words[3]
    # The presenter and its lab come first.
    os.nice(5)
    server = Server(
        socket(fileno=feed_fd), socket(fileno=listener_fd), past_fd if past_fd >= 0 else None
    )
    try:
        server.run()
    except CcplayError:
        return 1
    finally:
        with contextlib.suppress(OSError):
            Path(path).unlink()
    # The presenter waits for this process, but not for spectators who are slow.
    if os.fork() == 0:
        server.finish()
        os._exit(0)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The server of a shared session: one process between the presenter and all spectators."""

from __future__ import annotations

import contextlib
import os
import selectors
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from socket import socket

from ccplay.errors import CcplayError
from ccplay.share import frames, places
from ccplay.share.backlog import LIVE_S, Backlog
from ccplay.share.ballot import Ballot
from ccplay.share.frames import Board, Greeting, Over, PresenterView, Setup, Votes, Watching
from ccplay.share.spectator import Spectator
from ccplay.stream import wire

MOST_SPECTATORS = 1000
"""Greatest number of spectators at a time."""

SETTLE_S = 2.0
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
        self._asked = 0
        self._right: tuple[float, float] | None = None
        """Least and greatest right answer to the question; None before the reveal."""
        self._reported: Votes | None = None
        self._counted = 0
        self._joined: dict[Spectator, float] = {}
        self._began = time.time()
        self._fed = time.monotonic()
        self._over = Over(reason="the presenter has stopped sharing")
        for each in (feed, listener):
            each.setblocking(False)
        self._selector.register(feed, selectors.EVENT_READ, self._read_feed)

    def run(self) -> None:
        """Serve until the presenter ends."""
        settled = time.monotonic()
        sent = 0
        while not self._ended:
            for key, events in self._selector.select(LIVE_S if self.spectators else SETTLE_S):
                call: Callable[[int], None] = key.data
                call(events)
            self.backlog.packs = bool(self.spectators)
            now = time.monotonic()
            if now - settled >= SETTLE_S:
                settled = now
                self.backlog.settle()
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
            self._take(bytes(self._rest))
            self._rest.clear()
        self._rest += rest
        self.backlog.take()

    def _take(self, line: bytes) -> None:
        if line.startswith(frames.PREFIX):
            frame = frames.decode(line)
            if isinstance(frame, Setup):
                self._begin(frame)
            elif isinstance(frame, PresenterView):
                self.backlog.show(line + b"\n")
            elif isinstance(frame, Board):
                self.backlog.write_board(line + b"\n")
                self._ask(frame)
            elif isinstance(frame, Over):
                self._over = frame
        else:
            self.backlog.put(wire.decode_event(line + b"\n"))

    def _ask(self, board: Board) -> None:
        """Open the ballot for the question of a page, or close it if the page has no open one."""
        with contextlib.suppress(ValueError):
            if board.open:
                self.ballot.ask(
                    str(board.question),
                    choices=len(board.choices),
                    bounds=(board.low, board.high),
                    width=board.width,
                )
                self._asked, self._right = board.question, None
                return
        self.ballot.close()
        self._right = board.answers if board.question == self._asked else None

    def _begin(self, setup: Setup) -> None:
        """Prepare what the first spectator receives, then let spectators connect."""
        self._setup = setup
        self.backlog.spool_bytes = setup.spool_bytes
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
            question=self._asked,
            counts=self.ballot.counts,
            voters=self.ballot.voters,
            right=self.ballot.within(*self._right) if self._right else None,
        )
        if self._asked and votes != self._reported:
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
        trusted = places.is_presenters(connection)
        spectator = Spectator(connection, self.backlog, greeting, self.ballot, trusted=trusted)
        self.spectators.add(spectator)
        self._joined[spectator] = time.monotonic()
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
            self._joined.pop(spectator, None)
            self._selector.unregister(spectator.connection)
            spectator.close()

    def _drop_silent(self, now: float) -> None:
        for spectator, since in list(self._joined.items()):
            if spectator.wants is not None:
                del self._joined[spectator]
            elif now - since > _HELLO_S:
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

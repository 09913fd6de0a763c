"""The presenter's side of sharing: feeds the stream to the server without waiting for it."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections import deque
from socket import AF_UNIX, SHUT_WR, SO_SNDBUF, SOCK_STREAM, SOL_SOCKET, socket, socketpair
from typing import Any, BinaryIO

import msgspec

from ccplay.errors import CcplayError, WireError
from ccplay.model.base import Event
from ccplay.model.events import Log
from ccplay.model.samples import Sweep
from ccplay.share import frames, places
from ccplay.share.frames import Board, Over, PresenterView, Setup, Votes, Watching
from ccplay.stream import wire
from ccplay.stream.wire import UnknownEvent
from ccplay.units import format_clock

# --- removes from the stream what spectators must not learn ---------------------------------------
# Removes from the stream what spectators must not learn: paths, and the user names in them.

_PATH = re.compile(r"(?:(?<=[\s\"'(=:,\[])|^)(?:~[^/\s]*)?(?:/[^/\s\"'(),;:\]]+)+/?")
"""Pattern of an absolute path, or one that begins with ``~``, within a sentence."""

_encoder = msgspec.json.Encoder()


def without_paths(text: str) -> str:
    """Return a text with each path reduced to its last component."""
    return _PATH.sub(lambda found: found[0].rstrip("/").rpartition("/")[2], text)


def scrubbed(line: bytes) -> bytes:
    """Return an event's line with paths removed from all its texts, keys of objects included."""
    if b"/" not in line:
        return line
    value = msgspec.json.decode(line)
    return _encoder.encode(_scrubbed(value)) + b"\n"


def _scrubbed(value: Any) -> Any:
    if isinstance(value, str):
        return without_paths(value)
    if isinstance(value, list):
        return [_scrubbed(each) for each in value]
    if isinstance(value, dict):
        return {without_paths(key): _scrubbed(each) for key, each in value.items()}
    return value


# --- the presenter's side of sharing: feeds the stream to the server without waiting for it -------

MOST_BEHIND = 4 << 20
"""Bytes waiting for the server above which sweeps are left out."""

_MOST_WAITING = 64 << 20
"""Bytes waiting for the server above which sharing ends."""

_LAST_S = 1.0
"""Seconds that the server has at the end to read the rest."""


class Sharing:
    """Shares a session; it becomes a sink of a live session, but not of a replay."""

    def __init__(
        self,
        label: str,
        title: str = "",
        *,
        group: str | None = None,
        recorded: bool = False,
        past: BinaryIO | None = None,
    ) -> None:
        """Share the session under a name made from ``label``; the stream begins with ``past``.

        Raises ``CcplayError`` if that is impossible.
        """
        self.watching = 0
        """Number of spectators, as last reported by the server."""
        self.votes: Votes | None = None
        """Newest count of votes on the question of a lesson; None before the first."""
        listener = places.listen(label, group)
        self.name = listener.name
        """Name of the session for spectators."""
        self.path = listener.path
        """Path of the socket to which spectators connect."""
        self._socket = listener.path.lstat()
        self._feed, theirs = socketpair(AF_UNIX, SOCK_STREAM)
        try:
            self._feed.setsockopt(SOL_SOCKET, SO_SNDBUF, MOST_BEHIND)
            self._process = _start(listener, theirs, past)
        except BaseException:
            self._feed.close()
            listener.path.unlink(missing_ok=True)
            raise
        finally:
            theirs.close()
            listener.socket.close()
        self._feed.setblocking(False)
        self._waiting: deque[bytes] = deque()
        self._behind = 0
        self._left_out: float | None = None
        self.closed = False
        """Whether sharing has ended."""
        self._finished = False
        self._unread = bytearray()
        size = 0 if past is None else os.fstat(past.fileno()).st_size
        self._write(frames.encode(Setup(title=title[:500], recorded=recorded, past_bytes=size)))

    def put(self, event: Event | UnknownEvent) -> None:
        """Share one event. Raises ``CcplayError`` if the server has ended or does not read."""
        if self._finished:
            return
        if isinstance(event, Sweep):
            if self._behind > MOST_BEHIND:
                self._left_out = event.t if self._left_out is None else self._left_out
                self._push()
                return
            if self._left_out is not None:
                self._write_gap(self._left_out, event.t)
        self._write(wire.encode(event))

    def _write_gap(self, since: float, until: float) -> None:
        text = f"not shared: {format_clock(since)} to {format_clock(until)}"
        self._write(wire.encode(Sweep(t=since)))
        self._write(wire.encode(Log(t=until, level="warning", text=text)))
        self._left_out = None

    def show(self, view: PresenterView | Board | Over) -> None:
        """Send spectators the presenter's view, the page of a lesson, or why sharing ends."""
        if not self.closed and self._behind <= MOST_BEHIND:
            with contextlib.suppress(CcplayError):
                self._write(frames.encode(view))

    def listen(self) -> None:
        """Update ``watching``, ``votes`` and ``closed`` without waiting."""
        if self.closed:
            return
        try:
            data = self._feed.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            # The next event raises the error.
            self.closed, self.watching = True, 0
            return
        self._unread += data
        *lines, rest = self._unread.split(b"\n")
        self._unread = bytearray(rest)
        for line in lines:
            with contextlib.suppress(WireError):
                frame = frames.decode(bytes(line))
                if isinstance(frame, Watching):
                    self.watching = frame.count
                elif isinstance(frame, Votes):
                    self.votes = frame

    def close(self) -> None:
        """Stop sharing; spectators first receive the rest."""
        if self._finished:
            return
        self._finished = self.closed = True
        self.watching = 0
        with contextlib.suppress(OSError):
            self._feed.settimeout(_LAST_S)
            self._feed.sendall(b"".join(self._waiting))
            self._feed.shutdown(SHUT_WR)
        self._feed.close()
        try:
            self._process.wait(_LAST_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        # A server that was killed leaves its socket; another session may have taken the name since.
        with contextlib.suppress(OSError):
            if os.path.samestat(self.path.lstat(), self._socket):
                self.path.unlink()

    def _write(self, line: bytes) -> None:
        self._waiting.append(line)
        self._behind += len(line)
        self._push()

    def _push(self) -> None:
        """Send as much as the server can receive now. Raises ``CcplayError`` if sharing is over."""
        if self.closed:
            raise CcplayError("this session is not shared any more: its server has ended")
        try:
            while self._waiting:
                line = self._waiting[0]
                sent = self._feed.send(line)
                self._behind -= sent
                if sent < len(line):
                    self._waiting[0] = line[sent:]
                else:
                    self._waiting.popleft()
        except BlockingIOError:
            if self._behind > _MOST_WAITING:
                raise CcplayError("sharing has ended: its server does not read") from None
        except OSError as error:
            raise CcplayError(f"sharing has ended: its server is gone ({error.strerror})") from None


def _start(
    listener: places.Listener, feed: socket, past: BinaryIO | None
) -> subprocess.Popen[bytes]:
    held = [feed.fileno(), listener.socket.fileno()]
    held += [] if past is None else [past.fileno()]
    words = [*map(str, held), *(["-1"] if past is None else []), str(listener.path)]
    # -P keeps the current directory, which may contain others' files, off the import path.
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "ccplay.share", *words],
        pass_fds=held,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        # Ctrl-C and a closed terminal must reach only the presenter, which ends the server.
        start_new_session=True,
    )

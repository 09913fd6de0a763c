"""The presenter's side of sharing: feeds the relay, never waits for it, and starts the gateway."""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from socket import AF_UNIX, SHUT_WR, SO_SNDBUF, SOCK_STREAM, SOL_SOCKET, socketpair
from typing import BinaryIO

import msgspec

from ccplay.errors import CcplayError, UsageError, WireError
from ccplay.model.base import Count, Event
from ccplay.model.events import Log
from ccplay.model.samples import Sweep
from ccplay.share import frames, sockets
from ccplay.share.frames import Board, Over, Setup, Shown, Votes, Watching
from ccplay.stream import wire
from ccplay.stream.wire import UnknownEvent
from ccplay.units import format_clock
from ccplay.visible import printable_json

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
        listener = sockets.listen(label, group)
        self.name = listener.name
        """Name of the session for spectators."""
        self.path = listener.path
        """Path of the socket to which spectators connect."""
        self._socket = listener.path.lstat()
        self._feed, theirs = socketpair(AF_UNIX, SOCK_STREAM)
        try:
            self._feed.setsockopt(SOL_SOCKET, SO_SNDBUF, MOST_BEHIND)
            there = -1 if past is None else past.fileno()
            inherited = [theirs.fileno(), listener.socket.fileno(), there]
            self._process = _start("relay", *inherited, listener.path, inherited=inherited)
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
        self._left_out: tuple[float, float] | None = None
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
                since, _ = self._left_out or (event.t, event.t)
                self._left_out = since, event.t
                self._push()
                return
            self._write_gap()
        self._write(wire.encode(event))

    def _write_gap(self) -> None:
        """Report which moments were left out, if any were."""
        if self._left_out is not None:
            (since, until), self._left_out = self._left_out, None
            text = f"not shared: {format_clock(since)} to {format_clock(until)}"
            self._write(wire.encode(Sweep(t=since)))
            self._write(wire.encode(Log(t=until, level="warning", text=text)))

    def show(self, view: Shown | Board | Over) -> None:
        """Send spectators the presenter's view, the page of a lesson, or why sharing ends."""
        if not self.closed and self._behind <= MOST_BEHIND:
            with contextlib.suppress(CcplayError):
                self._write(frames.encode(view))

    def listen(self) -> None:
        """Update ``watching``, ``votes`` and ``closed``, and send what waits; wait for neither."""
        if self.closed:
            return
        with contextlib.suppress(CcplayError):
            # No event may follow that would send it.
            self._push()
            if self._behind <= MOST_BEHIND:
                self._write_gap()
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
        with contextlib.suppress(CcplayError):
            self._write_gap()
        self._finished = self.closed = True
        self.watching = 0
        with contextlib.suppress(OSError):
            self._feed.settimeout(_LAST_S)
            self._feed.sendall(b"".join(self._waiting))
            self._feed.shutdown(SHUT_WR)
        self._feed.close()
        _end(self._process, _LAST_S)
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
            raise CcplayError("this session is no longer shared: its server has ended")
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
    module: str, *words: object, inherited: Sequence[int] = (), stdout: int = subprocess.DEVNULL
) -> subprocess.Popen[bytes]:
    """Start a module of this package as a process that inherits descriptors; -1 is none."""
    return subprocess.Popen(
        # -P keeps the current directory, which may contain others' files, off the import path.
        [sys.executable, "-P", "-m", f"ccplay.share.{module}", *map(str, words)],
        pass_fds=[each for each in inherited if each >= 0],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.DEVNULL,
        # Ctrl-C and a closed terminal must reach only the presenter, which ends the process.
        start_new_session=True,
    )


def _end(process: subprocess.Popen[bytes], within_s: float) -> None:
    """Wait for the end of a process; kill it if that takes longer."""
    try:
        process.wait(within_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


# --- the process that serves the session to browsers ----------------------------------------------

_LONGEST = 1 << 16
"""Greatest number of bytes read from the process at once."""

_BROWSERS_LAST_S = 2.5
"""Seconds that the process may take to end by itself after the session has ended."""

_START_S = 20.0
"""Seconds that ``BrowserServer.wait`` waits for the page."""

LOOPBACK = "127.0.0.1"
"""Address to which only browsers on this machine can connect."""

_PLACE = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9.-]{1,253}))?(?::([0-9]{1,5}))?")


class WebAddress(msgspec.Struct, frozen=True):
    """The address and port to which browsers connect."""

    address: str = LOOPBACK
    """IP address or host name to which browsers connect."""
    port: int = 0
    """TCP port to which browsers connect; 0 for any free one."""


def read_place(text: str) -> WebAddress:
    """Read ``ADDRESS:PORT``, ``ADDRESS`` or ``:PORT``; empty: loopback. Raises ``UsageError``."""
    match = _PLACE.fullmatch(text)
    port = int(match[3]) if match and match[3] else 0
    # A single word is more likely the name of a scenario.
    named = bool(match and match[2] and not match[3] and "." not in match[2])
    if match is None or port > 65535 or (named and text != "localhost"):
        raise UsageError(
            f"--web {text}: not an ADDRESS:PORT, such as 0.0.0.0:8000 or [::1]:8000; "
            "a scenario is named before --web"
        )
    return WebAddress(match[1] or match[2] or LOOPBACK, port)


class BrowserReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A report of the process, sent as one line."""

    link: str | None = None
    """URL of the page."""
    code: list[str] | None = None
    """URL of the page as the lines of a QR code, dark on light."""
    browsers: Count | None = None
    """Number of browsers that watch now."""
    failed: str | None = None
    """Reason why there is no page."""


_decoder = msgspec.json.Decoder(BrowserReport)


class BrowserServer:
    """Serves a session to browsers in a process that watches it like any spectator."""

    def __init__(self, path: Path, place: str) -> None:
        """Start serving the session on the socket at ``path``, without waiting for the page."""
        self.link = ""
        """URL of the page; empty until it is served."""
        self.code: list[str] = []
        """URL of the page as the lines of a QR code, dark on light; empty until it is served."""
        self.count = 0
        """Number of browsers that watch now."""
        self.failed = ""
        """Reason why there is no page; empty unless serving has failed."""
        self._unread = b""
        self._process = _start("web.gateway", path, place, stdout=subprocess.PIPE)
        assert self._process.stdout is not None  # noqa: S101 - asked for
        self._pipe = self._process.stdout
        os.set_blocking(self._pipe.fileno(), False)

    def listen(self) -> None:
        """Read what the process has reported, without waiting."""
        if self.failed:
            return
        try:
            data = os.read(self._pipe.fileno(), _LONGEST)
        except BlockingIOError:
            return
        if not data:
            self.failed, self.count = "the server for browsers has ended", 0
            return
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            with contextlib.suppress(msgspec.MsgspecError, UnicodeError):
                self._apply(_decoder.decode(printable_json(line)))

    def _apply(self, report: BrowserReport) -> None:
        self.link, self.code = report.link or self.link, report.code or self.code
        self.count = self.count if report.browsers is None else report.browsers
        self.failed = report.failed or self.failed

    def wait(self) -> str:
        """Wait for the page and return its URL. Raises ``CcplayError`` if there is none."""
        until = time.monotonic() + _START_S
        with selectors.DefaultSelector() as selector:
            selector.register(self._pipe, selectors.EVENT_READ)
            while not (self.link or self.failed):
                left = until - time.monotonic()
                if left < 0:
                    raise CcplayError("the server for browsers does not start")
                selector.select(left)
                self.listen()
        if self.failed:
            raise CcplayError(self.failed)
        return self.link

    def close(self) -> None:
        """Wait for the process, which first sends the rest to browsers; kill it if that is slow."""
        _end(self._process, _BROWSERS_LAST_S)
        self._pipe.close()


class InBrowsers:
    """A sink that shares a session with spectators, as ``Sharing`` does, and with browsers."""

    def __init__(self, sharing: Sharing, place: str) -> None:
        """Serve the session of ``sharing`` to browsers at ``place``."""
        self.browsers = BrowserServer(sharing.path, place)
        self._sharing = sharing

    def put(self, event: Event | UnknownEvent) -> None:
        """Share one event. Raises ``CcplayError``."""
        self._sharing.put(event)

    def close(self) -> None:
        """Stop sharing; spectators and browsers first receive the rest."""
        self._sharing.close()
        self.browsers.close()

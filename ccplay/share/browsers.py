"""Starts the process that serves a shared session to browsers, and reads what it reports."""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ccplay.errors import CcplayError, UsageError
from ccplay.model.base import Count
from ccplay.visible import printable_json

_LONGEST = 1 << 16
"""Greatest number of bytes read from the process at once."""

_LAST_S = 2.5
"""Seconds that the process may take to end by itself after the session has ended."""

_START_S = 20.0
"""Seconds that ``Browsers.wait`` waits for the page."""


if TYPE_CHECKING:
    from ccplay.model.base import Event
    from ccplay.share.sharing import Sharing
    from ccplay.stream.wire import UnknownEvent

LOOPBACK = "127.0.0.1"
"""Address to which only browsers on this machine can connect."""

_PLACE = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9.-]{1,253}))?(?::([0-9]{1,5}))?")


class Place(msgspec.Struct, frozen=True):
    """The address and port to which browsers connect."""

    address: str = LOOPBACK
    """IP address or host name to which browsers connect."""
    port: int = 0
    """TCP port to which browsers connect; 0 for any free one."""


def read_place(text: str) -> Place:
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
    return Place(match[1] or match[2] or LOOPBACK, port)


class News(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A report of the process, sent as one line."""

    link: str | None = None
    """URL of the page."""
    code: list[str] | None = None
    """URL of the page as the lines of a QR code, dark on light."""
    browsers: Count | None = None
    """Number of browsers that watch now."""
    failed: str | None = None
    """Reason why there is no page."""


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(News)


def encode(news: News) -> bytes:
    """Return the line that reports ``news``."""
    return _encoder.encode(news) + b"\n"


class Browsers:
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
        # -P keeps the current directory, which may contain others' files, off the import path.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "ccplay.share.web", str(path), place],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # Ctrl-C and a closed terminal must reach only the presenter, which ends the session.
            start_new_session=True,
        )
        assert self._process.stdout is not None  # noqa: S101 - asked for
        self._pipe = self._process.stdout
        os.set_blocking(self._pipe.fileno(), False)

    @property
    def serves(self) -> bool:
        """Whether the page is served now."""
        return bool(self.link) and not self.failed

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
                self._take(_decoder.decode(printable_json(line)))

    def _take(self, news: News) -> None:
        self.link, self.code = news.link or self.link, news.code or self.code
        self.count = self.count if news.browsers is None else news.browsers
        self.failed = news.failed or self.failed

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
        try:
            self._process.wait(_LAST_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._pipe.close()


class InBrowsers:
    """A sink that shares a session with spectators, as ``Sharing`` does, and with browsers."""

    def __init__(self, sharing: Sharing, place: str) -> None:
        """Serve the session of ``sharing`` to browsers at ``place``."""
        self.browsers = Browsers(sharing.path, place)
        self._sharing = sharing

    def put(self, event: Event | UnknownEvent) -> None:
        """Share one event. Raises ``CcplayError``."""
        self._sharing.put(event)

    def close(self) -> None:
        """Stop sharing; spectators and browsers first receive the rest."""
        self._sharing.close()
        self.browsers.close()

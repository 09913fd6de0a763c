"""The process that serves a shared session to browsers, as its presenter sees it."""

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

_LONGEST = 1 << 16
"""Bytes of a line."""

_LAST_S = 2.5
"""Seconds for the process to end by itself, once the session has."""

_START_S = 20.0
"""Seconds for a start that is waited for."""


if TYPE_CHECKING:
    from ccplay.model.events import AnyEvent
    from ccplay.share.sharing import Sharing
    from ccplay.stream.wire import UnknownEvent

LOOPBACK = "127.0.0.1"
"""Address to which only browsers of this machine can connect."""

_PLACE = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9.-]{1,253}))?(?::([0-9]{1,5}))?")


class Place(msgspec.Struct, frozen=True):
    """Where browsers connect to."""

    address: str = LOOPBACK
    """An IP address, or the name of one."""
    port: int = 0
    """0: one that is free."""


def read_place(text: str) -> Place:
    """Read ``ADDRESS:PORT``, ``ADDRESS`` or ``:PORT``; empty: loopback. Raises ``UsageError``."""
    match = _PLACE.fullmatch(text)
    port = int(match[3]) if match and match[3] else 0
    # A word alone is rather a scenario that was meant to be opened.
    named = bool(match and match[2] and not match[3] and "." not in match[2])
    if match is None or port > 65535 or (named and text != "localhost"):
        raise UsageError(
            f"--web {text}: no ADDRESS:PORT, such as 0.0.0.0:8000 or [::1]:8000; "
            "a scenario is named before --web"
        )
    return Place(match[1] or match[2] or LOOPBACK, port)


class News(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line from the process."""

    link: str | None = None
    """URL of the page."""
    code: list[str] | None = None
    """The same as lines of a QR code, dark on light."""
    browsers: Count | None = None
    """Number of browsers that watch now."""
    failed: str | None = None
    """Reason for which there is no page."""


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(News)


def encode(news: News) -> bytes:
    """Return a line."""
    return _encoder.encode(news) + b"\n"


class Browsers:
    """Serves a session to browsers in a process that watches it like any spectator."""

    def __init__(self, path: Path, place: str) -> None:
        """Start serving the session on the socket at ``path``; it does not wait."""
        self.link = ""
        """URL of the page; empty until it is served."""
        self.code: list[str] = []
        """The link as lines of a QR code, dark on light."""
        self.count = 0
        """Browsers that watch now."""
        self.failed = ""
        """Reason for which there is no page; empty unless it has failed."""
        self._heard = b""
        # -P keeps the current directory, which may hold a stranger's files, off the import path.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "ccplay.web", str(path), place],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # Ctrl-C and the end of the terminal are for the presenter, whose end ends it.
            start_new_session=True,
        )
        assert self._process.stdout is not None  # noqa: S101 - asked for
        self._pipe = self._process.stdout
        os.set_blocking(self._pipe.fileno(), False)

    @property
    def serves(self) -> bool:
        """Whether there is a page."""
        return bool(self.link) and not self.failed

    def listen(self) -> None:
        """Read what the process reports; it does not wait."""
        if self.failed:
            return
        try:
            data = os.read(self._pipe.fileno(), _LONGEST)
        except BlockingIOError:
            return
        if not data:
            self.failed, self.count = "the server for browsers has ended", 0
            return
        *lines, self._heard = (self._heard + data).split(b"\n")
        for line in lines:
            with contextlib.suppress(msgspec.MsgspecError):
                self._take(_decoder.decode(line))

    def _take(self, news: News) -> None:
        self.link, self.code = news.link or self.link, news.code or self.code
        self.count = self.count if news.browsers is None else news.browsers
        self.failed = news.failed or self.failed

    def wait(self) -> str:
        """Wait for the page and return its link. Raises ``CcplayError`` where there is none."""
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
        """Wait until the process has ended, with the session; it may send the rest before."""
        try:
            self._process.wait(_LAST_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._pipe.close()


class InBrowsers:
    """A session that is shared with browsers too. It is a sink, as ``Sharing`` is."""

    def __init__(self, sharing: Sharing, place: str) -> None:
        """Serve what ``sharing`` shares at ``place``."""
        self.browsers = Browsers(sharing.path, place)
        self._sharing = sharing

    def put(self, event: AnyEvent | UnknownEvent) -> None:
        """Take one event. Raises ``CcplayError``."""
        self._sharing.put(event)

    def close(self) -> None:
        """Stop sharing: spectators and browsers receive the rest."""
        self._sharing.close()
        self.browsers.close()

"""Spectators without screens, all in one process: ``_crowd SECONDS SOCKET NUMBER STILL``.

A further ``LINK NUMBER STILL`` adds browsers' connections. ``STILL`` of each ``NUMBER`` do not
read. Prints as JSON how many bytes per second a reading one received, and percentiles of the time
from the first and the last sweep of a block to its arrival.
"""

import json
import selectors
import sys
import time
from pathlib import Path
from socket import create_connection, socket
from typing import Protocol
from urllib.parse import urlsplit

from ccplay.errors import WireError
from ccplay.model.events import Hello
from ccplay.model.samples import Sweeps
from ccplay.share import frames, sockets
from ccplay.share.backlog import Unpacker
from ccplay.stream import wire

_LOOKED_AT = 10
"""Number of spectators per one whose stream is decoded; this process has one core or less."""

_SETTLES_S = 8.0
"""Seconds for all to read the past before anything is counted."""


class Reader(Protocol):
    """Decodes the stream of one connection."""

    gaps: int

    def take(self, data: bytes) -> list[tuple[float, float]]:
        """Return the first and the last moment of each block that ``data`` completes."""


class Terminal:
    """Decodes the stream of a spectator on a terminal."""

    def __init__(self) -> None:
        self.gaps = 0
        self.began: float | None = None
        self._unpacker = Unpacker()

    def take(self, data: bytes) -> list[tuple[float, float]]:
        found = []
        for line in self._unpacker.lines(data):
            if line.startswith(frames.PREFIX):
                self.gaps += isinstance(frames.decode(line), frames.Gap)
                continue
            event = wire.decode_event(line)
            if isinstance(event, Hello):
                self.began = event.wall_time
            if isinstance(event, Sweeps):
                found.append((event.t, event.t + sum(event.after_us) / 1e6))
        return found


class Browser:
    """Decodes the stream of a page in a browser."""

    def __init__(self) -> None:
        self.gaps = 0
        self._rest = b""

    def take(self, data: bytes) -> list[tuple[float, float]]:
        *blocks, self._rest = (self._rest + data).split(b"\n\n")
        found = []
        for block in blocks:
            self.gaps += block.endswith(b"event: gap\ndata: {}")
            _, there, content = block.partition(b"event: frame\ndata: ")
            if there:
                step_ms, first, count, _ = json.loads(content.partition(b"\r\n")[0])
                found.append((first * step_ms / 1e3, (first + count - 1) * step_ms / 1e3))
        return found


class Crowd:
    """All connections that are read, and what they have measured."""

    def __init__(self) -> None:
        self.received = {"terminal": 0, "browser": 0}
        self.delays: dict[str, list[float]] = {"terminal": [], "browser": []}
        self.lost = 0
        self.readers: list[Reader] = []
        self._first = Terminal()
        self._selector = selectors.DefaultSelector()

    def seat(self, kind: str, connection: socket, place: int) -> None:
        """Add a connection of a kind; ``place`` counts those of its kind from 0."""
        connection.setblocking(False)
        reader: Reader | None = None
        if place % _LOOKED_AT == 0:
            reader = (Terminal() if place else self._first) if kind == "terminal" else Browser()
            self.readers.append(reader)
        self._selector.register(connection, selectors.EVENT_READ, (kind, reader))

    def read(self, *, counts: bool) -> None:
        """Read what has arrived; with ``counts``, count its bytes and delays."""
        for key, _ in self._selector.select(0.1):
            assert isinstance(key.fileobj, socket)
            kind, reader = key.data
            try:
                data = key.fileobj.recv(1 << 20)
                arrived = time.time()
                blocks = reader.take(data) if reader is not None else []
            except (OSError, WireError):
                data = b""
            if not data:
                self.lost += 1
                self._selector.unregister(key.fileobj)
            elif counts:
                self.received[kind] += len(data)
                began = self._first.began or arrived
                self.delays[kind] += [arrived - began - t for block in blocks for t in block]


def browse(link: str) -> socket:
    """Open the stream of a page, as a browser does."""
    place = urlsplit(link)
    connection = create_connection((place.hostname or "", place.port or 0))
    # In a chunked answer, the lengths of chunks on their own lines do not disturb messages.
    connection.sendall(f"GET {place.path}events HTTP/1.0\r\nHost: {place.netloc}\r\n\r\n".encode())
    return connection


def main(
    seconds: float, path: Path, terminals: tuple[int, int], pages: tuple[str, int, int]
) -> None:
    link, browsers, browsers_still = pages
    frozen = [sockets.join(path, frames.Wants.WHOLE)[0] for _ in range(terminals[1])]
    frozen += [browse(link) for _ in range(browsers_still)]
    reading = {"terminal": terminals[0] - terminals[1], "browser": browsers - browsers_still}
    crowd = Crowd()
    for place in range(reading["terminal"]):
        crowd.seat("terminal", sockets.join(path, frames.Wants.WHOLE)[0], place)
    for place in range(reading["browser"]):
        crowd.seat("browser", browse(link), place)
    since = time.monotonic() + _SETTLES_S
    while time.monotonic() < since:
        crowd.read(counts=False)
    print("ready", flush=True)
    while time.monotonic() < since + seconds:
        crowd.read(counts=True)
    gaps = sum(each.gaps for each in crowd.readers)
    found: dict[str, object] = {"gaps": gaps, "lost": crowd.lost}
    for kind, number in reading.items():
        times = sorted(crowd.delays[kind])
        found[kind] = {
            "bytes": crowd.received[kind] / seconds / max(number, 1),
            "p50": times[len(times) // 2] if times else 0,
            "p95": times[len(times) * 95 // 100] if times else 0,
        }
    print(json.dumps(found), flush=True)
    for each in frozen:
        each.close()


if __name__ == "__main__":
    _, length, where, many, stands, *web = sys.argv
    page = (web[0], int(web[1]), int(web[2])) if web else ("", 0, 0)
    main(float(length), Path(where), (int(many), int(stands)), page)

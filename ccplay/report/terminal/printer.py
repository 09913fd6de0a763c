"""Prints without waiting for the reader: a thread writes, and text is dropped if too much waits."""

from __future__ import annotations

import contextlib
import io
import os
import select
import threading
from typing import Self

_MOST = 1 << 18
"""Largest number of bytes that wait for the reader: a few thousand lines of a run's log."""

_DROPPED = "… some lines are missing here: they were not read in time\n"


class Printer(io.TextIOBase):
    """A text file over the descriptor of a terminal, pipe or file; used in a ``with`` statement.

    A paused terminal or a slow pipe delays nothing before the end of the block.
    """

    def __init__(self, fd: int, encoding: str, patience_s: float | None) -> None:
        """Open the file; ``patience_s`` limits the wait for the reader at the end; None doesn't."""
        self._fd = fd
        self._encoding = encoding
        self._patience_s = patience_s
        self._waiting: list[bytes] = []
        self._size = 0
        self._dropped = False
        self._ending = False
        self._broken = False
        self._changed = threading.Condition()
        # A daemon, because a blocked write can't be cancelled.
        threading.Thread(target=self._write_out, name="printer", daemon=True).start()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Encoding of the characters."""
        return self._encoding

    def isatty(self) -> bool:
        """Return whether the descriptor is a terminal."""
        return os.isatty(self._fd)

    def writable(self) -> bool:
        """Return True: the file can be written to."""
        return True

    def write(self, text: str, /) -> int:
        """Queue a piece of text, or drop it as a whole if too much waits already."""
        data = text.encode(self._encoding, "replace")
        with self._changed:
            if self._size + len(data) > _MOST:
                self._dropped = True
            elif not self._broken:
                self._put(data)
        return len(text)

    def drain(self, within_s: float | None) -> None:
        """Wait until everything is written, up to a timeout; None waits forever."""
        with self._changed:
            self._changed.wait_for(lambda: not self._size, within_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.drain(self._patience_s)
        with self._changed:
            self._ending = True
            self._changed.notify_all()

    def _put(self, data: bytes) -> None:
        self._waiting.append(data)
        self._size += len(data)
        self._changed.notify_all()

    def _write_out(self) -> None:
        """Write the queued text until the end, or until writing fails."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._ending)
                if not self._waiting:
                    return
                data = b"".join(self._waiting)
                self._waiting.clear()
            try:
                self._write_whole(data)
            except OSError:
                self._give_up()
                return
            with self._changed:
                self._size -= len(data)
                if self._dropped and not self._waiting:
                    self._dropped = False
                    self._put(_DROPPED.encode(self._encoding, "replace"))
                self._changed.notify_all()

    def _write_whole(self, data: bytes) -> None:
        """Write to the descriptor itself: a stream would hold its lock while the reader stalls."""
        rest = memoryview(data)
        while rest:
            with contextlib.suppress(BlockingIOError):
                rest = rest[os.write(self._fd, rest) :]
                continue
            select.select([], [self._fd], [])

    def _give_up(self) -> None:
        """Drop further output, because the terminal is gone or the disk full; the run continues."""
        with self._changed:
            self._broken = True
            self._waiting.clear()
            self._size = 0
            self._changed.notify_all()

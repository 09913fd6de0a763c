"""Writes to a terminal that may stall, without waiting for it, and records missed frames."""

from __future__ import annotations

import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable

_LAG_S = 1.0
"""Seconds that output may wait before frames are skipped; a frame takes 0.5 s on a slow line."""

_MOST = 1 << 20
"""Number of waiting bytes at which all further output is dropped, not only frames."""

_CHUNK = 1 << 12
"""Largest number of bytes in one write(2): those in a blocked call can't be discarded."""


class Writer:
    """Writes bytes to a terminal from its own thread, in order."""

    def __init__(
        self, terminal: int, *, caught_up: Callable[[], object], lost: Callable[[], object]
    ) -> None:
        """Start writing to the file descriptor ``terminal``.

        The thread calls ``caught_up`` once everything is written after skipped frames, and ``lost``
        once the terminal is gone.
        """
        self._terminal = terminal
        self._caught_up = caught_up
        self._lost = lost
        self._waiting: deque[tuple[float, bytes]] = deque()
        self._oldest = 0.0
        """Moment at which the oldest unwritten bytes were queued, in seconds."""
        self._unwritten = 0
        """Number of bytes that wait, including those the thread is writing."""
        self._missed = False
        """Whether a frame has been skipped since all output was last written."""
        self._gone = False
        self._discards = 0
        self._changed = threading.Condition()
        threading.Thread(target=self._run, name="terminal-writer", daemon=True).start()

    def put(self, data: bytes) -> None:
        """Queue ``data`` for writing; drop it if the terminal is gone or far behind."""
        with self._changed:
            if not self._gone and self._unwritten < _MOST:
                now = time.monotonic()
                self._oldest = self._oldest if self._unwritten else now
                self._waiting.append((now, data))
                self._unwritten += len(data)
                self._changed.notify_all()

    def takes_frame(self) -> bool:
        """Return whether a frame may be queued; if not, ``caught_up`` is called when it may."""
        with self._changed:
            late = self._unwritten > 0 and time.monotonic() - self._oldest > _LAG_S
            self._missed = self._missed or late
            return not self._missed

    def wait(self, limit_s: float) -> bool:
        """Wait until all output is written, within the limit; return whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._unwritten, limit_s)

    def discard(self) -> None:
        """Discard all waiting bytes except those in a system call."""
        with self._changed:
            self._discards += 1
            self._waiting.clear()
            self._unwritten = 0

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting:
                    if self._missed:
                        self._missed = False
                        self._caught_up()
                    self._changed.wait()
                self._oldest, data = self._waiting.popleft()
                discards = self._discards
            while data and discards == self._discards:
                written = self._write(data[:_CHUNK])
                with self._changed:
                    if written is None:
                        self._gone = True
                        self._waiting.clear()
                        self._unwritten = 0
                        self._lost()
                    elif discards == self._discards:
                        self._unwritten -= written
                    self._changed.notify_all()
                if written is None:
                    return
                data = data[written:]

    def _write(self, data: bytes) -> int | None:
        """Write some of ``data`` and return the number of bytes; None if the terminal is gone."""
        try:
            return os.write(self._terminal, data)
        except BlockingIOError:
            # Another program may have made the shared terminal non-blocking.
            select.select([], [self._terminal], [])
            return 0
        except OSError:
            return None

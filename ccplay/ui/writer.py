"""Write to a terminal that may not be read: never wait for it, and know when it missed a frame."""

from __future__ import annotations

import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable

_LAG_S = 1.0
"""How long something may wait before frames are left out; a slow line needs half of it for one."""

_MOST = 1 << 20
"""Bytes that may wait before even what is no frame is dropped."""

_CHUNK = 1 << 12
"""Bytes a system call writes: one that waits for the terminal can't be told to drop the rest."""


class Writer:
    """Writes bytes to a terminal from a thread of its own, in the order in which they were put."""

    def __init__(
        self, terminal: int, *, caught_up: Callable[[], object], lost: Callable[[], object]
    ) -> None:
        """Start writing to the file descriptor ``terminal``.

        The thread calls ``caught_up`` once all is written after frames were refused, and ``lost``
        when the terminal is gone.
        """
        self._terminal = terminal
        self._caught_up = caught_up
        self._lost = lost
        self._waiting: deque[tuple[float, bytes]] = deque()
        self._oldest = 0.0
        """When the first of what is unwritten was put."""
        self._unwritten = 0
        """Bytes that wait, with those in the hands of the thread."""
        self._missed = False
        """Whether a frame was refused since all was last written."""
        self._gone = False
        self._discards = 0
        self._changed = threading.Condition()
        threading.Thread(target=self._run, name="terminal-writer", daemon=True).start()

    def put(self, data: bytes) -> None:
        """Have ``data`` written, soon; drop it where the terminal is gone or far behind."""
        with self._changed:
            if not self._gone and self._unwritten < _MOST:
                now = time.monotonic()
                self._oldest = self._oldest if self._unwritten else now
                self._waiting.append((now, data))
                self._unwritten += len(data)
                self._changed.notify_all()

    def takes_frame(self) -> bool:
        """Whether a frame may be put now; after a no, ``caught_up`` asks for a whole one."""
        with self._changed:
            late = self._unwritten > 0 and time.monotonic() - self._oldest > _LAG_S
            self._missed = self._missed or late
            return not self._missed

    def wait(self, limit_s: float) -> bool:
        """Wait until all is written, or the limit is over; return whether all is written."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._unwritten, limit_s)

    def discard(self) -> None:
        """Drop all that waits, but for what a system call is just writing."""
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
        """Write some of ``data`` and return how much; None where the terminal is gone."""
        try:
            return os.write(self._terminal, data)
        except BlockingIOError:
            # Whoever shares the terminal may have made it non-blocking for all.
            select.select([], [self._terminal], [])
            return 0
        except OSError:
            return None

"""How long a program may take to end: a busy machine that lets it wait for a CPU is no fault."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from tests.lab.test_leaks import marked
from tests.soak.terminal import Terminal

_LOOK_S = 0.25

_AT_MOST = 12
"""How many times the limit is the end of all patience."""

_NS = 1e-9


class Patience:
    """Seconds that the processes of one program have queued for a CPU since this was made."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._first: dict[int, float] = {}
        self._last: dict[int, float] = {}
        self._look()

    @property
    def queued_s(self) -> float:
        """The sum over its Python processes: a screen waits for its lab to end, and each waits."""
        self._look()
        return sum(self._last[pid] - self._first[pid] for pid in self._last)

    def code(self, within_s: float) -> int | None:
        """Wait for the end, ``within_s`` without the time queued; return the exit code or None."""
        begun = time.monotonic()
        while (code := self._terminal.code(_LOOK_S)) is None:
            took = time.monotonic() - begun
            if took > _AT_MOST * within_s or took > within_s + self.queued_s:
                return None
        return code

    def _look(self) -> None:
        for process in marked(self._terminal.marker):
            with contextlib.suppress(OSError, ValueError, IndexError):
                folder = Path(f"/proc/{process.pid}")
                if b"ccplay" in (folder / "cmdline").read_bytes():
                    queued = float((folder / "schedstat").read_text().split()[1]) * _NS
                    self._first.setdefault(process.pid, queued)
                    self._last[process.pid] = queued

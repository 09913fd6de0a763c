"""Runs a program on its own pseudo-terminal, which is read, or not read for a while."""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

import psutil

from tests.lab.test_leaks import MARKER, marked

SHOWN = b"\x1b[?1049h"
"""Control sequence that a program writes when it takes the whole terminal."""

COMPLAINTS = (b"Traceback", b"Event loop is closed", b"never retrieved", b"Exception ignored")
"""Parts of messages that no user should ever see."""

ROOT = Path(__file__).resolve().parents[2]
"""Folder of the ccplay under test."""

_SHOWN = 20_000
"""Largest number of characters of output that a failure shows: the stacks of all processes."""

_KEPT = 1 << 16


class Terminal:
    """A program, its terminal, and a thread that reads and drops what it writes."""

    def __init__(self, words: Sequence[str], folder: Path, kind: str) -> None:
        """Start ``ccplay`` with ``words`` in ``folder``; ``kind`` is ``leader`` or ``shell``."""
        self.marker = f"ccplay-{uuid.uuid4()}"
        self.words = list(words)
        self.written = 0
        self.complaint: bytes | None = None
        self._tail = b""
        self._reading = threading.Event()
        self._reading.set()
        self._end, inside = pty.openpty()
        self.resize(120, 40, tell=False)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.soak.job", kind, sys.executable, "-m", "ccplay", *words],
            stdin=inside,
            stdout=inside,
            stderr=inside,
            cwd=folder,
            env={
                **os.environ,
                MARKER: self.marker,
                "TERM": "xterm-256color",
                "PYTHONPATH": str(ROOT),
                "PYTHONFAULTHANDLER": "1",
            },
            start_new_session=True,
        )
        os.close(inside)
        self.kind = kind
        self._open = True
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    # --- what a person does -----------------------------------------------------------------

    def press(self, keys: bytes) -> None:
        """Type keys; those that do not fit into the input queue are lost, as on a real terminal."""
        with contextlib.suppress(OSError):
            if self._open and select.select([], [self._end], [], 0)[1]:
                os.write(self._end, keys)

    def resize(self, columns: int, rows: int, *, tell: bool = True) -> None:
        """Resize the terminal; the kernel sends SIGWINCH to the foreground process group."""
        if tell and not self._open:
            return
        fcntl.ioctl(self._end, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def stall(self) -> None:
        """Stop reading the terminal."""
        self._reading.clear()

    def read_on(self) -> None:
        """Resume reading the terminal."""
        self._reading.set()

    def close(self) -> None:
        """Close the terminal, as closing its window does."""
        if self._open:
            self._open = False
            self._reading.set()
            self._reader.join()
            os.close(self._end)

    def suspend(self) -> None:
        """Press Ctrl-Z; keys typed before may keep the program busy for a while."""
        self.press(b"\x1a")

    @property
    def suspended(self) -> bool:
        """Whether the program is stopped, so that the shell has the terminal."""
        with contextlib.suppress(psutil.Error):
            if program := self.program():
                return program.status() == psutil.STATUS_STOPPED
        return False

    def resume(self) -> None:
        """Make the shell resume the program in the foreground."""
        self._process.send_signal(signal.SIGUSR1)

    @property
    def takes_keys(self) -> bool:
        """Whether the program reads Ctrl-C as a key; otherwise Ctrl-C is a signal."""
        return not termios.tcgetattr(self._end)[3] & termios.ISIG

    def abort(self) -> None:
        """Abort the program's Python processes, which then write their stacks."""
        for process in marked(self.marker):
            with contextlib.suppress(psutil.Error):
                if any(word.startswith("ccplay") for word in process.cmdline()):
                    process.send_signal(signal.SIGABRT)
        self.read_on()
        self.code(2.0)

    # --- what becomes of it -----------------------------------------------------------------

    def program(self) -> psutil.Process | None:
        """Return the front process of ``ccplay``; None once it has ended."""
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(self._process.pid)
            if self.kind == "leader":
                return process
            return next(iter(process.children()), None)
        return None

    def screen(self) -> psutil.Process | None:
        """Return the process behind the front, which draws and records; None if there is none."""
        with contextlib.suppress(psutil.Error):
            if program := self.program():
                return next(iter(program.children()), None)
        return None

    def code(self, within_s: float = 0.0) -> int | None:
        """Wait for the end; return the exit code (128 + n for signal n), None if still running."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self._process.wait(within_s)
            return code if code >= 0 else 128 - code
        return None

    def shown(self, within_s: float) -> bool:
        """Wait until the program has taken the whole terminal; return False if it does not."""
        deadline = time.monotonic() + within_s
        while SHOWN not in self._tail and self.written < _KEPT:
            if time.monotonic() > deadline or self.code() is not None:
                return False
            time.sleep(0.02)
        return True

    def text(self) -> str:
        """Return the end of the output, without control sequences."""
        plain = re.sub(rb"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|.)", b"", self._tail)
        return re.sub(r"[^\S\n]{2,}", "  ", plain.decode(errors="replace")).strip()[-_SHOWN:]

    def _read(self) -> None:
        while self._open:
            if not self._reading.wait(0.1):
                continue
            with contextlib.suppress(OSError):
                if select.select([self._end], [], [], 0.1)[0]:
                    self._take(os.read(self._end, 1 << 16))
                    continue
            if self._process.poll() is not None:
                return

    def _take(self, chunk: bytes) -> None:
        self.written += len(chunk)
        seen = self._tail[-64:] + chunk
        self.complaint = self.complaint or next((each for each in COMPLAINTS if each in seen), None)
        self._tail = (self._tail + chunk)[-_KEPT:]

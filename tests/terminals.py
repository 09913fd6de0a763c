"""Runs a program on its own terminal, which a test reads, stops reading, or closes."""

import asyncio
import contextlib
import os
import pty
import select
import subprocess
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyte

ENTERS, LEAVES = b"\x1b[?1049h", b"\x1b[?1049l"
"""Control sequences that enter and leave the alternate screen; see xterm's documentation."""

PATIENCE_S = 600.0 if "PYTEST_XDIST_WORKER" in os.environ else 60.0
"""Seconds after which a test that waits counts as hung. Beside labs, a process at idle priority may
get no CPU at all for a minute, and 4 % of one for as long as labs run."""

_LOOK_S, _SELDOM_S = 0.01, 0.25
"""Least and most seconds between two checks of a condition."""


class OnTerminal:
    """A program that leads a session, with its controlling terminal."""

    def __init__(
        self, process: subprocess.Popen[bytes], terminal: int, size: tuple[int, int]
    ) -> None:
        self.process = process
        self._terminal = terminal
        self._open = True
        self._screen = pyte.Screen(size[1], size[0])
        self._stream = pyte.ByteStream(self._screen)

    def read_until(self, *wanted: bytes) -> bytes:
        """Return the output up to when all of ``wanted`` is written. Fails if it never is."""
        seen, deadline = b"", time.monotonic() + PATIENCE_S
        while not all(each in seen for each in wanted):
            assert time.monotonic() < deadline, f"{wanted} did not come, but {seen[-500:]!r}"
            if select.select([self._terminal], [], [], 0.1)[0]:
                seen += self._read()
        return seen

    def read_until_shown(self, *wanted: str) -> None:
        """Read until all of ``wanted`` is on the screen. Fails if it never is."""
        deadline = time.monotonic() + PATIENCE_S
        while not all(any(each in line for line in self._screen.display) for each in wanted):
            shown = "\n".join(self._screen.display)
            assert time.monotonic() < deadline, f"{wanted} did not come, but\n{shown}"
            if select.select([self._terminal], [], [], 0.1)[0]:
                self._read()

    def type(self, text: bytes) -> None:
        os.write(self._terminal, text)

    def hang_up(self) -> None:
        """Close the terminal, as closing its window does."""
        if self._open:
            self._open = False
            os.close(self._terminal)

    def ended(self, within_s: float) -> tuple[int, bytes]:
        """Wait for the program's end; return its exit code and the rest of its output.

        That is not shown: a program that leaves a stalled terminal cuts sequences off, see CAN of
        ECMA-48, and they join to others that ``pyte`` refuses.
        """
        rest, deadline = b"", time.monotonic() + within_s
        while self.process.poll() is None:
            assert time.monotonic() < deadline, f"still there after {within_s} s: {rest[-500:]!r}"
            if self._open and select.select([self._terminal], [], [], 0.01)[0]:
                with contextlib.suppress(OSError):
                    rest += os.read(self._terminal, 1 << 16)
        while self._open and select.select([self._terminal], [], [], 0)[0]:
            try:
                rest += os.read(self._terminal, 1 << 16)
            except OSError:
                break
        return self.process.returncode, rest

    def _read(self) -> bytes:
        data = os.read(self._terminal, 1 << 16)
        self._stream.feed(data)
        return data


@contextmanager
def on_terminal(
    argv: Sequence[str],
    *,
    size: tuple[int, int] = (40, 120),
    stderr: int | None = None,
    environment: Mapping[str, str] | None = None,
    ignoring_hangup: bool = False,
) -> Iterator[OnTerminal]:
    """Start a program on a terminal of ``size`` rows and columns; kill it if a test fails."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, size)

    if ignoring_hangup:
        argv = ["sh", "-c", "trap '' HUP; exec \"$@\"", "sh", *argv]
    process = subprocess.Popen(
        ["setsid", "--ctty", *argv],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs if stderr is None else stderr,
        env={
            **os.environ,
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            **(environment or {}),
        },
    )
    os.close(theirs)
    shown = OnTerminal(process, ours, size)
    try:
        yield shown
    finally:
        shown.hang_up()
        if process.poll() is None:
            process.kill()
            process.wait()


def until(holds: Callable[[], object], within_s: float = PATIENCE_S) -> None:
    """Wait until a condition holds. Fails if it does not within ``within_s`` seconds."""
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, f"not within {within_s} s"
        time.sleep(0.01)


def unhindered() -> float:
    """Return a time in seconds that stands still while the main thread waits for a CPU."""
    return time.monotonic() - int(Path("/proc/self/schedstat").read_text().split()[1]) / 1e9


async def eventually(holds: Callable[[], object], within_s: float = PATIENCE_S) -> None:
    """Wait until a condition holds, while other tasks run. Fails after ``within_s`` seconds."""
    async with asyncio.timeout(within_s):
        while not holds():  # noqa: ASYNC110 - nothing announces it
            await asyncio.sleep(_LOOK_S)


def pausing(within_s: float) -> Iterator[float]:
    """Yield the seconds to wait before the next check of a condition, for ``within_s`` seconds.

    A check may read a recording or every process of the machine. Waiting a tenth of the time so
    far detects quick changes soon and slow ones at most a tenth later.
    """
    began = time.monotonic()
    while (waited := time.monotonic() - began) < within_s:
        yield min(max(_LOOK_S, waited / 10), _SELDOM_S)

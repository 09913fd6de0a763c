"""A program in a host's network namespace: its start, output and stop, and why it ended."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import errno
import os
import signal
import socket
from collections import deque
from collections.abc import AsyncIterator, Generator, Sequence
from pathlib import Path
from typing import Self

from ccplay.errors import CommandError, LabError, UnsupportedError
from ccplay.lab.network.netns import Namespace
from ccplay.lab.traffic.holding import Held

_GRACE_S = 1.0
"""Seconds that a program may take to end after SIGINT before it is killed."""

_START_S = 20.0
"""Seconds to wait for a program's first output; an emulated guest may need 10."""

_PIDFD_GETFD = 438
"""Number of pidfd_getfd(2), the same on every architecture; asm-generic/unistd.h."""

_libc = ctypes.CDLL(None, use_errno=True)


class Program:
    """A running program; make one with ``start``."""

    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        self.name = name
        self._process = process
        self._printed: deque[str] = deque(maxlen=8)
        self._silent = False
        self._listening = asyncio.create_task(self._listen())
        self._draining: asyncio.Task[None] | None = None

    @classmethod
    async def start(
        cls,
        namespace: Namespace,
        argv: Sequence[str],
        name: str = "",
        *,
        held: Held | None = None,
    ) -> Self:
        """Start ``argv`` in the namespace. Raises ``LabError`` if nsenter(1) is not installed.

        ``name`` is the program's name if ``argv`` begins with another program. The program gets its
        own session, so that a Ctrl-C in the terminal does not reach it. ``held`` is where it waits.
        """
        try:
            process = await asyncio.create_subprocess_exec(
                "nsenter",
                f"--net={namespace.path}",
                "--",
                *argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env={**os.environ, "LC_ALL": "C"},
                start_new_session=True,
                preexec_fn=None if held is None else held.install,
            )
        except FileNotFoundError as error:
            raise LabError("nsenter is not installed (apt install util-linux)") from error
        return cls(name or argv[0].rpartition("/")[2], process)

    @property
    def pid(self) -> int:
        """PID of the program: nsenter(1) becomes the program itself."""
        return self._process.pid

    async def lines(self) -> AsyncIterator[str]:
        """Yield the lines that the program writes to stdout until it closes it."""
        assert self._process.stdout is not None  # noqa: S101 - ``start`` made it a pipe
        async for line in self._process.stdout:
            yield line.decode(errors="replace").rstrip("\n")

    async def prints(self, text: str) -> bool:
        """Read stdout until a line contains ``text``; return False at its end, or after 20 s."""
        try:
            async with asyncio.timeout(_START_S):
                async for line in self.lines():
                    if text in line:
                        return True
        except TimeoutError:
            self._silent = True
        return False

    def ignore_output(self) -> None:
        """Read and discard stdout from here on, so that a full pipe never stops the program."""
        self._draining = asyncio.create_task(self._drain())

    async def wait(self) -> int:
        """Wait until the program has ended and its messages are read; return its exit status."""
        status = await self._process.wait()
        # A child that it left behind may hold stderr open; its own messages have been read.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._listening), 0.2)
        return status

    async def stop(self, grace_s: float = _GRACE_S) -> int:
        """End the program with SIGINT, or SIGKILL if needed; return its exit status."""
        self._signal(signal.SIGINT)
        try:
            return await asyncio.wait_for(asyncio.shield(self.wait()), grace_s)
        except TimeoutError:
            self.kill()
            return await self.wait()

    def kill(self) -> None:
        """Kill the program."""
        self._signal(signal.SIGKILL)

    def last_words(self) -> str:
        """Return why the program ended: its last message on stderr, its signal or exit status."""
        if self._silent:
            return f"{self.name} did not start within {_START_S:.0f} s"
        status = self._process.returncode
        if status is not None and status < 0:
            return f"{self.name} was killed by {signal.Signals(-status).name}"
        # iperf3's last line, which follows its reason.
        if printed := [each for each in self._printed if each != f"{self.name}: exiting"]:
            return printed[-1].removeprefix(f"{self.name}: ").removeprefix("error - ")
        return f"{self.name} ended with exit status {status}"

    @property
    def ended(self) -> bool:
        """Whether the program has ended."""
        return self._process.returncode is not None

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    async def _listen(self) -> None:
        assert self._process.stderr is not None  # noqa: S101 - ``start`` made it a pipe
        async for line in self._process.stderr:
            if text := line.decode(errors="replace").strip():
                self._printed.append(text)

    async def _drain(self) -> None:
        async for _ in self.lines():
            pass


def sockets_of(pid: int) -> Generator[socket.socket]:
    """Yield a duplicate of every socket of a process, closed afterwards; pidfd_getfd(2).

    Raises ``CommandError`` if the process is gone, ``UnsupportedError`` if the kernel forbids it.
    """
    try:
        pidfd = os.pidfd_open(pid)
        numbers = [int(each.name) for each in os.scandir(f"/proc/{pid}/fd") if _is_socket(each)]
    except OSError as error:
        raise CommandError(f"process {pid} is gone: {error.strerror}") from error
    try:
        for number in numbers:
            copy = _libc.syscall(_PIDFD_GETFD, pidfd, number, 0)
            if copy >= 0:
                with socket.socket(fileno=copy) as connection:
                    yield connection
            elif ctypes.get_errno() == errno.EPERM:
                raise UnsupportedError(
                    f"the kernel does not let the lab access the sockets of process {pid} "
                    "(pidfd_getfd); sysctl kernel.yama.ptrace_scope=1 or start the lab as root"
                )
    finally:
        os.close(pidfd)


def ports_of(connection: socket.socket) -> tuple[int, int] | None:
    """Return local and remote port of a TCP connection over IP; None for other sockets."""
    if connection.family not in (socket.AF_INET, socket.AF_INET6):
        return None
    try:
        return connection.getsockname()[1], connection.getpeername()[1]
    except OSError:
        return None


def _is_socket(entry: os.DirEntry[str]) -> bool:
    with contextlib.suppress(OSError):
        return Path(entry).readlink().name.startswith("socket:")
    return False

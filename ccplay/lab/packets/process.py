"""A packet-holding process and the two pipes to it: forked from the lab, or a new interpreter.

A process that the lab forks first of all need not import again. Later the lab has threads and
sockets that a fork would share, so a process that died is replaced by a new interpreter.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import traceback
from collections.abc import AsyncIterator, Callable


class PacketProcess:
    """A running process. Call ``connect`` first, then ``send`` and ``news``."""

    def __init__(self, pid: int, orders: int, news: int) -> None:
        """``orders`` and ``news`` are the lab's ends of the process's stdin and stdout."""
        self.pid = pid
        self._orders, self._news = orders, news
        self._transports: list[asyncio.BaseTransport] = []

    async def connect(self) -> None:
        """Connect both pipes to the running event loop."""
        loop = asyncio.get_running_loop()
        self._reader = asyncio.StreamReader()
        taken, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(self._reader), os.fdopen(self._news, "rb", 0)
        )
        self._writer, _ = await loop.connect_write_pipe(
            asyncio.BaseProtocol, os.fdopen(self._orders, "wb", 0)
        )
        self._transports = [taken, self._writer]

    def send(self, order: bytes) -> None:
        """Write a line to the process; it is lost if the process has died."""
        self._writer.write(order + b"\n")

    async def news(self) -> AsyncIterator[bytes]:
        """Yield the lines that the process writes, until it ends."""
        async for each in self._reader:
            yield each

    def kill(self) -> None:
        """Kill the process. Packets that it holds are lost."""
        os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Wait for the process to end, after ``news`` has, and return its exit code.

        The code of a process that a signal ended is minus the signal's number.
        """
        for each in self._transports:
            each.close()
        _, status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(status)

    def dismiss(self) -> None:
        """End a process that was never connected."""
        os.close(self._orders)
        os.close(self._news)
        self.kill()
        self.wait()


def fork(main: Callable[[], None], shared: int | None = None) -> PacketProcess:
    """Fork a process that runs ``main``; the caller must have no threads and no event loop yet.

    The descriptor ``shared``, if any, is descriptor 3 in that process, and all others are closed.
    """
    (orders, ours), (theirs, news) = os.pipe(), os.pipe()
    if pid := os.fork():
        os.close(orders)
        os.close(news)
        return PacketProcess(pid, ours, theirs)
    code = 1
    try:
        os.dup2(orders, 0)
        os.dup2(news, 1)
        if shared is not None:
            os.dup2(shared, 3)
        os.closerange(3 if shared is None else 4, max(orders, ours, theirs, news) + 1)
        main()
        code = 0
    except BaseException:  # noqa: BLE001 - no code of the lab may run on in the child
        traceback.print_exc()
    finally:
        os._exit(code)


def start(module: str, shared: int | None = None) -> PacketProcess:
    """Start a new Python interpreter that runs ``module``.

    The descriptor ``shared``, if any, is descriptor 3 in that process.
    """
    shares = [] if shared is None else [(os.POSIX_SPAWN_DUP2, shared, 3)]
    (orders, ours), (theirs, news) = os.pipe(), os.pipe()
    try:
        pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-P", "-m", module],
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, orders, 0),
                (os.POSIX_SPAWN_DUP2, news, 1),
                *shares,
            ],
        )
    finally:
        os.close(orders)
        os.close(news)
    return PacketProcess(pid, ours, theirs)

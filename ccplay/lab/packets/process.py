"""A process that holds packets, and the two pipes to it: forked from the lab, or started anew.

What a lab forks before it does anything else has no imports left to wait for. Later on it has
threads and sockets that a fork would share, so one that died is replaced by a new interpreter.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import traceback
from collections.abc import AsyncIterator, Callable


class PacketProcess:
    """A running process. ``connect`` first, then ``send`` and ``news``."""

    def __init__(self, pid: int, orders: int, news: int) -> None:
        """``orders`` and ``news`` are our ends of its stdin and stdout."""
        self.pid = pid
        self._orders, self._news = orders, news
        self._transports: list[asyncio.BaseTransport] = []

    async def connect(self) -> None:
        """Let the running event loop serve both pipes."""
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
        """Write one line to it; lost where it has died."""
        self._writer.write(order + b"\n")

    async def news(self) -> AsyncIterator[bytes]:
        """Yield the lines that it writes until it ends."""
        async for each in self._reader:
            yield each

    def kill(self) -> None:
        """End it at once. What it holds is lost."""
        os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Return its exit code once it has closed its stdout, or minus the signal that ended it."""
        for each in self._transports:
            each.close()
        _, status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(status)

    def dismiss(self) -> None:
        """End one that was never connected."""
        os.close(self._orders)
        os.close(self._news)
        self.kill()
        self.wait()


def fork(main: Callable[[], None]) -> PacketProcess:
    """Fork a process that runs ``main`` from one that has neither threads nor an event loop yet."""
    (orders, ours), (theirs, news) = os.pipe(), os.pipe()
    if pid := os.fork():
        os.close(orders)
        os.close(news)
        return PacketProcess(pid, ours, theirs)
    code = 1
    try:
        os.dup2(orders, 0)
        os.dup2(news, 1)
        os.closerange(3, max(orders, ours, theirs, news) + 1)
        main()
        code = 0
    except BaseException:  # noqa: BLE001 - nothing of the lab's may run on in here
        traceback.print_exc()
    finally:
        os._exit(code)


def start(module: str, shared: int | None = None) -> PacketProcess:
    """Start a process of its own interpreter that runs ``module``.

    A descriptor ``shared`` is 3 there.
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

"""Programs behind three pipes, spawned from an argv; or started in another way, see ``Starter``."""

from __future__ import annotations

import asyncio
import contextlib
from asyncio.subprocess import Process, SubprocessStreamProtocol
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeAlias, cast

from ccplay.stream import pipe


class Program(Protocol):
    """A running program and our ends of its pipes."""

    stdin: asyncio.WriteTransport
    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader
    output: asyncio.ReadTransport
    """What feeds ``stdout``, and may be paused."""

    @property
    def pid(self) -> int:
        """The process that ends, by SIGKILL, with all that it has started."""

    async def wait(self) -> int:
        """Wait until it has ended; return its exit code, or minus the signal that ended it."""

    def kill(self) -> None:
        """Send SIGKILL, unless it has ended."""

    def close(self) -> None:
        """Close the pipes: what it has left behind may hold the other ends open."""


Starter: TypeAlias = Callable[[Sequence[str]], Awaitable[Program]]
"""Starts the program of an argv. Raises ``OSError``."""


class _Spawned:
    """A process of its own, as ``create_subprocess_exec`` makes them."""

    def __init__(self, process: Process, transport: asyncio.SubprocessTransport) -> None:
        self._process, self._transport = process, transport
        self.stdin = cast("asyncio.WriteTransport", transport.get_pipe_transport(0))
        self.output = cast("asyncio.ReadTransport", transport.get_pipe_transport(1))
        self.stdout = cast("asyncio.StreamReader", process.stdout)
        self.stderr = cast("asyncio.StreamReader", process.stderr)
        self.wait = process.wait
        self.close = transport.close

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()


async def spawn(argv: Sequence[str]) -> Program:
    """Start a program that Ctrl-C at the terminal does not reach: that is for us.

    Raises ``OSError``.
    """
    loop = asyncio.get_running_loop()
    # As ``create_subprocess_exec`` does it, which keeps what closes the pipes to itself.
    transport, protocol = await loop.subprocess_exec(
        lambda: SubprocessStreamProtocol(limit=pipe.CHUNK, loop=loop),
        *argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        process_group=0,
    )
    return _Spawned(Process(transport, protocol, loop), transport)

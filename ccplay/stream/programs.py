"""Starts programs behind three pipes from an argv; ``Starter`` allows other ways to start them."""

from __future__ import annotations

import asyncio
import contextlib
from asyncio.subprocess import Process, SubprocessStreamProtocol
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeAlias, cast

from ccplay.stream import pipe


class Program(Protocol):
    """A running program, with ccplay's ends of its pipes."""

    stdin: asyncio.WriteTransport
    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader
    output: asyncio.ReadTransport
    """Transport that feeds ``stdout``; it can be paused."""

    @property
    def pid(self) -> int:
        """ID of the process; SIGKILL ends it and everything that it has started."""

    async def wait(self) -> int:
        """Wait for its end; return its exit code, or minus the signal that ended it."""

    def kill(self) -> None:
        """Send SIGKILL, unless the program has ended."""

    def close(self) -> None:
        """Close the pipes; processes that the program left behind may hold the other ends open."""


Starter: TypeAlias = Callable[[Sequence[str]], Awaitable[Program]]
"""Function that starts the program of an argv; raises ``OSError``."""


class _Spawned:
    """A program started as a child process, like those of ``create_subprocess_exec``."""

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
    """Start a program in its own process group, so that Ctrl-C at the terminal reaches only ccplay.

    Raises ``OSError``.
    """
    loop = asyncio.get_running_loop()
    # Like ``create_subprocess_exec``, which does not return the transport that closes the pipes.
    transport, protocol = await loop.subprocess_exec(
        lambda: SubprocessStreamProtocol(limit=pipe.CHUNK, loop=loop),
        *argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        process_group=0,
    )
    return _Spawned(Process(transport, protocol, loop), transport)

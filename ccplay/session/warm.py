"""Forks labs from one warm process, because Python and imports take most of a lab's start."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import json
import os
import select
import signal
import socket
from collections.abc import Sequence
from io import FileIO

from ccplay.session import launch
from ccplay.stream import pipe
from ccplay.stream.programs import Program, spawn

_DOOR = 3
"""File descriptor of the request socket in the warm process."""

_LAST_S = 1.0
"""Most seconds that ccplay waits at its end for the warm process, which ends after its last lab."""


class WarmLabs:
    """Starts labs: the first as its own program, all others as forks of one warm process."""

    def __init__(self, argv: Sequence[str] = (*launch.PYTHON, "ccplay.lab.warm")) -> None:
        """Hold ``argv``, which starts the warm process when it is needed."""
        self._argv = argv
        self._labs = 0
        self._door: socket.socket | None = None
        self._process = 0

    @property
    def process(self) -> int:
        """Process ID of the warm process; 0 before its first fork."""
        return self._process

    async def start(self, argv: Sequence[str]) -> Program:
        """Start ``argv``, from the second on as a fork if it is a lab on this machine.

        Raises ``OSError``.
        """
        self._labs += 1
        if self._labs > 1 and (lab := launch.words_of(argv)) is not None:
            # Forking fails if the environment is too long for a message or the process has died.
            with contextlib.suppress(OSError):
                return await self.fork(*lab)
        return await spawn(argv)

    def close(self) -> None:
        """End the warm process as soon as its labs have ended; wait for that up to a second."""
        if self._door is None:
            return
        atexit.unregister(self.close)
        self._door.close()
        self._door = None
        ended = os.pidfd_open(self._process)
        with contextlib.closing(select.epoll()) as waiting:
            waiting.register(ended, select.EPOLLIN)
            if waiting.poll(_LAST_S):
                os.waitpid(self._process, 0)
        os.close(ended)

    async def fork(self, user: bool, words: Sequence[str]) -> Program:
        """Fork a lab whose server has the arguments ``words``, with ``user`` in a user namespace.

        Raises ``OSError``, also if the lab can't make its namespaces.
        """
        request = {"user": user, "arguments": list(words), "environment": dict(os.environ)}
        orders, output, errors, news = (_pipe() for _ in range(4))
        theirs = [orders[0], output[1], errors[1], news[1]]
        ours = [orders[1], output[0], errors[0], news[0]]
        here = os.open(".", os.O_PATH | os.O_DIRECTORY)
        try:
            *standard, reports = (each.fileno() for each in theirs)
            socket.send_fds(
                self._warm(), [json.dumps(request).encode()], [*standard, here, reports]
            )
        except OSError:
            for each in ours:
                each.close()
            raise
        finally:
            os.close(here)
            for each in theirs:
                each.close()
        return await _forked(*ours)

    def _warm(self) -> socket.socket:
        """Return the socket to the warm process; start the process if there is none."""
        if self._door is None:
            self._door, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                self._process = os.posix_spawn(
                    self._argv[0],
                    list(self._argv),
                    os.environ,
                    file_actions=[
                        (os.POSIX_SPAWN_DUP2, theirs.fileno(), _DOOR),
                        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0),
                        (os.POSIX_SPAWN_DUP2, 0, 1),
                        # A lab that can't be forked is spawned instead, and reports the reason.
                        (os.POSIX_SPAWN_DUP2, 0, 2),
                    ],
                    setpgroup=0,
                )
            atexit.register(self.close)
        return self._door


def _pipe() -> tuple[FileIO, FileIO]:
    reader, writer = os.pipe()
    return FileIO(reader), FileIO(writer, "w")


class _News(asyncio.Protocol):
    """Receives a fork's reports on a pipe: its process ID, then the exit code of the lab."""

    def __init__(self) -> None:
        self._received = b""
        self.started = asyncio.get_running_loop().create_future()
        self.ended = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        """Store what the fork writes; its first line is the process ID."""
        self._received += data
        if b"\n" in self._received and not self.started.done():
            self.started.set_result(int(self._received.split()[0]))

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - its name, too
        """Report the lab's exit code; if there is none, fork and lab were killed."""
        if not self.started.done():
            self.started.set_exception(ChildProcessError("no lab was forked"))
        _, *codes = self._received.split() or [b""]
        self.ended.set_result(int(codes[0]) if codes else -signal.SIGKILL)


class _Forked:
    """A lab that the warm process has forked, as a ``Program``."""

    def __init__(
        self,
        stdin: asyncio.WriteTransport,
        stdout: tuple[asyncio.ReadTransport, asyncio.StreamReader],
        stderr: tuple[asyncio.ReadTransport, asyncio.StreamReader],
        news: _News,
        pid: int,
    ) -> None:
        self.stdin = stdin
        self.output, self.stdout = stdout
        self._errors, self.stderr = stderr
        self._news = news
        self.pid = pid

    async def wait(self) -> int:
        """Wait for the lab's end; return its exit code, or minus the signal that ended it."""
        return await asyncio.shield(self._news.ended)

    def kill(self) -> None:
        """Send SIGKILL, unless the lab has ended."""
        if not self._news.ended.done():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Close the pipes."""
        for each in (self.stdin, self.output, self._errors):
            each.close()


async def _forked(stdin: FileIO, stdout: FileIO, stderr: FileIO, news: FileIO) -> _Forked:
    """Wait until a lab runs behind these pipes. Raises ``OSError`` if none starts."""
    loop = asyncio.get_running_loop()
    orders, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, stdin)
    output, errors = await _reader(stdout), await _reader(stderr)
    _, reports = await loop.connect_read_pipe(_News, news)
    try:
        return _Forked(orders, output, errors, reports, await reports.started)
    except BaseException:
        # Closing its stdin ends a lab, also one that is still starting.
        for each in (orders, output[0], errors[0]):
            each.close()
        raise


async def _reader(file: FileIO) -> tuple[asyncio.ReadTransport, asyncio.StreamReader]:
    reader = asyncio.StreamReader(limit=pipe.CHUNK)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), file
    )
    return transport, reader

"""A child process of the lab: requests go in by a pipe, replies come out, one JSON object a line.

``fork`` makes one before the lab has threads and sockets that it would share, so that it need not
import again; ``start`` makes one later, in a new interpreter. A ``Supervisor`` sends the requests,
awaits the replies and replaces a child that dies: a request that it did not answer reaches its
successor, but one that has certainly ended it does not. A child that dies twice in a row within a
second is not replaced. Each kind of child declares its own ``Request`` and ``Reply``.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Generic, TypeAlias, TypeVar

import msgspec

from ccplay.errors import LabError


class Request(msgspec.Struct, frozen=True, omit_defaults=True):
    """A request about one queue. The reply that reports its end repeats ``queue`` and ``do``."""

    queue: int
    """Number of the netfilter queue, from 1."""
    do: str = "open"
    """Action; each process has its own."""
    pid: int = 0
    """Process ID of a process in the queue's network namespace."""
    seed: int = 0
    """Seed of everything random in the queue."""


class Reply(msgspec.Struct, frozen=True, omit_defaults=True):
    """A report of a request's end, or, each second, of the packets' lateness."""

    queue: int = 0
    do: str = ""
    """Action of the request that was carried out or failed."""
    failed: str = ""
    """Reason why the request failed; empty if it did not."""
    late_p50_us: float | None = None
    """Median time in us from a packet's due moment to its release; None without packets."""
    late_p99_us: float | None = None


class Child:
    """A running child. Call ``connect`` first, then ``send`` and ``replies``; or ``read_all``."""

    def __init__(self, pid: int, requests: int, replies: int) -> None:
        """Take the lab's ends of its stdin, ``requests``, and of its stdout, ``replies``."""
        self.pid = pid
        self._requests, self._replies = requests, replies
        self._transports: list[asyncio.BaseTransport] = []

    async def connect(self) -> None:
        """Connect both pipes to the running event loop."""
        loop = asyncio.get_running_loop()
        self._reader = asyncio.StreamReader()
        taken, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(self._reader), os.fdopen(self._replies, "rb", 0)
        )
        self._writer, _ = await loop.connect_write_pipe(
            asyncio.BaseProtocol, os.fdopen(self._requests, "wb", 0)
        )
        self._transports = [taken, self._writer]

    def send(self, request: bytes) -> None:
        """Write a line to the process; it is lost if the process has died."""
        self._writer.write(request + b"\n")

    async def replies(self) -> AsyncIterator[bytes]:
        """Yield the lines that the process writes, until it ends."""
        async for each in self._reader:
            yield each

    def read_all(self, deadline: float) -> bytes | None:
        """Return what a process that was never connected writes until it ends.

        None if it has not ended at ``deadline``, a moment of ``time.monotonic``.
        """
        found, end = b"", os.pidfd_open(self.pid)
        try:
            poll = select.poll()
            poll.register(self._replies, select.POLLIN)
            poll.register(end, select.POLLIN)
            while (left := deadline - time.monotonic()) > 0:
                for descriptor, _ in poll.poll(left * 1e3):
                    if descriptor == end:
                        os.set_blocking(self._replies, False)
                        with contextlib.suppress(BlockingIOError):
                            while data := os.read(self._replies, 1 << 16):
                                found += data
                        return found
                    if data := os.read(self._replies, 1 << 16):
                        found += data
                    else:
                        poll.unregister(self._replies)
        finally:
            os.close(end)
        return None

    def kill(self) -> None:
        """Kill the process. Packets that it holds are lost."""
        os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Wait for the process to end, after ``replies`` has, and return its exit code.

        The code of a process that a signal ended is minus the signal's number.
        """
        for each in self._transports:
            each.close()
        _, status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(status)

    def dismiss(self) -> int:
        """End a process that was never connected, and return its exit code, as ``wait`` does."""
        os.close(self._requests)
        os.close(self._replies)
        self.kill()
        return self.wait()


def introduce(name: bytes) -> None:
    """Let this process die with its parent, and be called ``name`` in ps(1), comm in proc(5)."""
    set_parent_death_signal, set_name = 1, 15
    libc = ctypes.CDLL(None)
    libc.prctl(set_parent_death_signal, signal.SIGKILL, 0, 0, 0)
    libc.prctl(set_name, name, 0, 0, 0)


def fork(main: Callable[[], None], shared: int | None = None) -> Child:
    """Fork a process that runs ``main``; the caller must have no threads and no event loop yet.

    The descriptor ``shared``, if any, is descriptor 3 in that process, and all others are closed.
    """
    (requests, ours), (theirs, replies) = os.pipe(), os.pipe()
    if pid := os.fork():
        os.close(requests)
        os.close(replies)
        return Child(pid, ours, theirs)
    code = 1
    try:
        os.dup2(requests, 0)
        os.dup2(replies, 1)
        if shared is not None:
            os.dup2(shared, 3)
        os.closerange(3 if shared is None else 4, max(requests, ours, theirs, replies) + 1)
        main()
        code = 0
    except BaseException:  # noqa: BLE001 - no code of the lab may run on in the child
        traceback.print_exc()
    finally:
        os._exit(code)


def start(main: Callable[[], None], shared: int | None = None) -> Child:
    """Start a new Python interpreter that runs ``main``, a function of a module.

    The descriptor ``shared``, if any, is descriptor 3 in that process.
    """
    run = main.__name__
    shares = [] if shared is None else [(os.POSIX_SPAWN_DUP2, shared, 3)]
    (requests, ours), (theirs, replies) = os.pipe(), os.pipe()
    try:
        pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-P", "-c", f"from {main.__module__} import {run} as run; run()"],
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, requests, 0),
                (os.POSIX_SPAWN_DUP2, replies, 1),
                *shares,
            ],
        )
    finally:
        os.close(requests)
        os.close(replies)
    return Child(pid, ours, theirs)


_ANSWER_S = 20.0
"""Seconds that a request may take. Most take milliseconds, but a new process first has to import,
which takes seconds when many labs start at once."""

_SHORT_LIFE_S = 1.0
"""Shortest life in seconds; a process that dies sooner twice in a row is not restarted."""

R = TypeVar("R", bound=Reply)

Logger: TypeAlias = Callable[..., None]
"""Function that receives a message for the event log: a level and a text as in ``Log``, and by
keyword whether it ``spoils`` measurements."""


class _DiedError(LabError):
    """The process died before it answered a request."""


class Supervisor(Generic[R]):
    """Sends requests to a child, awaits its replies, and replaces it if it dies."""

    def __init__(
        self,
        name: str,
        reply: type[R],
        log: Logger,
        *,
        launch: Callable[[], Child],
        loss: str,
        restore: Callable[[], None] = lambda: None,
        on_reply: Callable[[R], None] = lambda _: None,
        forked: Child | None = None,
        blame: Callable[[int], str] = lambda _: "",
    ) -> None:
        """``name`` names the process in messages about its end and its faults; ``log`` logs them.

        ``launch`` starts a new process; ``loss`` describes what no longer works if it keeps dying.
        ``restore`` sends a new process the requests of all its queues, and ``on_reply`` receives
        replies that answer no request. ``forked`` is the first process, if it runs already.
        ``blame`` receives the exit code of one that died; if it returns the cause, it has logged
        and removed it.
        """
        self._name, self._loss = name, loss
        self._launch, self._restore, self._on_reply, self._log = launch, restore, on_reply, log
        self._blame = blame
        self._decoder = msgspec.json.Decoder(reply)
        self._forked = forked
        self._process: Child | None = None
        self._reading: asyncio.Task[None] | None = None
        self._answers: dict[tuple[int, str], asyncio.Future[R]] = {}
        self._closing = False
        self._short_lives = 0
        self._given_up = ""
        self._starting = asyncio.Lock()
        self.lateness: tuple[float, float] | None = None
        """Median and 99th percentile of the last second's lateness, in us; None without packets."""

    @property
    def pids(self) -> Iterable[int]:
        """Process ID of the running process; empty if none runs."""
        return () if self._process is None else (self._process.pid,)

    async def start(self) -> None:
        """Start the process unless it runs. Raises ``LabError`` if it keeps dying."""
        async with self._starting:
            if self._given_up:
                raise LabError(self._given_up)
            if self._process is None:
                started, self._forked = self._forked or self._launch(), None
                await started.connect()
                self._process = started
                self._reading = asyncio.create_task(self._listen(started))
                self._restore()

    async def ask(self, request: Request, longer_s: float = 0.0) -> R:
        """Send a request, and return the reply that reports its end or failure.

        If the process dies meanwhile, its successor receives it once more. The request may
        take ``longer_s`` seconds more than others. Raises ``LabError`` if the process keeps dying
        or does not answer.
        """
        try:
            return await self._ask(request, longer_s)
        except _DiedError:
            if self._closing:
                raise
            return await self._ask(request, longer_s)

    async def _ask(self, request: Request, longer_s: float) -> R:
        # A request to a process that has died is lost.
        await self.start()
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._answers[request.queue, request.do] = future
        self.send(request)
        try:
            return await asyncio.wait_for(future, _ANSWER_S + longer_s)
        except TimeoutError:
            text = f"{self._name} doesn't answer (queue {request.queue}, {request.do})"
            raise LabError(text) from None
        finally:
            self._answers.pop((request.queue, request.do), None)

    def send(self, request: Request) -> None:
        """Send a request without waiting; it is lost if no process runs."""
        if self._process is not None:
            self._process.send(msgspec.json.encode(request))

    async def close(self) -> None:
        """End the process."""
        self._closing = True
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
        elif self._forked is not None:
            self._forked.dismiss()
        if self._reading is not None:
            await self._reading

    async def _listen(self, running: Child) -> None:
        """Process replies until the process ends."""
        born = time.monotonic()
        async for line in running.replies():
            self._receive(self._decoder.decode(line))
        code = running.wait()
        self._process, self.lateness = None, None
        cause = "" if self._closing else self._blame(code)
        how = cause or (f"signal {-code}" if code < 0 else f"exit code {code}")
        for future in self._answers.values():
            if not future.done():
                why = f"{self._name} died ({how}) before it answered: try again"
                # What has ended it once is not asked again.
                future.set_exception(LabError(why) if cause else _DiedError(why))
        if cause:
            await self.start()
        elif not self._closing:
            await self._revive(how, time.monotonic() - born)

    def _receive(self, reply: R) -> None:
        if not reply.queue:
            late = reply.late_p50_us, reply.late_p99_us
            self.lateness = None if None in late else late  # type: ignore[assignment]
            return
        future = self._answers.get((reply.queue, reply.do))
        if future is None or future.done():
            if reply.failed:
                self._log(
                    "error", f"{self._name}, queue {reply.queue}: {reply.failed}", spoils=True
                )
            self._on_reply(reply)
        else:
            future.set_result(reply)

    async def _revive(self, how: str, life_s: float) -> None:
        self._short_lives = self._short_lives + 1 if life_s < _SHORT_LIFE_S else 0
        if self._short_lives > 1:
            self._given_up = f"{self._name} keeps dying ({how}): {self._loss}"
            self._log("error", self._given_up, spoils=True)
            return
        text = f"{self._name} died ({how}) and was started again: packets it held were lost"
        self._log("warning", text, spoils=True)
        await self.start()

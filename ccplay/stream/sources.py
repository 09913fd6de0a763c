"""Sources of events: a local lab, a remote lab, or a recording, within limits of memory."""

from __future__ import annotations

import asyncio
import contextlib
import time
from asyncio.subprocess import Process, SubprocessStreamProtocol
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from pathlib import Path
from typing import BinaryIO, Protocol, TypeAlias, cast

from ccplay.errors import ROOT_REMEDY, LabError, RecordingError, WireError
from ccplay.files.reading import open_regular
from ccplay.model.base import Command, Event, TrafficStarted
from ccplay.model.commands import Build
from ccplay.model.events import Building, Ended
from ccplay.model.samples import CaStateChanged, Sweep, Sweeps, TraceSamples
from ccplay.stream import wire
from ccplay.stream.wire import UnknownEvent
from ccplay.trace import delivery
from ccplay.traffic.flow import FlowStarted

# --- limits the memory that reading a recording may take ------------------------------------------

MOST_TRANSFERS = 10_000
"""Greatest number of names of traffic in a recording; each stream of a flow counts as one."""

MOST_QUEUES = 1000
"""Greatest number of queues in a recording, of links and of their classes."""

MOST_BYTES = 1 << 30
"""Greatest number of bytes of samples in memory. An hour of 8 flows at 200 Hz takes a quarter, or
0.6 with 16 variables of every flow's algorithm; a minute of 1,000 flows at 200 Hz takes half."""

KEPT = 1 << 20
"""Greatest number of sweeps kept for one flow or queue; see ``series.Timeline``."""

OF_FLOW, OF_QUEUE, OF_SEGMENT, _OF_VARIABLE = 40, 24, 24, 4
"""Bytes that ``LabState`` keeps per sweep of a flow, per sweep of a queue, per traced segment, and
per sweep of a variable."""


class RecordingLimits:
    """Counts what a recording takes in memory and raises ``WireError`` beyond the limits.

    The length of a line is no measure: a few bytes may stand for many values, and a flow that
    returns after a long time adds a long gap.
    """

    def __init__(self) -> None:
        self._swept = 0.0
        self._ticks = 0
        self._transfers = 0
        self._bytes = 0
        self._queues: set[str] = set()
        self._held: dict[Hashable, int] = {}
        self._until: dict[Hashable, int] = {}
        self._traced: dict[tuple[str, type], float] = {}

    def check(self, event: object) -> None:
        """Count the next event. Raises ``WireError`` beyond a limit."""
        if isinstance(event, Sweep):
            self._sweep(event, 1, event.t)
        elif isinstance(event, Sweeps):
            span_us = sum(event.after_us)
            self._sweep(event, len(event.after_us) + 1, event.t + span_us / 1e6)
        elif isinstance(event, TraceSamples | CaStateChanged):
            self._trace(event)
        elif isinstance(event, Event):
            self._other(event)

    def _sweep(self, event: Sweep | Sweeps, sweeps: int, end: float) -> None:
        if event.t < self._swept - 1e-6:
            raise WireError(f"time goes back, from {self._swept:.6f} to {event.t:.6f} s")
        self._swept = end
        until = self._ticks + sweeps
        if event.tcp is not None:
            self._keep(event.tcp.flow, until, OF_FLOW)
            self._keep_own(event.tcp.flow, event.own, until)
        if event.qdisc is not None:
            self._queues.update(event.qdisc.link)
            if len(self._queues) > MOST_QUEUES:
                raise WireError(f"more than {MOST_QUEUES:,} queues")
            self._keep(event.qdisc.link, until, OF_QUEUE)
            self._keep_own(event.qdisc.link, event.queue_own, until)
        self._ticks = until
        self._check_bytes()

    def _trace(self, event: TraceSamples | CaStateChanged) -> None:
        key = (event.flow, type(event))
        if event.t < self._traced.get(key, 0.0) - 1e-6:
            raise WireError(f"a trace of flow {event.flow} goes back to {event.t:.6f} s")
        after_us = event.after_us if isinstance(event, TraceSamples) else []
        self._traced[key] = event.t + sum(after_us) / 1e6
        self._bytes += (len(after_us) + 1) * OF_SEGMENT
        self._check_bytes()

    def _keep_own(
        self, members: Sequence[str], own: Mapping[str, Sequence[object]], until: int
    ) -> None:
        for name, rows in own.items():
            known = zip(members, rows, strict=True)
            keys = ((member, name) for member, row in known if row is not None)
            self._keep(keys, until, _OF_VARIABLE)

    def _keep(self, keys: Iterable[Hashable], until: int, size: int) -> None:
        """Count ``size`` bytes per tick for each key's series, gaps included, until ``until``."""
        for key in keys:
            held = self._held.get(key, 0)
            if held < KEPT:
                now = min(held + until - self._until.get(key, self._ticks), KEPT)
                self._held[key] = now
                self._bytes += (now - held) * size
            self._until[key] = until

    def _check_bytes(self) -> None:
        if self._bytes > MOST_BYTES:
            raise WireError(
                f"its samples need more than the limit of {MOST_BYTES >> 30} GiB of memory"
            )

    def _other(self, event: Event) -> None:
        if isinstance(event, FlowStarted):
            self._transfers += event.streams
        elif isinstance(event, TrafficStarted):
            self._transfers += 1
        if self._transfers > MOST_TRANSFERS:
            raise WireError(f"more than {MOST_TRANSFERS:,} names of traffic")


# --- reads a process's output line by line --------------------------------------------------------
# Reads a process's output line by line: as fast as it comes, or once per frame of the screen.

CHUNK = 1 << 16
"""Bytes read at once."""

_MOST_WAITING = 1 << 14
"""Most bytes of a read after which the next read may wait; a pipe holds four times as many."""

LONGEST_WAIT_S = 0.25
"""Seconds after which a waiting reader resumes by itself."""


class ReadGate:
    """Makes the reader of a pipe sleep between two frames.

    Waking up for each sweep costs more than reading it.
    """

    def __init__(self) -> None:
        self._waits = False
        self._frame: asyncio.Future[None] | None = None

    def open(self, *, then_wait: bool) -> None:
        """Release the reader; with ``then_wait``, it pauses again after what has arrived."""
        self._waits = then_wait
        self._release()

    async def pass_through(self, read: int, pipe: asyncio.ReadTransport) -> None:
        """Pause ``pipe`` until the gate opens, unless ``read``, the bytes just read, were many."""
        if not self._waits or read > _MOST_WAITING:
            return
        loop = asyncio.get_running_loop()
        self._frame = loop.create_future()
        timer = loop.call_later(LONGEST_WAIT_S, self._release)
        pipe.pause_reading()
        try:
            await self._frame
        finally:
            timer.cancel()
            pipe.resume_reading()

    def _release(self) -> None:
        if self._frame is not None and not self._frame.done():
            self._frame.set_result(None)


async def read_lines(
    stream: asyncio.StreamReader | None,
    longest: int,
    *,
    last: bool = False,
    gate: tuple[ReadGate, asyncio.ReadTransport] | None = None,
) -> AsyncGenerator[bytes]:
    """Yield the lines of a stream, each cut to ``longest`` bytes.

    ``last`` includes a final line without a newline; a ``gate`` may delay the next read. The
    sender may be an untrusted machine: an endless line takes no more memory.
    """
    rest = bytearray()
    while stream is not None and (chunk := await stream.read(CHUNK)):
        first, *others = chunk.split(b"\n")
        rest += first[: max(longest - len(rest), 0)]
        for other in others:
            yield bytes(rest)
            rest = bytearray(other[:longest])
        if gate is not None:
            await gate[0].pass_through(len(chunk), gate[1])
    if last and rest:
        yield bytes(rest)


async def drop(stream: asyncio.StreamReader | None) -> None:
    """Read a stream to its end and discard the content."""
    while stream is not None and await stream.read(CHUNK):
        pass


# --- starts programs behind three pipes from an argv ----------------------------------------------
# Starts programs behind three pipes from an argv; ``Starter`` allows other ways to start them.


class LabProcess(Protocol):
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


Starter: TypeAlias = Callable[[Sequence[str]], Awaitable[LabProcess]]
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


async def spawn(argv: Sequence[str]) -> LabProcess:
    """Start a program in its own process group, so that Ctrl-C at the terminal reaches only ccplay.

    Raises ``OSError``.
    """
    loop = asyncio.get_running_loop()
    # Like ``create_subprocess_exec``, which does not return the transport that closes the pipes.
    transport, protocol = await loop.subprocess_exec(
        lambda: SubprocessStreamProtocol(limit=CHUNK, loop=loop),
        *argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        process_group=0,
    )
    return _Spawned(Process(transport, protocol, loop), transport)


# --- sources of events: a local lab, a remote lab, or a recording ---------------------------------

_KILLED = "unshare: sigprocmask"
"""Start of a message of unshare(1) after a signal ended its child; it gives no reason."""

_REFUSED = "unshare: unshare failed"
"""Start of the message of unshare(1) if it may not create namespaces."""

_LONGEST_WORDS = 2_000
"""Bytes kept of a line of text from a lab, such as a message on stderr."""
_TURN_S = 0.01
"""Seconds for which a replay is read before other tasks run."""

_LAST_S = 5.0
"""Seconds to wait for the end of a killed process, and then of its output: processes it left may
hold its pipes open, or the kernel be busy with it, for ever."""

_BEAT_S = 1.0
"""Seconds between progress reports while a guest boots."""


class Source(Protocol):
    """A stream of events, and a way back for commands if ``live``."""

    live: bool

    def events(self) -> AsyncIterator[Event | UnknownEvent]:
        """Yield every event until the source ends, ``Hello`` first.

        While a guest boots, ``Building`` events precede ``Hello``.
        """

    def send(self, command: Command) -> None:
        """Pass on a command without waiting; its outcome arrives as an event."""

    async def close(self) -> None:
        """End the source in an orderly way."""


class LabSource:
    """A lab behind a pipe: commands to its stdin, events from its stdout."""

    live = True

    def __init__(
        self,
        argv: Sequence[str],
        build: Build,
        *,
        boots: bool = False,
        grace_s: float = 10.0,
        start: Starter = spawn,
    ) -> None:
        """Hold the ``argv`` of a lab, which ``start`` starts once events are read.

        ``grace_s`` is the seconds after which a lab that was asked to end is killed; ending takes
        a tenth of a second, or more on a busy machine. With ``boots``, ``argv`` has to boot a
        guest before it can start the lab.
        """
        self._starter = start
        self._boots = "booting a full kernel in a virtual machine" if boots else ""
        self._grace_s = grace_s
        self._argv = list(argv)
        self._build = build
        self._process: LabProcess | None = None
        self._last_words: deque[str] = deque(maxlen=12)
        self._closing = False
        self._sent: set[str] = set()
        """Digests of the traces that the lab has received."""
        self._gate = ReadGate()
        self._ending: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """The ID of the process at the other end of the pipes; None before it is started."""
        return self._process.pid if self._process else None

    async def events(self) -> AsyncIterator[Event | UnknownEvent]:
        """Start the lab and yield its events; while a guest boots, yield its progress every second.

        Raises ``LabError``, with the lab's last messages, if the lab ends unexpectedly.
        """
        process = await self._start()
        talk = asyncio.create_task(self._listen_to_stderr(process))
        lines = self._lines_or_progress(process)
        ended = False
        try:
            if self._closing:
                # Closed while the lab was starting, which would wait forever for a command.
                return
            async for line in lines:
                if isinstance(line, Building):
                    yield line
                    continue
                try:
                    event = wire.decode_event(line)
                except WireError as error:
                    # Other lines are messages, such as an ssh banner or a warning of sudo.
                    self._last_words.append(_text(line).strip() or str(error))
                    continue
                ended = ended or isinstance(event, Ended)
                yield event
            code = await process.wait()
            await talk
            if not ended and not self._closing:
                raise LabError(self._reason_for_end(code))
        finally:
            # The lab's end is seen only after all of its output is read, by one reader at a time.
            await lines.aclose()
            ending, dropping = self._end(process), asyncio.create_task(drop(process.stdout))
            await ending
            await dropping
            talk.cancel()

    async def _lines_or_progress(self, process: LabProcess) -> AsyncGenerator[bytes | Building]:
        """Yield the lines of stdout, and before the first one the boot's progress every second."""
        gate = (self._gate, process.output)
        lines = read_lines(process.stdout, wire.LONGEST_LINE, gate=gate)
        begun = time.monotonic()
        first = asyncio.ensure_future(anext(lines, None))
        try:
            while self._boots and not (await asyncio.wait({first}, timeout=_BEAT_S))[0]:
                step = f"{self._boots}: {time.monotonic() - begun:.0f} s"
                yield Building(t=0.0, step=step, done=0, total=0)
            if (line := await first) is None:
                return
            yield line
            async for line in lines:
                yield line
        finally:
            first.cancel()
            await asyncio.wait({first})

    async def _start(self) -> LabProcess:
        try:
            self._process = await self._starter(self._argv)
        except OSError as error:
            raise LabError(f"can't start the lab: {self._argv[0]}: {error.strerror}") from None
        self.send(self._build)
        return self._process

    def send(self, command: Command) -> None:
        """Write a command to the lab's stdin."""
        if self._process is None or self._closing:
            return
        with contextlib.suppress(ConnectionError):
            for digest in delivery.digests_of(command) - self._sent:
                self._sent.add(digest)
                for piece in delivery.data_of(digest):
                    self._process.stdin.write(wire.encode(piece))
            self._process.stdin.write(wire.encode(command))

    def read_on(self, *, then_wait: bool) -> None:
        """Read all that has arrived; ``then_wait``: then pause until the next call, or 0.25 s."""
        self._gate.open(then_wait=then_wait)

    async def close(self) -> None:
        """End the lab in order, or kill it if that takes longer than ``grace_s``."""
        self.read_on(then_wait=False)
        self._closing = True
        if self._process is not None:
            # A waiting caller may be cancelled, but the ending must not be.
            await asyncio.shield(self._end(self._process))

    def _end(self, process: LabProcess) -> asyncio.Task[None]:
        """Return the only task that ends the lab; create it on the first call."""
        self._closing = True
        if self._ending is None:
            self._ending = asyncio.create_task(self._close(process))
        return self._ending

    async def _close(self, process: LabProcess) -> None:
        with contextlib.suppress(ConnectionError):
            process.stdin.write(wire.END)
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), self._grace_s)
        except TimeoutError:
            process.kill()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), _LAST_S)
        asyncio.get_running_loop().call_later(_LAST_S, process.close)

    async def _listen_to_stderr(self, process: LabProcess) -> None:
        async for line in read_lines(process.stderr, _LONGEST_WORDS, last=True):
            words = _text(line).rstrip()
            if words == wire.GUEST_RUNS:
                self._boots = "the virtual machine is running, the lab is starting in it"
            else:
                self._last_words.append(words)

    def _reason_for_end(self, code: int) -> str:
        words = [wire.printable(each) for each in self._last_words if each]
        # The lab's reason need not be the last line: a guest's kernel writes lines, too.
        for each in reversed(words):
            if each.startswith(wire.LAB_ERROR):
                return each.removeprefix(wire.LAB_ERROR)
        for each in words:
            if each.startswith(_REFUSED):
                why = "a lab can't start here, because it needs its own namespaces"
                return f"{why}: {each} ({ROOT_REMEDY})"
        if any(each.startswith(_KILLED) for each in words):
            return "the lab was killed by a signal from outside"
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        return f"the lab ended {how}" + (f": {words[-1]}" if words else "")


def _text(line: bytes) -> str:
    return line[:_LONGEST_WORDS].decode(errors="replace")


def check_recording(path: Path) -> None:
    """Raise ``RecordingError`` unless ``path`` begins like a recording of a known format."""
    next(recorded_events(path))


def recorded_events(path: Path) -> Iterator[Event | UnknownEvent]:
    """Yield the events of a recording; omits a last line cut short by a crash.

    Raises ``RecordingError``, with file and line, for a file that can't be read, is no recording,
    or has invalid content: the file may be untrusted.
    """
    bounds = RecordingLimits()
    number = 0
    try:
        with open_regular(path) as file:
            for number, line in enumerate(complete_lines(file), 1):
                first = number == 1
                event = wire.decode_hello(line, str(path)) if first else wire.decode_event(line)
                bounds.check(event)
                yield event
    except OSError as error:
        raise RecordingError(f"{path}: {error.strerror}") from None
    except WireError as error:
        raise RecordingError(f"{path}:{number}: {error}") from None
    if number == 0:
        raise RecordingError(f"{path}: not a ccplay recording")


def complete_lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a recording; omits a last line without a newline.

    Raises ``WireError`` for a line longer than in any recording.
    """
    while (line := file.readline(wire.LONGEST_LINE)).endswith(b"\n"):
        yield line
    if len(line) == wire.LONGEST_LINE:
        raise WireError(f"the line after it is longer than {wire.LONGEST_LINE:,} bytes")


class ReplaySource:
    """A recording as a source: its events come as fast as they can be read, not in real time."""

    live = False

    def __init__(self, path: Path) -> None:
        self._path = path

    async def events(self) -> AsyncIterator[Event | UnknownEvent]:
        """Yield the recorded events; let other tasks, above all the screen, run every 10 ms.

        Raises ``RecordingError`` for a file that can't be read or is no valid recording.
        """
        turn_ends = time.monotonic() + _TURN_S
        for event in recorded_events(self._path):
            yield event
            if time.monotonic() > turn_ends:
                await asyncio.sleep(0)
                turn_ends = time.monotonic() + _TURN_S

    def send(self, command: Command) -> None:
        """Do nothing: a recording takes no commands."""

    async def close(self) -> None:
        """Do nothing: no resource is held."""

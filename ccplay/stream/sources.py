"""Sources of events: a local lab, a remote lab, or a recording."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Protocol

from ccplay.errors import ROOT_REMEDY, LabError, RecordingError, WireError
from ccplay.files.reading import open_regular
from ccplay.model.commands import Build, Order
from ccplay.model.events import AnyEvent, Building, Ended
from ccplay.stream import pipe, wire
from ccplay.stream.limits import RecordingLimits
from ccplay.stream.pipe import Gate
from ccplay.stream.programs import Program, Starter, spawn
from ccplay.stream.wire import UnknownEvent

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

    def events(self) -> AsyncIterator[AnyEvent | UnknownEvent]:
        """Yield every event until the source ends, ``Hello`` first.

        While a guest boots, ``Building`` events precede ``Hello``.
        """

    def send(self, command: Order) -> None:
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
        self._process: Program | None = None
        self._last_words: deque[str] = deque(maxlen=12)
        self._closing = False
        self._gate = Gate()
        self._ending: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """The ID of the process at the other end of the pipes; None before it is started."""
        return self._process.pid if self._process else None

    async def events(self) -> AsyncIterator[AnyEvent | UnknownEvent]:
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
            ending, dropping = self._end(process), asyncio.create_task(pipe.drop(process.stdout))
            await ending
            await dropping
            talk.cancel()

    async def _lines_or_progress(self, process: Program) -> AsyncGenerator[bytes | Building]:
        """Yield the lines of stdout, and before the first one the boot's progress every second."""
        gate = (self._gate, process.output)
        lines = pipe.lines(process.stdout, wire.LONGEST_LINE, gate=gate)
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

    async def _start(self) -> Program:
        try:
            self._process = await self._starter(self._argv)
        except OSError as error:
            raise LabError(f"can't start the lab: {self._argv[0]}: {error.strerror}") from None
        self.send(self._build)
        return self._process

    def send(self, command: Order) -> None:
        """Write a command to the lab's stdin."""
        if self._process is None or self._closing:
            return
        with contextlib.suppress(ConnectionError):
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

    def _end(self, process: Program) -> asyncio.Task[None]:
        """Return the only task that ends the lab; create it on the first call."""
        self._closing = True
        if self._ending is None:
            self._ending = asyncio.create_task(self._close(process))
        return self._ending

    async def _close(self, process: Program) -> None:
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), self._grace_s)
        except TimeoutError:
            process.kill()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), _LAST_S)
        asyncio.get_running_loop().call_later(_LAST_S, process.close)

    async def _listen_to_stderr(self, process: Program) -> None:
        async for line in pipe.lines(process.stderr, _LONGEST_WORDS, last=True):
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


def recorded_events(path: Path) -> Iterator[AnyEvent | UnknownEvent]:
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

    async def events(self) -> AsyncIterator[AnyEvent | UnknownEvent]:
        """Yield the recorded events; let other tasks, above all the screen, run every 10 ms.

        Raises ``RecordingError`` for a file that can't be read or is no valid recording.
        """
        turn_ends = time.monotonic() + _TURN_S
        for event in recorded_events(self._path):
            yield event
            if time.monotonic() > turn_ends:
                await asyncio.sleep(0)
                turn_ends = time.monotonic() + _TURN_S

    def send(self, command: Order) -> None:
        """Do nothing: a recording takes no commands."""

    async def close(self) -> None:
        """Do nothing: no resource is held."""

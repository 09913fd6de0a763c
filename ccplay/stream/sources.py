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
"""Message of unshare(1) when a signal ended its child; it explains nothing."""

_REFUSED = "unshare: unshare failed"
"""Message of unshare(1) when it may not make namespaces."""

_LONGEST_WORDS = 2_000
"""Bytes kept of a line of text."""
_TURN_S = 0.01
"""Seconds that a replay is read before other tasks run."""


_LAST_S = 5.0
"""Seconds for the end of a killed process and of its output: what it has left behind may hold its
pipes open, or the kernel be busy with it, for ever."""

_BEAT_S = 1.0
"""Seconds between reports of a booting guest."""


class Source(Protocol):
    """A stream of events, and a way back for commands if something can carry them out."""

    live: bool

    def events(self) -> AsyncIterator[AnyEvent | UnknownEvent]:
        """Yield every event, first ``Hello``; end when the source ends.

        While a guest boots, ``Building`` comes before it.
        """

    def send(self, command: Order) -> None:
        """Pass a command on, without waiting; its outcome comes as an event."""

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
        """Prepare to ``start`` an argv; after ``grace_s`` seconds of ending in order it is killed.

        Ending takes a tenth of a second, and more on a busy machine.
        With ``boots``, ``argv`` has to boot a guest before it can start the lab.
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
        """The process at this end of the pipe, once started."""
        return self._process.pid if self._process else None

    async def events(self) -> AsyncIterator[AnyEvent | UnknownEvent]:
        """Start the lab and yield its events; first, each second, the progress of a booting guest.

        Raises ``LabError``, with the lab's last messages, if it ends unexpectedly.
        """
        process = await self._start()
        talk = asyncio.create_task(self._listen_to_stderr(process))
        lines = self._heard(process)
        ended = False
        try:
            if self._closing:
                # Closed while it was being started: it would wait forever for its first command.
                return
            async for line in lines:
                if isinstance(line, Building):
                    yield line
                    continue
                try:
                    event = wire.decode_event(line)
                except WireError as error:
                    # Lines that are no events are messages: an ssh banner, a warning of sudo.
                    self._last_words.append(_text(line).strip() or str(error))
                    continue
                ended = ended or isinstance(event, Ended)
                yield event
            code = await process.wait()
            await talk
            if not ended and not self._closing:
                raise LabError(self._obituary(code))
        finally:
            # The lab's end shows only once one reader has read all of its output.
            await lines.aclose()
            ending, dropping = self._end(process), asyncio.create_task(pipe.drop(process.stdout))
            await ending
            await dropping
            talk.cancel()

    async def _heard(self, process: Program) -> AsyncGenerator[bytes | Building]:
        """Yield the lines of stdout; before the first, each second, the progress of booting."""
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
        """Read what has arrived, and with ``then_wait`` nothing more for up to a quarter second."""
        self._gate.open(then_wait=then_wait)

    async def close(self) -> None:
        """End the lab in order, or by force if that takes too long."""
        self.read_on(then_wait=False)
        self._closing = True
        if self._process is not None:
            # A caller that waits may be cancelled, but not the end itself.
            await asyncio.shield(self._end(self._process))

    def _end(self, process: Program) -> asyncio.Task[None]:
        """Return the one task that ends the lab."""
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

    def _obituary(self, code: int) -> str:
        words = [wire.printable(each) for each in self._last_words if each]
        # Not always the last line: the kernel of a guest writes some, too.
        for each in reversed(words):
            if each.startswith(wire.LAB_SAYS):
                return each.removeprefix(wire.LAB_SAYS)
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
    or has impossible content: it may come from a stranger.
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
    """Yield the lines of a recording; omits a last one without its end.

    Raises ``WireError`` for a line longer than in any recording.
    """
    while (line := file.readline(wire.LONGEST_LINE)).endswith(b"\n"):
        yield line
    if len(line) == wire.LONGEST_LINE:
        raise WireError(f"the line after it is longer than {wire.LONGEST_LINE:,} bytes")


class ReplaySource:
    """A recording: every event as fast as it can be read, for a playhead to move over."""

    live = False

    def __init__(self, path: Path) -> None:
        self._path = path

    async def events(self) -> AsyncIterator[AnyEvent | UnknownEvent]:
        """Yield the recorded events, and let other tasks run now and then, above all the screen.

        Raises ``RecordingError`` as ``recorded_events`` does.
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
        """Nothing is held open."""

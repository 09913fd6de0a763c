"""Where events come from: a lab, here or far away, or a recording."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Protocol

from ccplay import wire
from ccplay.errors import LabError, RecordingError, WireError
from ccplay.model import AnyCommand, AnyEvent, Build, Ended
from ccplay.wire import UnknownEvent

_KILLED = "unshare: sigprocmask"
"""What unshare(1) says, instead of anything helpful, where a signal ended what it had started."""

_CHUNK = 1 << 16
_LINES_A_TURN = 500
_GRACE_S = 2.0


class Source(Protocol):
    """A stream of events, and a way back for commands where something can obey."""

    live: bool

    def events(self) -> AsyncIterator[AnyEvent | UnknownEvent]:
        """Yield every event, first ``Hello``; end when the source ends."""

    def send(self, command: AnyCommand) -> None:
        """Pass a command on, without waiting; its outcome comes as an event."""

    async def close(self) -> None:
        """End the source in an orderly way."""


class LabSource:
    """A lab behind a pipe: commands to its stdin, events from its stdout."""

    live = True

    def __init__(self, argv: Sequence[str], build: Build) -> None:
        self._argv = list(argv)
        self._build = build
        self._process: asyncio.subprocess.Process | None = None
        self._last_words: deque[str] = deque(maxlen=12)
        self._closing = False

    @property
    def pid(self) -> int | None:
        """The process at this end of the pipe, once started."""
        return self._process.pid if self._process else None

    async def events(self) -> AsyncIterator[AnyEvent | UnknownEvent]:
        """Start the lab and yield what it says.

        Raises ``LabError``, with the lab's last words, when it ends without saying so.
        """
        process = await self._start()
        talk = asyncio.create_task(self._listen_to_stderr(process))
        ended = False
        try:
            async for line in _lines(process):
                try:
                    event = wire.decode_event(line)
                except WireError as error:
                    # What is no event is somebody's talk: an ssh banner, a warning of sudo's.
                    self._last_words.append(line.decode(errors="replace").strip() or str(error))
                    continue
                ended = ended or isinstance(event, Ended)
                yield event
            code = await process.wait()
            await talk
            if not ended and not self._closing:
                raise LabError(self._obituary(code))
        finally:
            talk.cancel()
            await self.close()

    async def _start(self) -> asyncio.subprocess.Process:
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                # Ctrl-C at the terminal is for us; the lab ends when its stdin does.
                process_group=0,
            )
        except OSError as error:
            raise LabError(f"can't start the lab: {self._argv[0]}: {error.strerror}") from None
        self.send(self._build)
        return self._process

    def send(self, command: AnyCommand) -> None:
        """Write a command to the lab's stdin."""
        if self._process is None or self._process.stdin is None or self._closing:
            return
        with contextlib.suppress(ConnectionError):
            self._process.stdin.write(wire.encode(command))

    async def close(self) -> None:
        """Close the lab's stdin, which ends it; kill it where that does not help."""
        process, self._closing = self._process, True
        if process is None or process.returncode is not None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), _GRACE_S)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _listen_to_stderr(self, process: asyncio.subprocess.Process) -> None:
        if process.stderr is not None:
            async for line in process.stderr:
                self._last_words.append(line.decode(errors="replace").rstrip())

    def _obituary(self, code: int) -> str:
        words = [wire.printable(each) for each in self._last_words if each]
        if words and words[-1].startswith(wire.LAB_SAYS):
            return words[-1].removeprefix(wire.LAB_SAYS)
        if any(each.startswith(_KILLED) for each in words):
            return "the lab was killed by a signal from outside"
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        return f"the lab ended {how}" + (f": {words[-1]}" if words else "")


async def _lines(process: asyncio.subprocess.Process) -> AsyncIterator[bytes]:
    """Yield the lines of stdout; one cut short by the end is dropped."""
    if process.stdout is None:
        return
    rest = b""
    while chunk := await process.stdout.read(_CHUNK):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line


def check_recording(path: Path) -> None:
    """Raise ``RecordingError`` unless ``path`` begins like a recording that we can read."""
    try:
        with path.open("rb") as file:
            first = file.readline()
    except OSError as error:
        raise RecordingError(f"{path}: {error.strerror}") from None
    try:
        wire.check_format(wire.decode_event(first), str(path))
    except WireError:
        raise RecordingError(f"{path}: not a ccplay recording") from None


class ReplaySource:
    """A recording: every event as fast as it can be read, for a playhead to move over."""

    live = False

    def __init__(self, path: Path) -> None:
        self._path = path

    async def events(self) -> AsyncIterator[AnyEvent | UnknownEvent]:
        """Yield the recorded events; a last line cut short by a crash is left out.

        Raises ``RecordingError`` for a file that can't be read or is no recording.
        """
        try:
            with self._path.open("rb") as file:
                for number, line in enumerate(file, 1):
                    if not line.endswith(b"\n"):
                        return
                    yield self._decode(number, line)
                    if number % _LINES_A_TURN == 0:
                        await asyncio.sleep(0)
        except OSError as error:
            raise RecordingError(f"{self._path}: {error.strerror}") from None

    def _decode(self, number: int, line: bytes) -> AnyEvent | UnknownEvent:
        try:
            event = wire.decode_event(line)
        except WireError as error:
            raise RecordingError(f"{self._path}:{number}: {error}") from None
        if number == 1:
            wire.check_format(event, str(self._path))
        return event

    def send(self, command: AnyCommand) -> None:
        """Do nothing: the past takes no commands."""

    async def close(self) -> None:
        """Nothing is held open."""

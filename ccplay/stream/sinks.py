"""Sinks: receivers of a session's events other than the state, such as recordings."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import BinaryIO, Protocol, runtime_checkable

from msgspec.structs import replace

from ccplay.errors import RecordingError
from ccplay.files import writing
from ccplay.files.reading import open_regular
from ccplay.model import blocks
from ccplay.model.base import Event, TrafficSample
from ccplay.model.events import Health, Hello
from ccplay.model.samples import CaStateChanged, Sweep, TraceSamples
from ccplay.stream import wire
from ccplay.stream.wire import UnknownEvent

BLOCK_S = 2.0
"""Seconds of sweeps in one block, a line of a recording."""


class Sink(Protocol):
    """Receives every event. A sink that raises ``CcplayError`` is reported and dropped."""

    def put(self, event: Event | UnknownEvent) -> None:
        """Process one event."""

    def close(self) -> None:
        """Finish the sink; called once, even after ``put`` has raised."""


@runtime_checkable
class Recording(Protocol):
    """A sink that keeps the whole stream from its beginning."""

    def snapshot(self) -> BinaryIO | None:
        """Return the stream so far, open for reading; None before it begins or once it is lost.

        Raises ``OSError``.
        """


class Recorder:
    """Records the stream to a file, one JSON line per event, valid up to the last complete line.

    Sweeps go into blocks of two seconds. A block ends before an event whose place among the sweeps
    matters, so that reading the recording gives the same state as the stream.
    """

    def __init__(
        self, path: Path, title: str = "", file: BinaryIO | None = None, block_s: float = BLOCK_S
    ) -> None:
        """Create ``path``, or write to a ``file`` already open; its first line keeps ``title``.

        A block covers ``block_s`` seconds, which a crash may lose; longer ones hardly save space.
        Raises ``RecordingError`` if that is impossible or would overwrite a recording.
        """
        self._path = path
        self._title = title
        self._block_s = block_s
        self._block: list[Sweep] = []
        try:
            self._file: BinaryIO = writing.create(path) if file is None else file
        except FileExistsError:
            raise RecordingError(
                f"{path} already exists: delete it, or choose another name"
            ) from None
        except OSError as error:
            raise RecordingError(f"can't record to {path}: {error.strerror}") from None

    @property
    def size(self) -> int:
        """Bytes written so far."""
        return self._file.tell()

    def put(self, event: Event | UnknownEvent) -> None:
        """Record one event, written within two seconds. Raises ``RecordingError``."""
        try:
            if isinstance(event, Sweep):
                self._gather(event)
            else:
                self._write(event)
        except OSError as error:
            # The last line may be incomplete; nothing may follow it.
            self._block.clear()
            raise RecordingError(f"recording to {self._path} stopped: {error.strerror}") from None

    def flush(self) -> None:
        """Write all events received so far. Raises ``OSError``."""
        self._end_block()
        self._file.flush()

    def snapshot(self) -> BinaryIO | None:
        """Return the file so far, open for reading. Raises ``OSError``."""
        self.flush()
        return open_regular(Path(f"/proc/self/fd/{self._file.fileno()}"))

    def close(self) -> None:
        """Write the last block and close the file; errors are ignored."""
        with contextlib.suppress(OSError):
            self._end_block()
        with contextlib.suppress(OSError):
            self._file.close()

    def _gather(self, sweep: Sweep) -> None:
        block = self._block
        if block and not (blocks.fits(sweep, block) and sweep.t < block[0].t + self._block_s):
            self._end_block()
            self._file.flush()
        self._block.append(sweep)

    def _write(self, event: Event | UnknownEvent) -> None:
        if isinstance(event, _ALONGSIDE):
            self._file.write(wire.encode(event))
            return
        self._end_block()
        if isinstance(event, Hello):
            event = replace(event, format=wire.FORMAT, title=self._title or event.title)
        self._file.write(wire.encode(event))
        self._file.flush()

    def _end_block(self) -> None:
        if self._block:
            line = wire.encode(blocks.pack(self._block))
            self._block.clear()
            self._file.write(line)


_ALONGSIDE: tuple[type[Event], ...] = (TrafficSample, Health, TraceSamples, CaStateChanged)
"""Events whose order relative to sweeps does not matter."""

"""Where a session's events go besides the state: a recording."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO, Protocol

from ccplay import wire
from ccplay.errors import RecordingError
from ccplay.model import AnyEvent, Sweep
from ccplay.wire import UnknownEvent


class Sink(Protocol):
    """Something that wants every event. One that raises ``CcplayError`` is dropped, with a word."""

    def put(self, event: AnyEvent | UnknownEvent) -> None:
        """Take one event."""

    def close(self) -> None:
        """Finish; called once, even after ``put`` has raised."""


class Recorder:
    """The stream in a file, one JSON line an event, valid up to its last complete line."""

    def __init__(self, path: Path) -> None:
        """Create ``path``. Raises ``RecordingError`` where that can't be, or would lose one."""
        self._path = path
        if path.is_file() and path.stat().st_size:
            raise RecordingError(f"{path} exists: remove it, or record to another name")
        try:
            self._file: BinaryIO = path.open("wb")
        except OSError as error:
            raise RecordingError(f"can't record to {path}: {error.strerror}") from None

    def put(self, event: AnyEvent | UnknownEvent) -> None:
        """Write one event; anything but a sweep goes to the disk at once."""
        try:
            self._file.write(wire.encode(event))
            if not isinstance(event, Sweep):
                self._file.flush()
        except OSError as error:
            raise RecordingError(f"recording to {self._path} stopped: {error.strerror}") from None

    def close(self) -> None:
        """Close the file. What could not be written was reported by ``put`` already."""
        try:
            self._file.close()
        except OSError:
            return

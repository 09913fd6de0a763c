"""Records a session in memory, until the user saves it as a file."""

from __future__ import annotations

import io
from pathlib import Path
from typing import BinaryIO

from ccplay.errors import RecordingError
from ccplay.files import writing
from ccplay.model.events import AnyEvent, Health
from ccplay.stream.sinks import Recorder
from ccplay.stream.wire import UnknownEvent
from ccplay.units import format_size

_MOST_BYTES = 100_000_000


class Unsaved:
    """A recording in memory, up to 100 MB."""

    def __init__(self, title: str = "") -> None:
        """Begin an empty recording; its first line keeps ``title``."""
        self._file = io.BytesIO()
        self._recorder = Recorder(Path("memory"), title, self._file)
        self.lost = ""
        """Reason why the recording can't be saved; empty if it can."""
        self.path: Path | None = None
        """Path of the saved recording; None until it is saved."""

    def put(self, event: AnyEvent | UnknownEvent) -> None:
        """Record one event. Raises ``RecordingError`` once the recording is too long."""
        if isinstance(event, Health) and self._recorder.size > _MOST_BYTES:
            self.lost = f"the session has grown longer than {format_size(_MOST_BYTES)}"
            self._file.close()
            raise RecordingError(f"this session can't be saved as a recording: {self.lost}")
        self._recorder.put(event)

    def snapshot(self) -> BinaryIO | None:
        """Return a copy of the recording so far, open for reading; None once it is lost."""
        if self.lost:
            return None
        self._recorder.flush()
        file = writing.create_unnamed()
        file.write(self._file.getbuffer())
        file.flush()
        return file

    def close(self) -> None:
        """Do nothing: the recording stays in memory and can still be saved."""

    def write_to(self, path: Path, *, replace: bool = False) -> None:
        """Save the recording as a file.

        Raises ``OSError``; ``FileExistsError`` for an existing file without ``replace``.
        """
        self._recorder.flush()
        with writing.written(path, replace=replace) as file:
            file.write(self._file.getbuffer())
        self.path = path

"""The files of a run directory, written by one experiment at a time, completely or not at all."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path
from typing import Self

from ccplay.errors import RecordingError, UsageError
from ccplay.files.reading import read_at_most
from ccplay.files.writing import Directory, explained

MOST = 1 << 28
"""Greatest number of bytes that are read of a file, unless a reader has a limit of its own."""


class Folder:
    """A directory held open; its failures are raised as ``RecordingError``."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self.path = directory.path
        """Path for messages; files are opened relative to the descriptor."""

    @classmethod
    def make(cls, path: Path) -> Self:
        """Open ``path``, created if missing. Raises ``RecordingError``."""
        try:
            return cls(Directory(path, make=True))
        except OSError as error:
            raise RecordingError(f"{path}: {error.strerror}") from None

    def close(self) -> None:
        """Close the directory and release its lock."""
        self._directory.close()

    def lock(self) -> None:
        """Lock the directory until ``close``. Raises ``UsageError`` if another ccplay uses it."""
        try:
            fcntl.flock(self._directory.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"{self.path}: in use by another ccplay") from None

    def names(self) -> list[str]:
        """Return the names in the directory."""
        return sorted(os.listdir(self._directory.descriptor))  # noqa: PTH208 - by descriptor

    def folder(self, name: str) -> Folder:
        """Open a folder in the directory, created if missing. Raises ``RecordingError``."""
        try:
            return Folder(self._directory.enter(name))
        except OSError as error:
            raise RecordingError(f"{self.path / name}: {error.strerror}") from None

    def read(self, name: str, most: int = MOST) -> bytes | None:
        """Return the content of a file; None if there is none.

        Raises ``RecordingError``, also for a file of more than ``most`` bytes.
        """
        try:
            with self._directory.open(name) as file:
                return read_at_most(file, most)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise RecordingError(f"{self.path / name}: {error.strerror}") from None

    def write(self, name: str, content: bytes) -> None:
        """Write a file completely and sync it. Raises ``RecordingError``."""
        with (
            explained(self.path / name, RecordingError),
            self._directory.written(name, replace=True) as file,
        ):
            file.write(content)

    def free(self, name: str) -> Path:
        """Delete the file with that name and return its path. Raises ``RecordingError``."""
        with explained(self.path / name, RecordingError):
            self._directory.discard(name)
        return self.path / name

    def settle(self, name: str) -> None:
        """Sync a file written by another program to the disk."""
        with contextlib.suppress(OSError), self._directory.open(name) as file:
            os.fsync(file.fileno())

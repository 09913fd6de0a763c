"""Files in a folder that is held open: written whole or not at all, never through a symlink.

What root writes under sudo(8) belongs to who called it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path
from typing import Self

from ccplay.errors import RecordingError, UsageError

_LARGEST = 1 << 28


class Folder:
    """A directory by its file descriptor, so that it stays the same one while it is used."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self.path = path
        """As a person would name it; nothing is opened by it."""

    @classmethod
    def make(cls, path: Path) -> Self:
        """Open ``path``, made where it is missing. Raises ``RecordingError``."""
        try:
            for missing in reversed([each for each in (path, *path.parents) if not each.exists()]):
                missing.mkdir()
                _hand_over(made := os.open(missing, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW))
                os.close(made)
            return cls(os.open(path, os.O_RDONLY | os.O_DIRECTORY), path)
        except OSError as error:
            raise RecordingError(f"{path}: {error.strerror}") from None

    def close(self) -> None:
        """Let go of the directory, and of its lock."""
        os.close(self._descriptor)

    def lock(self) -> None:
        """Keep other ccplays out until ``close``. Raises ``UsageError`` where one is in there."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"{self.path}: another ccplay is at work in it") from None

    def names(self) -> list[str]:
        """Return the names of what is in it."""
        return sorted(os.listdir(self._descriptor))  # noqa: PTH208 - by descriptor

    def folder(self, name: str) -> Folder:
        """Open a folder in it, made where it is missing. Raises ``RecordingError``."""
        try:
            made = name not in self.names()
            if made:
                os.mkdir(name, dir_fd=self._descriptor)
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
            descriptor = os.open(name, flags, dir_fd=self._descriptor)
        except OSError as error:
            raise RecordingError(f"{self.path / name}: {error.strerror}") from None
        if made:
            _hand_over(descriptor)
        return Folder(descriptor, self.path / name)

    def read(self, name: str) -> bytes | None:
        """Return what a file holds, None where there is none. Raises ``RecordingError``."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            with open(os.open(name, flags, dir_fd=self._descriptor), "rb") as file:  # noqa: PTH123
                return file.read(_LARGEST)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise RecordingError(f"{self.path / name}: {error.strerror}") from None

    def write(self, name: str, content: bytes) -> None:
        """Write a file anew, whole, onto the disk. Raises ``RecordingError``."""
        passing = f".{name}.new"
        try:
            with open(self._create(passing), "wb") as file:  # noqa: PTH123 - by descriptor
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(passing, name, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
            os.fsync(self._descriptor)
        except OSError as error:
            raise RecordingError(f"can't write {self.path / name}: {error.strerror}") from None

    def begin(self, name: str) -> Path:
        """Put an empty file in place of what has that name, and return its path."""
        try:
            os.close(self._create(name))
        except OSError as error:
            raise RecordingError(f"can't write {self.path / name}: {error.strerror}") from None
        return self.path / name

    def settle(self, name: str) -> None:
        """Wait until a file that somebody else wrote is on the disk."""
        with contextlib.suppress(OSError):
            file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=self._descriptor)
            os.fsync(file)
            os.close(file)

    def _create(self, name: str) -> int:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._descriptor)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        created = os.open(name, flags, 0o644, dir_fd=self._descriptor)
        _hand_over(created)
        return created


def _hand_over(descriptor: int) -> None:
    """Give a file that root has just made to the person who called sudo."""
    user, group = os.environ.get("SUDO_UID", ""), os.environ.get("SUDO_GID", "")
    if os.geteuid() == 0 and user.isdecimal() and group.isdecimal():
        with contextlib.suppress(OSError):
            os.fchown(descriptor, int(user), int(group))

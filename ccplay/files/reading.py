"""Reads regular files only, among them those that a command line names and that are saved again."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from stat import S_ISDIR, S_ISLNK, S_ISREG
from typing import BinaryIO, TypeAlias

from ccplay.errors import UsageError
from ccplay.units import format_size

# --- reads regular files only, and no more of them than fits: a pipe or device might never end ----


def open_regular(path: Path) -> BinaryIO:
    """Open a file for reading. Raises ``OSError`` for a pipe, a device or a folder."""
    return open(path, "rb", opener=_open)


def _open(path: str, flags: int) -> int:
    # A named pipe without a writer would block open(2) forever.
    number = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)
    mode = os.fstat(number).st_mode
    if S_ISREG(mode) or S_ISDIR(mode):
        return number
    os.close(number)
    raise OSError(errno.EINVAL, "not a regular file", path)


def read_regular(path: Path, most: int) -> bytes:
    """Return the content of a regular file of at most ``most`` bytes; never follow a symlink.

    Raises ``OSError`` with the reason as ``strerror``.
    """
    if S_ISLNK(path.lstat().st_mode):
        raise OSError(errno.ELOOP, "it is a symlink, which is not followed here", str(path))
    with open(path, "rb", opener=_open_itself) as file:
        return read_at_most(file, most)


def read_at_most(file: BinaryIO, most: int) -> bytes:
    """Return the content of an open file. Raises ``OSError`` if it has more than ``most`` bytes."""
    # The size first, so that not even `most` bytes of a larger file are read.
    if os.fstat(file.fileno()).st_size <= most and len(content := file.read(most + 1)) <= most:
        return content
    raise OSError(errno.EFBIG, f"it is larger than {format_size(most)}")


def _open_itself(path: str, flags: int) -> int:
    return _open(path, flags | os.O_NOFOLLOW)


# --- the user's own files on a command line: each defines one thing, named after the file ---------


def by_name(
    paths: Iterable[Path], name_of: Callable[[Path], str], check: Callable[[str], None], rule: str
) -> dict[str, Path]:
    """Return the files by the name of what each defines.

    ``check`` raises ``UsageError`` for an invalid name; ``rule`` states the rule for names.
    Raises ``UsageError`` for names that are invalid or used twice.
    """
    found: dict[str, Path] = {}
    for path in paths:
        name = name_of(path)
        try:
            check(name)
        except UsageError as error:
            raise UsageError(f"{path}: {rule}: {error}") from None
        if found.setdefault(name, path) != path:
            raise UsageError(f"{path} and {found[name]} are both called {name!r}: rename one")
    return found


def missing(path: Path, suffix: str) -> str:
    """Return the message for a missing file; suggest the path with ``suffix`` if that exists."""
    meant = path.with_name(f"{path.name}{suffix}")
    hint = f"; did you mean {meant}?" if meant.is_file() else ""
    return f"{path}: no such file{hint}"


# --- reports which files have been saved since they were last read --------------------------------

_Stamp: TypeAlias = tuple[int, int, int]


class SavedFiles:
    """The state of files, by name, when each was last read."""

    def __init__(self) -> None:
        self._read: dict[str, _Stamp | None] = {}
        self._seen: dict[str, _Stamp | None] = {}

    def note(self, name: str, path: Path) -> None:
        """Record a file's state just before it is read; later changes are reported."""
        self._read[name] = _stamp(path)

    def changed(self, files: Iterable[tuple[str, Path]]) -> list[str]:
        """Return the names of noted files that were saved since.

        A file that changed since the last call is left out: an editor may still be writing it.
        """
        found = []
        for name, path in files:
            if name not in self._read:
                continue
            now = _stamp(path)
            if now not in (None, self._read[name]) and self._seen.get(name) == now:
                found.append(name)
            self._seen[name] = now
        return found


def _stamp(path: Path) -> _Stamp | None:
    """Return a value that changes when a file is saved; None while there is no file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino

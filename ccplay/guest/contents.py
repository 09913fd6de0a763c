"""The list of a guest's files with size and digest, checked before the guest runs."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ccplay.files.cache import Cache
from ccplay.files.writing import is_safe

CONTENTS = "contents"
_NOT_LISTED = (CONTENTS, "accelerator")


def seal(folder: Path) -> None:
    """Write the list of the files in a guest's folder. Raises ``OSError``."""
    listed = {
        str(path.relative_to(folder)): (path.stat().st_size, _digest(path))
        for path in _files(folder)
        if str(path.relative_to(folder)) not in _NOT_LISTED
    }
    with Cache(folder) as cache:
        cache.keep(CONTENTS, msgspec.json.encode(listed))


def flaw(folder: Path, read: tuple[Path, ...] | None = None) -> str | None:
    """Return the first flaw of a guest's files, such as a changed one; None if they are intact.

    A flaw is a file that changed, is missing or is writable by others. Content is checked only for
    the files in ``read``; None means all.
    """
    try:
        return _flaw(folder, read)
    except OSError as error:
        return f"{Path(error.filename or folder).name}: {error.strerror}"


def _flaw(folder: Path, read: tuple[Path, ...] | None) -> str | None:
    if not is_safe(folder.lstat()):
        return "it is writable by others"
    with Cache(folder) as cache:
        content = cache.find(CONTENTS)
    if content is None:
        return "its list of contents is missing"
    listed: dict[str, tuple[int, str]] = msgspec.json.decode(content)
    for place, _, _ in os.walk(folder):
        if not is_safe(Path(place).lstat()):
            return f"{place} is writable by others"
    for name, (size, digest) in listed.items():
        path = folder / name
        found = path.lstat()
        if not (stat.S_ISREG(found.st_mode) and is_safe(found) and found.st_size == size):
            return f"{name} was changed"
        if (read is None or path in read) and _digest(path) != digest:
            return f"{name} was changed"
    for path in read or ():
        if str(path.relative_to(folder)) not in listed:
            return f"{path.name} is not in its list of contents"
    return None


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

"""Reports which files have been saved since they were last read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

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

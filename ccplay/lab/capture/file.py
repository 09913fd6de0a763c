"""The file of a capture: new, bounded, and never with half a block at its end."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

from ccplay.lab.capture import pcapng

_MOST_NAMES = 1000


def create(directory: Path, stem: str) -> tuple[Path, int]:
    """Make a new file, never through a symlink and never over another. Raises ``OSError``.

    What root writes under sudo(8) belongs to who called it.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    for number in range(1, _MOST_NAMES):
        path = directory / f"{stem}{'' if number == 1 else f'-{number}'}.pcapng"
        with contextlib.suppress(FileExistsError):
            descriptor = os.open(path, flags, 0o644)
            break
    else:
        raise FileExistsError(errno.EEXIST, f"{stem}.pcapng and all names after it are taken")
    if (owner := os.environ.get("SUDO_UID", "")).isdecimal() and os.geteuid() == 0:
        group = os.environ.get("SUDO_GID", "")
        # Root of a user namespace may own nothing for others.
        with contextlib.suppress(OSError):
            os.fchown(descriptor, int(owner), int(group) if group.isdecimal() else -1)
    return path, descriptor


class File:
    """A file that ends with a complete block, and before its bound."""

    def __init__(self, descriptor: int, max_bytes: int) -> None:
        self.size = 0
        self.error: str | None = None
        """Why nothing can be written any more."""
        self._descriptor = descriptor
        self._room = max_bytes - pcapng.STATISTICS_SIZE

    def fits(self, waiting: int, block: bytes) -> bool:
        """Whether a block may follow ``waiting`` bytes that are not yet written."""
        return self.size + waiting + len(block) <= self._room

    def write(self, blocks: bytes) -> None:
        """Append complete blocks, all of them or, with an ``error``, none."""
        left = memoryview(blocks)
        try:
            while left:
                left = left[os.write(self._descriptor, left) :]
        except OSError as error:
            self.error = error.strerror
            os.ftruncate(self._descriptor, self.size)
        else:
            self.size += len(blocks)

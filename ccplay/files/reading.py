"""Reads regular files only, and no more of them than fits: a pipe or device might never end."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from stat import S_ISDIR, S_ISLNK, S_ISREG
from typing import BinaryIO

from ccplay.units import format_size


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

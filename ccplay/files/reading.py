"""Opens regular files only: a pipe or device might never end or block the reader."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import BinaryIO


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

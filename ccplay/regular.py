"""Files that are read whole: nothing that never ends, and nothing that keeps its reader waiting."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import BinaryIO

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def open_regular(path: Path) -> BinaryIO:
    """Open a file for reading; raise ``OSError`` for what is none: a pipe, a device, a folder.

    A named pipe that nobody writes to would block ``open`` for ever.
    """
    number = os.open(path, _FLAGS)
    try:
        mode = os.fstat(number).st_mode
        if S_ISDIR(mode):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not S_ISREG(mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        return os.fdopen(number, "rb")
    except BaseException:
        os.close(number)
        raise

"""A cache of files that can be rebuilt; a file that is damaged or not ccplay's is ignored.

A file ends with the SHA-256 of its name and content, in a C comment, which a compiler ignores;
a file that does not match counts as missing and is rebuilt.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from hashlib import sha256
from pathlib import Path
from typing import Self

from ccplay.files.writing import Directory, is_safe, trusts

_LARGEST = 1 << 26
_END = b"\n// sha256 %b\n"
_SEAL = len(_END % sha256().hexdigest().encode())


class Cache:
    """A directory of cached files. Failures raise ``OSError``."""

    def __init__(self, path: Path) -> None:
        """Open ``path``, created if missing; refuse a directory of another user."""
        self.path = path
        self._directory = Directory(path, make=True)
        try:
            found = os.fstat(self._directory.descriptor)
            if not trusts(found.st_uid):
                raise PermissionError(errno.EPERM, "it belongs to another user")
            if not is_safe(found):
                safe = stat.S_IMODE(found.st_mode) & ~(stat.S_IWGRP | stat.S_IWOTH)
                os.fchmod(self._directory.descriptor, safe)
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """Close the directory."""
        self._directory.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def find(self, name: str) -> bytes | None:
        """Return the content kept under ``name``; None if it is missing or damaged."""
        with contextlib.suppress(OSError), self._directory.open(name) as file:
            if not is_safe(os.fstat(file.fileno())):
                return None
            whole = file.read(_LARGEST)
            content = whole[:-_SEAL]
            if whole == _sealed(name, content):
                with contextlib.suppress(OSError):
                    os.utime(file.fileno())
                return content
        return None

    def keep(self, name: str, content: bytes) -> None:
        """Keep ``content`` under ``name``."""
        with self._directory.written(name, replace=True) as file:
            file.write(_sealed(name, content))

    def forget(self, suffix: str, most: int) -> None:
        """Keep the ``most`` recently used files with this ``suffix``; delete the others."""
        here = self._directory.descriptor
        used = {}
        for name in os.listdir(here):  # noqa: PTH208 - by descriptor
            if name.endswith(suffix):
                with contextlib.suppress(FileNotFoundError):
                    used[name] = os.stat(name, dir_fd=here, follow_symlinks=False).st_mtime
        for name in sorted(used, key=used.__getitem__, reverse=True)[most:]:
            self._directory.discard(name)


def _sealed(name: str, content: bytes) -> bytes:
    return content + _END % sha256(name.encode() + b"\0" + content).hexdigest().encode()

"""The file of a capture, bounded in size."""

from __future__ import annotations

import os

from ccplay.lab.capture import pcapng


class File:
    """A file that ends with a complete block and never exceeds its bound."""

    def __init__(self, descriptor: int, max_bytes: int) -> None:
        self.size = 0
        self.error: str | None = None
        """Reason why nothing more can be written; None if there is none."""
        self._descriptor = descriptor
        self._room = max_bytes - pcapng.STATISTICS_SIZE

    def fits(self, waiting: int, block: bytes) -> bool:
        """Return whether a block fits after ``waiting`` bytes that are not yet written."""
        return self.size + waiting + len(block) <= self._room

    def write(self, blocks: bytes) -> None:
        """Append complete blocks: all of them, or none with an ``error``."""
        left = memoryview(blocks)
        try:
            while left:
                left = left[os.write(self._descriptor, left) :]
        except OSError as error:
            self.error = error.strerror
            os.ftruncate(self._descriptor, self.size)
        else:
            self.size += len(blocks)

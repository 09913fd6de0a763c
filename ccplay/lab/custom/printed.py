"""Text that the user's own disciplines print: a few lines each second."""

from __future__ import annotations

import io

_MOST_LINES = 10
"""Largest number of lines reported in a second; further lines are counted."""

_MOST_CHARACTERS = 200


class Printed(io.TextIOBase):
    """A text file for ``print`` that keeps the lines until they are reported."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._unfinished = ""
        self._omitted = 0
        self._second = 0.0
        self._left = _MOST_LINES

    def writable(self) -> bool:
        """Return True: the file can be written to."""
        return True

    def write(self, text: str) -> int:
        """Keep text, whose lines are reported once they are complete."""
        *lines, self._unfinished = (self._unfinished + text).split("\n")
        self._unfinished = self._unfinished[:_MOST_CHARACTERS]
        room = _MOST_LINES - len(self._lines)
        self._lines += [line[:_MOST_CHARACTERS] for line in lines[:room]]
        self._omitted += max(0, len(lines) - room)
        return len(text)

    def take(self, now: float) -> str:
        """Return the lines to report at a moment in seconds; empty if there are none yet."""
        if not self._lines:
            return ""
        if now - self._second >= 1.0:
            self._second, self._left = now, _MOST_LINES
        if not self._left:
            return ""
        lines, self._lines = self._lines[: self._left], self._lines[self._left :]
        self._left -= len(lines)
        if self._omitted:
            lines.append(f"({self._omitted} more lines)")
            self._omitted = 0
        return "\n".join(lines)

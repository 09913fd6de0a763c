"""Mistakes in a user's own discipline, with their lines."""

from __future__ import annotations

import traceback

from ccplay.errors import CcplayError
from ccplay.model.disciplines import SUFFIX

MEMORY = 1 << 30
"""Bytes of memory that a discipline may use, besides those of ccplay."""


class SourceError(CcplayError):
    """A mistake in the file of a discipline: ``mine.py:12: NameError: ...``."""

    def __init__(self, name: str, line: int | None, words: str) -> None:
        """``name`` is the discipline's; ``line`` counts from 1, None if no line is known."""
        self.name, self.line, self.words = name, line, words
        place = f"{name}{SUFFIX}" if line is None else f"{name}{SUFFIX}:{line}"
        super().__init__(f"{place}: {words}")


class MisuseError(RuntimeError):
    """A discipline misused a packet; the text of the exception describes how."""


def file_of(name: str) -> str:
    """Return the file name under which the source of a discipline is compiled."""
    return f"<discipline {name}>"


def fault(name: str, error: BaseException, otherwise: int | None = None) -> SourceError:
    """Return a ``SourceError`` for an exception, with the file's innermost line in its traceback.

    ``otherwise`` is the line to report if the traceback has no line of the file.
    """
    if isinstance(error, SourceError):
        return error
    if isinstance(error, SyntaxError) and error.filename == file_of(name):
        return SourceError(name, error.lineno, f"{type(error).__name__}: {error.msg}")
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == file_of(name)]
    words = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, MisuseError):
        words = str(error)
    elif isinstance(error, MemoryError):
        words = f"MemoryError: a discipline may use {MEMORY >> 30} GiB"
    elif isinstance(error, PermissionError) and error.filename is None:
        words += ": a discipline may not start or signal processes"
    return SourceError(name, lines[-1] if lines else otherwise, words)

"""What is wrong with a discipline of the user's own, and in which line."""

from __future__ import annotations

import traceback

from ccplay.errors import CcplayError
from ccplay.model.disciplines import SUFFIX


class SourceError(CcplayError):
    """A mistake in the file of a discipline: ``mine.py:12: NameError: ...``."""

    def __init__(self, name: str, line: int | None, words: str) -> None:
        """``name`` is that of the discipline; ``line`` counts from 1, None: none in particular."""
        self.line = line
        place = f"{name}{SUFFIX}" if line is None else f"{name}{SUFFIX}:{line}"
        super().__init__(f"{place}: {words}")


class MisuseError(RuntimeError):
    """A discipline did with packets what none may; its text says what."""


def file_of(name: str) -> str:
    """Return the file as which the source of a discipline is compiled."""
    return f"<discipline {name}>"


def fault(name: str, error: BaseException, otherwise: int | None = None) -> SourceError:
    """Return an exception as a fault, in the last line of the file that led to it.

    ``otherwise`` is the line where none of the file did.
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
    return SourceError(name, lines[-1] if lines else otherwise, words)

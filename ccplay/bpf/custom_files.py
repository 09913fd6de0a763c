"""The user's algorithms: files that only the command line names, never a scenario."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from ccplay.assets import SUFFIX
from ccplay.errors import UsageError
from ccplay.files.custom import by_name, missing
from ccplay.model.algorithms import CATALOGUE

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,14}")


def custom_algorithms(paths: Iterable[Path]) -> dict[str, Path]:
    """Return the files by the name of their algorithm: ``mine`` for ``mine.bpf.c``.

    Raises ``UsageError`` for names that are invalid or taken.
    """
    rule = f"an algorithm is named after its file, NAME{SUFFIX}.c"
    return by_name(paths, lambda path: named(path.name), check_name, rule)


def named(file: str) -> str:
    """Return the name of the algorithm in a file."""
    return file.removesuffix(".c").removesuffix(SUFFIX)


def no_file(path: Path) -> str:
    """Return the message for a missing file, with a suggestion."""
    return missing(path, f"{SUFFIX}.c")


def check_name(name: str) -> None:
    """Raise ``UsageError`` if a user's algorithm can't have this name."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is not a valid name: use up to 15 characters of a-z, 0-9, '_' and '-'"
        )
    if name in CATALOGUE:
        raise UsageError(f"Linux already has a congestion control {name!r}: choose another name")

"""The user's algorithms: files that only the command line names, never a scenario."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from ccplay.assets import SUFFIX
from ccplay.errors import UsageError
from ccplay.model.algorithms import CATALOGUE

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,14}")


def own_algorithms(paths: Iterable[Path]) -> dict[str, Path]:
    """Return the files by what they are called: ``mine`` for ``mine.bpf.c``.

    Raises ``UsageError`` for names that can't be, or that others have.
    """
    found: dict[str, Path] = {}
    for path in paths:
        name = named(path.name)
        try:
            check_name(name)
        except UsageError as error:
            raise UsageError(
                f"{path}: an algorithm is named after its file, NAME{SUFFIX}.c: {error}"
            ) from None
        if found.setdefault(name, path) != path:
            raise UsageError(f"{path} and {found[name]} are both called {name!r}: rename one")
    return found


def named(file: str) -> str:
    """Return what the algorithm in a file is called."""
    return file.removesuffix(".c").removesuffix(SUFFIX)


def no_file(path: Path) -> str:
    """Say that there is no such file, and which was meant."""
    meant = path.with_name(f"{path.name}{SUFFIX}.c")
    hint = f"; did you mean {meant}?" if meant.is_file() else ""
    return f"{path}: there is no such file{hint}"


def check_name(name: str) -> None:
    """Raise ``UsageError`` where an algorithm of the user's own can't be called so."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is no valid name: use up to 15 characters of a-z, 0-9, '_' and '-'"
        )
    if name in CATALOGUE:
        raise UsageError(f"Linux has a congestion control {name!r}: choose another name")

"""Algorithms of the user's own: files that only the command line names, never a scenario."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from ccplay.assets import SUFFIX
from ccplay.errors import UsageError
from ccplay.lab.catalogue import CATALOGUE

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,14}")


def own_algorithms(paths: Iterable[Path]) -> dict[str, Path]:
    """Return the files by what they are called: ``mine`` for ``mine.bpf.c``.

    Raises ``UsageError`` for names that can't be, or that others have.
    """
    found: dict[str, Path] = {}
    for path in paths:
        name = path.name.removesuffix(".c").removesuffix(SUFFIX)
        check_name(name)
        if found.setdefault(name, path) != path:
            raise UsageError(f"{path} and {found[name]} are both called {name!r}: rename one")
    return found


def check_name(name: str) -> None:
    """Raise ``UsageError`` where an algorithm of the user's own can't be called so."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} can't be an algorithm's name: up to 15 of a-z, 0-9, '_' and '-'"
        )
    if name in CATALOGUE:
        raise UsageError(f"Linux has a {name!r} of its own: take another name")

"""The user's own files on a command line: each defines one thing, named after the file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from ccplay.errors import UsageError


def by_name(
    paths: Iterable[Path],
    name_of: Callable[[Path], str],
    check: Callable[[str], None],
    rule: str,
) -> dict[str, Path]:
    """Return the files by the name of what each defines.

    ``check`` raises ``UsageError`` for an invalid name; ``rule`` states the rule for names.
    Raises ``UsageError`` for names that are invalid or used twice.
    """
    found: dict[str, Path] = {}
    for path in paths:
        name = name_of(path)
        try:
            check(name)
        except UsageError as error:
            raise UsageError(f"{path}: {rule}: {error}") from None
        if found.setdefault(name, path) != path:
            raise UsageError(f"{path} and {found[name]} are both called {name!r}: rename one")
    return found


def missing(path: Path, suffix: str) -> str:
    """Return the message for a missing file; suggest the path with ``suffix`` if that exists."""
    meant = path.with_name(f"{path.name}{suffix}")
    hint = f"; did you mean {meant}?" if meant.is_file() else ""
    return f"{path}: no such file{hint}"

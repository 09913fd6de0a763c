"""Checks the names and reads the text of files with a user's own discipline, ``NAME.py``."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable
from pathlib import Path

from ccplay.errors import CcplayError, UsageError
from ccplay.files.custom import by_name, missing
from ccplay.files.reading import open_regular
from ccplay.model.disciplines import DISCIPLINES, SUFFIX

_NAME = re.compile(r"[a-z][a-z0-9_]{0,14}")

_MOST_BYTES = 1 << 18

_OF_LINUX = {
    *("bpf", "cbs", "etf", "ets", "fifo", "gred", "hfsc", "hhf", "htb", "ingress", "mq", "mqprio"),
    *("multiq", "netem", "noqueue", "pfifo_fast", "plug", "qfq", "sfb", "taprio", "teql"),
}
"""Names of disciplines of Linux, most of which ccplay lacks; a user's own can't have them."""


def custom_disciplines(paths: Iterable[Path]) -> dict[str, Path]:
    """Return the files by the names of their disciplines: ``mine`` for ``mine.py``.

    Raises ``UsageError`` for names that are invalid or taken.
    """
    rule = f"a discipline is named after its file, NAME{SUFFIX}"
    return by_name(paths, _name_of, check_name, rule)


def _name_of(path: Path) -> str:
    if path.suffix != SUFFIX:
        raise UsageError(f"{path}: a discipline is named after its file, which ends in {SUFFIX}")
    return path.name.removesuffix(SUFFIX)


def no_file(path: Path) -> str:
    """Return the message for a missing file, with a suggestion."""
    return missing(path, SUFFIX)


def check_name(name: str) -> None:
    """Raise ``UsageError`` if a user's discipline can't have this name."""
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        raise UsageError(
            f"{name!r} is not a valid name: use up to 15 characters of a-z, 0-9 and '_', "
            "a letter first"
        )
    if name in DISCIPLINES or name in _OF_LINUX:
        raise UsageError(f"there already is a queue discipline {name!r}: choose another name")


def content(path: Path) -> bytes:
    """Return the bytes of a file. Raises ``UsageError`` with the reason if it can't be read."""
    try:
        with open_regular(path) as file:
            data = file.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        raise UsageError(no_file(path)) from None
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    if len(data) > _MOST_BYTES:
        raise UsageError(f"{path}: more than {_MOST_BYTES // 1024} KiB can't be a discipline")
    return data


def text(path: Path) -> str:
    """Return the source in a file. Raises ``CcplayError`` with the reason if it can't be read."""
    data = content(path)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CcplayError(f"{path.name}:{line}: not UTF-8 text") from None

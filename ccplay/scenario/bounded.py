"""TOML from strangers: texts that would take long to read are refused before they are parsed."""

from __future__ import annotations

import re
import tomllib
from typing import Any

LARGEST_FILE = 1_000_000
"""Size of the largest file in bytes."""
MOST_VALUES = 80_000
"""Largest number of keys and values in a file, or in one value on the command line."""
MOST_PARTS = 8
"""Largest number of parts in a dotted key; valid keys have at most five."""
DEEPEST = 16
"""Largest number of keys and indexes that lead to a value; valid paths have at most twelve."""

_TEXT = re.compile(
    r'"""(?:[^"\\]++|\\.|"(?!""))*+(?:"{3,5})?'
    r"|'''(?:[^']++|'(?!''))*+(?:'{3,5})?"
    r'|"(?:[^"\\\n]++|\\.)*+"?'
    r"|'[^'\n]*+'?"
    r"|\#[^\n]*+",
    re.DOTALL,
)
"""Pattern of strings and comments. An unterminated one extends to the end of its line or of the
text."""
_LONG_KEY = re.compile(rf"(?:\.[^.,=\[\]{{}}\n]*+){{{MOST_PARTS}}}")


class TooMuchError(ValueError):
    """Raised for a text that exceeds a bound, which the message names."""


def loads(text: str) -> dict[str, Any]:
    """Parse TOML in a time that depends only on the length of ``text``.

    Raises ``TooMuchError`` for too many or too deeply nested values, and ``ValueError`` for text
    that is not TOML (``tomllib.TOMLDecodeError``) or has a number or date that Python can't
    represent.
    """
    bare = _TEXT.sub('""', text)
    # Each value, header and part of a key has one of these characters beside it.
    if sum(map(bare.count, "=,.[]{")) > MOST_VALUES:
        raise TooMuchError(f"more than {MOST_VALUES:,} keys and values")
    # tomllib's time grows with the square of the parts of a key.
    if _LONG_KEY.search(bare):
        raise TooMuchError(f"a key of more than {MOST_PARTS} parts")
    try:
        table = tomllib.loads(text)
    except RecursionError:
        raise TooMuchError(_TOO_DEEP) from None
    _check_depth(table, 0)
    return table


_TOO_DEEP = f"tables or lists are nested too deeply (more than {DEEPEST} levels)"


def _check_depth(value: Any, depth: int) -> None:
    if depth > DEEPEST:
        raise TooMuchError(_TOO_DEEP)
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list):
        return
    for each in value:
        _check_depth(each, depth + 1)

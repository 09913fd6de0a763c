"""TOML from strangers: what would take long to read, or control a terminal, is refused."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from ccplay.visible import control_in

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


class ControlError(ValueError):
    """Raised for a control character, written as such or by an escape."""

    def __init__(self, character: str, place: tuple[str | int, ...] = (), line: int = 0) -> None:
        """Report ``character`` in the value or key at ``place``, or outside of all on ``line``."""
        super().__init__(f"has the control character {character}, which is not allowed: remove it")
        self.place = place
        self.line = line


def loads(text: str) -> dict[str, Any]:
    """Parse TOML in a time that depends only on the length of ``text``.

    Raises ``TooMuchError`` for too many or too deeply nested values, ``ControlError`` for
    a control character, and ``ValueError`` for text that is not TOML (``tomllib.TOMLDecodeError``)
    or has a number or date that Python can't represent.
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
    _check(table, ())
    _check_comments(text)
    return table


_TOO_DEEP = f"tables or lists are nested too deeply (more than {DEEPEST} levels)"


def _check(value: Any, place: tuple[str | int, ...]) -> None:
    if len(place) > DEEPEST:
        raise TooMuchError(_TOO_DEEP)
    if isinstance(value, str):
        _check_text(value, place)
    elif isinstance(value, dict):
        for key, each in value.items():
            _check_text(key, (*place, key))
            _check(each, (*place, key))
    elif isinstance(value, list):
        for number, each in enumerate(value):
            _check(each, (*place, number))


def _check_text(text: str, place: tuple[str | int, ...]) -> None:
    if character := control_in(text):
        raise ControlError(character, place)


def _check_comments(text: str) -> None:
    # What stands in no value may be shown too, as in the page that a student hands in.
    text = text.replace("\r\n", "\n")
    if control_in(text):
        for number, line in enumerate(text.split("\n"), 1):
            if character := control_in(line):
                raise ControlError(character, line=number)

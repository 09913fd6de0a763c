"""Untrusted text in messages: quoted and shortened, with a suggestion."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import islice

_MOST_SHOWN = 20
_MOST_KNOWN = 200
_LONGEST_WORD = 100


class MisfitError(ValueError):
    """Raised for a value that is not valid in its place; the message describes a valid one."""


def quote(value: object) -> str:
    """Return a value from a file, shortened and printable: ``"cubik"``."""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    text = text if len(text) <= 60 else text[:57] + "..."
    escaped = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
    return f'"{escaped}"' if isinstance(value, str) else escaped


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``; did you mean "cubic"?``, or all known names if none is similar."""
    known = tuple(islice(known, _MOST_KNOWN + 1))
    if len(word) <= _LONGEST_WORD and (near := _nearest(word.lower(), known[:_MOST_KNOWN])):
        return f"; did you mean {quote(near[0])}?"
    names = [quote(each) if "," in each else each for each in known[:_MOST_SHOWN]]
    more = ", …" if len(known) > _MOST_SHOWN else ""
    return f" (there are: {', '.join(names)}{more})" if known else ""


@lru_cache(maxsize=1000)
def _nearest(word: str, known: tuple[str, ...]) -> list[str]:
    # Cached: a mistake in a part that many cases share is found again in each case.
    from difflib import get_close_matches  # noqa: PLC0415 - labs start without it

    return get_close_matches(word, known, n=1)

"""Mistakes in a scenario file: collected with their places, told all at once."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import TypeAlias

from ccplay.errors import ScenarioError
from ccplay.scenario.locate import line_of

Place: TypeAlias = tuple[str | int, ...]
"""Keys and indexes that lead to a value: ``("timeline", 2, "cc")``."""

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SHOWN = 20


class Mistakes:
    """What is wrong with one file."""

    def __init__(self, file: str, text: str) -> None:
        """``file`` names it in messages; ``text`` is its content, to find lines in."""
        self._file = file
        self._text = text
        self._found: dict[tuple[Place, str], None] = {}
        self.count = 0
        """How often ``add`` was called: who reads a value can tell whether it went well."""

    def add(self, place: Place, text: str) -> None:
        """Note a mistake; what several cases inherit is told once."""
        self._found[place, text] = None
        self.count += 1

    def raise_any(self) -> None:
        """Raise one ``ScenarioError`` with every mistake, in the order of the file."""
        if not self._found:
            return
        lines = sorted(
            ((line_of(self._text, place), place, text) for place, text in self._found),
            key=lambda each: each[0],
        )
        told = [
            f"{self._file}:{line}: {f'{spell(place)}: ' if place else ''}{text}"
            for line, place, text in lines[:_SHOWN]
        ]
        if len(lines) > _SHOWN:
            told.append(f"… and {len(lines) - _SHOWN} more")
        if len(lines) > 1:
            told.insert(0, f"{self._file}: {len(lines)} mistakes")
        raise ScenarioError("\n".join(told))


def spell(place: Place) -> str:
    """Write a place as people do: ``case[1].links."r1->r2".rate``."""
    words = ""
    for part in place:
        if isinstance(part, int):
            words += f"[{part}]"
        else:
            words += ("." if words else "") + (part if _BARE_KEY.fullmatch(part) else quote(part))
    return words


def quote(value: object) -> str:
    """Write a value of the file as it may stand there, shortened: ``"cubik"``."""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    text = text if len(text) <= 60 else text[:57] + "..."
    escaped = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
    return f'"{escaped}"' if isinstance(value, str) else escaped


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``; did you mean "cubic"?``, or all that is known where nothing is near."""
    known = list(known)
    if near := get_close_matches(word.lower(), known, n=1):
        return f"; did you mean {quote(near[0])}?"
    names = (quote(each) if "," in each else each for each in known)
    return f" (there are: {', '.join(names)})" if known else ""

"""The mistakes in a scenario file: collected with their places, and reported together."""

from __future__ import annotations

import re
from typing import NoReturn, TypeAlias

from ccplay.errors import ScenarioError
from ccplay.model.quoting import quote
from ccplay.scenario.file.lines import locate, nearest

Place: TypeAlias = tuple[str | int, ...]
"""Keys and indexes that lead to a value: ``("timeline", 2, "cc")``."""


class SetPath(str):
    """The path of a ``--set`` as typed, used as the first part of its value's place."""

    __slots__ = ()


_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SHOWN = 20
_MOST = 100
"""Largest number of mistakes collected."""


class Mistakes:
    """The mistakes in one file."""

    def __init__(self, file: str, text: str) -> None:
        """Collect mistakes of ``file``, whose content ``text`` is used to find lines."""
        self._file = file
        self._text = text
        self._found: dict[tuple[Place, str], dict[str, None]] = {}
        self._cases: set[str] = set()
        self._case = ""
        self.count = 0
        """Number of calls of ``add``; readers compare it to see whether a value was valid."""

    def within(self, case: str) -> None:
        """Set the case that is being read, because some mistakes occur only in some cases."""
        self._case = case
        self._cases.add(case)

    def add(self, place: Place, text: str) -> None:
        """Record a mistake; one inherited by several cases is reported once."""
        self._found.setdefault((place, text), {})[self._case] = None
        self.count += 1
        if len(self._found) > _MOST:
            self.raise_any()

    def refuse(self, text: str) -> NoReturn:
        """Raise ``ScenarioError`` at once: the rest of the file is not read."""
        raise ScenarioError(f"{self._file}: {text}")

    def raise_any(self) -> None:
        """Raise one ``ScenarioError`` with every mistake, in the order of the file."""
        if not self._found:
            return
        lines = locate(self._text)
        found = sorted(
            ((_line(lines, place), place, text) for place, text in self._found),
            key=lambda each: each[0],
        )
        texts = [self._line(*each) for each in found[:_SHOWN]]
        if len(found) > _SHOWN:
            rest = "more" if len(found) > _MOST else f"{len(found) - _SHOWN} more"
            texts.append(f"{self._file}: … and {rest}")
        if len(found) > 1:
            count = f"more than {_MOST}" if len(found) > _MOST else len(found)
            texts.insert(0, f"{self._file}: {count} mistakes")
        raise ScenarioError(*texts)

    def _line(self, line: int, place: Place, text: str) -> str:
        start = f"{self._file}:{line}:" if line else f"{self._file}:"
        where = f"{spell(place)}: " if place else ""
        return f"{start} {where}{text}{self._only_in(place, text)}"

    def _only_in(self, place: Place, text: str) -> str:
        """Return the cases with a mistake in the common part, unless all have it."""
        cases = list(self._found[place, text])
        if len(cases) == len(self._cases) or not cases[0] or place[:1] in (("case",), ("matrix",)):
            return ""
        more = f" and {len(cases) - 1} more" if len(cases) > 1 else ""
        return f" (in {quote(cases[0])}{more})"


def _line(lines: dict[Place, int], place: Place) -> int:
    """Return the line of a place in the file; 0 for the command line."""
    return 0 if place and isinstance(place[0], SetPath) else nearest(lines, place)


def spell(place: Place) -> str:
    """Return a place as text: ``case[1].links."r1->r2".rate``."""
    if place and isinstance(place[0], SetPath):
        inner = f": {spell(place[1:])}" if place[1:] else ""
        return f"--set {quote(str(place[0]))[1:-1]}{inner}"
    words = ""
    for part in place:
        if isinstance(part, int):
            words += f"[{part}]"
        else:
            words += ("." if words else "") + _key(part)
    return words


def _key(part: str) -> str:
    if _BARE_KEY.fullmatch(part):
        return part
    # A path within a path has quotes of its own.
    return f"'{quote(part)[1:-1]}'" if '"' in part and "'" not in part else quote(part)

"""A scenario file as text: bounded, parsed, and its mistakes reported by line."""

from __future__ import annotations

import re
import tomllib
from typing import Any, NoReturn, TypeAlias

from ccplay.errors import ScenarioError
from ccplay.model.quantities import quote
from ccplay.visible import control_in

# --- line numbers of keys and values in a TOML file, which tomllib does not provide ---------------
# The text must be valid TOML, so that only the end of each value has to be found.

_SPACE = re.compile(r"(?:[ \t\r\n]++|#[^\n]*+)*+")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(
    r'"""(?:[^"\\]++|\\.|"(?!""))*+"{3,5}'
    r"|'''(?:[^']++|'(?!''))*+'{3,5}"
    r'|"(?:[^"\\]++|\\.)*+"'
    r"|'[^']*+'",
    re.DOTALL,
)
# A date and its time may be one space apart.
_SCALAR = re.compile(r"\d{4}-\d\d-\d\d \d\d:[^\s,\]}#]*|[^\s,\]}#]+")

Place: TypeAlias = tuple[str | int, ...]
"""Keys and indexes that lead to a value: ``("timeline", 2, "cc")``."""


def nearest(lines: dict[Place, int], place: Place) -> int:
    """Return the line of ``place`` among located places, or of its nearest parent."""
    while place and place not in lines:
        place = place[:-1]
    return lines.get(place, 1)


def locate(text: str) -> dict[Place, int]:
    """Return the line of every key and value of a valid TOML document."""
    return _Scanner(text).document()


def _unquoted(key: str) -> str:
    """Return the value of a quoted key."""
    if key[0] == "'" or "\\" not in key:
        return key[1:-1]
    return str(tomllib.loads(f"key = {key}")["key"])


class _Scanner:
    """A position that moves forward in the text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._counted = 0
        self._line = 1
        self._lines: dict[Place, int] = {}
        self._array_sizes: dict[Place, int] = {}

    def document(self) -> dict[Place, int]:
        table: Place = ()
        while self._skip_space():
            if self._skip_token("[["):
                table = self._header(self._key())
                size = self._array_sizes.get(table, 0)
                self._array_sizes[table] = size + 1
                self._note(table)
                table = (*table, size)
                self._note(table)
                self._skip_token("]]")
            elif self._skip_token("["):
                table = self._header(self._key())
                if size := self._array_sizes.get(table, 0):
                    table = (*table, size - 1)
                self._note(table)
                self._skip_token("]")
            else:
                self._pair(table)
        return self._lines

    def _header(self, keys: list[str]) -> Place:
        """Return the path of a header; an array on the path stands for its last table."""
        place: Place = ()
        for key in keys:
            if size := self._array_sizes.get(place, 0):
                place = (*place, size - 1)
            place = (*place, key)
            self._note(place)
        return place

    def _pair(self, table: Place) -> None:
        place = table
        for key in self._key():
            place = (*place, key)
            self._note(place)
        self._skip_token("=")
        self._value(place)

    def _key(self) -> list[str]:
        """Read a dotted key."""
        keys = []
        while True:
            self._skip_space()
            if match := _STRING.match(self._text, self._position):
                keys.append(_unquoted(match[0]))
            else:
                match = _BARE_KEY.match(self._text, self._position)
                keys.append(match[0] if match else "")
            self._position = match.end() if match else self._position + 1
            self._skip_space()
            if not self._skip_token("."):
                return keys

    def _value(self, place: Place) -> None:
        self._skip_space()
        self._lines.setdefault(place, self._here())
        if self._skip_token("["):
            index = 0
            while self._skip_space() and not self._skip_token("]"):
                self._value((*place, index))
                index += 1
                self._skip_space()
                self._skip_token(",")
        elif self._skip_token("{"):
            while self._skip_space() and not self._skip_token("}"):
                self._pair(place)
                self._skip_space()
                self._skip_token(",")
        else:
            match = _STRING.match(self._text, self._position) or _SCALAR.match(
                self._text, self._position
            )
            self._position = match.end() if match else self._position + 1

    def _note(self, place: Place) -> None:
        self._lines.setdefault(place, self._here())

    def _here(self) -> int:
        self._line += self._text.count("\n", self._counted, self._position)
        self._counted = self._position
        return self._line

    def _skip_space(self) -> bool:
        """Go to the next token; return whether there is one."""
        if match := _SPACE.match(self._text, self._position):
            self._position = match.end()
        return self._position < len(self._text)

    def _skip_token(self, token: str) -> bool:
        found = self._text.startswith(token, self._position)
        self._position += len(token) * found
        return found


# --- the mistakes in a scenario file: collected with their places, and reported together ----------


class GivenPath(str):
    """The path of a ``--set`` as typed, used as the first part of its value's place."""

    __slots__ = ()


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
        found = []
        for place, text in self._found:
            # What the command line gives is in no line of the file.
            given = bool(place) and isinstance(place[0], GivenPath)
            found.append((0 if given else nearest(lines, place), place, text))
        found.sort(key=lambda each: each[0])
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


def spell(place: Place) -> str:
    """Return a place as text: ``case[1].links."r1->r2".rate``."""
    if place and isinstance(place[0], GivenPath):
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


# --- TOML from strangers: what would take long to read, or control a terminal, is refused ---------

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

    def __init__(self, character: str, place: Place = (), line: int = 0) -> None:
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


def _check(value: Any, place: Place) -> None:
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


def _check_text(text: str, place: Place) -> None:
    if character := control_in(text):
        raise ControlError(character, place)


def _check_comments(text: str) -> None:
    # What stands in no value may be shown too, as in the page that a student hands in.
    text = text.replace("\r\n", "\n")
    if control_in(text):
        for number, line in enumerate(text.split("\n"), 1):
            if character := control_in(line):
                raise ControlError(character, line=number)

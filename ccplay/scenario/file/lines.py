"""Line numbers of keys and values in a TOML file, which tomllib does not provide.

The text must be valid TOML, so that only the end of each value has to be found.
"""

from __future__ import annotations

import re
import tomllib

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

_Place = tuple[str | int, ...]


def line_of(text: str, place: _Place) -> int:
    """Return the line, from 1, of ``place``, or of its nearest parent."""
    return nearest(locate(text), place)


def nearest(lines: dict[_Place, int], place: _Place) -> int:
    """Return the line of ``place`` among located places, or of its nearest parent."""
    while place and place not in lines:
        place = place[:-1]
    return lines.get(place, 1)


def locate(text: str) -> dict[_Place, int]:
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
        self._lines: dict[_Place, int] = {}
        self._array_sizes: dict[_Place, int] = {}

    def document(self) -> dict[_Place, int]:
        table: _Place = ()
        while self._skip_space():
            if self._take("[["):
                table = self._header(self._key())
                size = self._array_sizes.get(table, 0)
                self._array_sizes[table] = size + 1
                self._note(table)
                table = (*table, size)
                self._note(table)
                self._take("]]")
            elif self._take("["):
                table = self._header(self._key())
                if size := self._array_sizes.get(table, 0):
                    table = (*table, size - 1)
                self._note(table)
                self._take("]")
            else:
                self._pair(table)
        return self._lines

    def _header(self, keys: list[str]) -> _Place:
        """Return the path of a header; an array on the path stands for its last table."""
        place: _Place = ()
        for key in keys:
            if size := self._array_sizes.get(place, 0):
                place = (*place, size - 1)
            place = (*place, key)
            self._note(place)
        return place

    def _pair(self, table: _Place) -> None:
        place = table
        for key in self._key():
            place = (*place, key)
            self._note(place)
        self._take("=")
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
            if not self._take("."):
                return keys

    def _value(self, place: _Place) -> None:
        self._skip_space()
        self._lines.setdefault(place, self._here())
        if self._take("["):
            index = 0
            while self._skip_space() and not self._take("]"):
                self._value((*place, index))
                index += 1
                self._skip_space()
                self._take(",")
        elif self._take("{"):
            while self._skip_space() and not self._take("}"):
                self._pair(place)
                self._skip_space()
                self._take(",")
        else:
            match = _STRING.match(self._text, self._position) or _SCALAR.match(
                self._text, self._position
            )
            self._position = match.end() if match else self._position + 1

    def _note(self, place: _Place) -> None:
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

    def _take(self, token: str) -> bool:
        found = self._text.startswith(token, self._position)
        self._position += len(token) * found
        return found

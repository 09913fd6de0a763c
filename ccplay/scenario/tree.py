"""The values of a scenario file with their places, and settings that replace some of them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import msgspec

from ccplay.model.quantities import MisfitError, did_you_mean, nearest, quote
from ccplay.scenario import document
from ccplay.scenario.document import DEEPEST, GivenPath, Mistakes, Place, spell
from ccplay.visible import control_in

# --- paths into a scenario file as typed by people: ``links."r->h2".delay``, ``timeline.0.cc`` ----

KeyPath: TypeAlias = tuple[str, ...]
"""Keys from the outermost table inwards; members of lists are numbers."""

NOWHERE: KeyPath = ()

# Looser than TOML, whose bare keys have no arrows, to save quoting in a shell.
_PART = re.compile(r"""\s*("(?:[^"\\]|\\.)*"|'[^']*'|[^\s.\[\]"'=]+)\s*""")
_NEXT = re.compile(r"\.|(?=\[)")
_INDEX = re.compile(r"\[\s*([0-9]+)\s*\]\s*")


def read_path(value: Any) -> KeyPath:
    """Read a path; ``timeline[0]`` is the same as ``timeline.0``. Raises ``MisfitError``."""
    if isinstance(value, str):
        path, end = _scan(value)
        if path and end == len(value) and len(path) <= DEEPEST:
            return path
    raise MisfitError(f'{quote(value)} is not a path such as "links.bottleneck.queue.limit"')


def split_setting(text: str) -> tuple[str, KeyPath, str]:
    """Split ``PATH=VALUE`` into the path as typed, the path, and the value's text.

    Raises ``MisfitError``.
    """
    path, end = _scan(text)
    if not path or len(path) > DEEPEST or text[end : end + 1] != "=":
        example = 'such as links.bottleneck.rate="5 Mbit/s"'
        raise MisfitError(f"{quote(text)} is not PATH=VALUE, {example}")
    return text[:end].strip(), path, text[end + 1 :].strip()


def _scan(text: str) -> tuple[KeyPath, int]:
    """Return the path at the beginning of a text, and its end."""
    parts: list[str] = []
    end = 0
    while True:
        if match := _INDEX.match(text, end) if parts else None:
            parts.append(match[1])
        elif match := _PART.match(text, end):
            parts.append(_unquoted(match[1]))
        else:
            return (), end
        end = match.end()
        if (dot := _NEXT.match(text, end)) is None:
            return tuple(parts), end
        end = dot.end()


def _unquoted(part: str) -> str:
    if part[0] not in "\"'":
        return part
    try:
        return str(tomllib.loads(f"part = {part}")["part"])
    except tomllib.TOMLDecodeError:
        raise MisfitError(f"{quote(part)} is not a quoted string of TOML") from None


# --- the values of a file with their places; the table of a case is merged over the common one ----

T = TypeVar("T")

MOST_READ = 250_000
"""Largest number of keys and values in all cases together: a small file can multiply them."""


class Placed(msgspec.Struct, frozen=True):
    """A value and its place; a table is a dict of nodes, an array a list of nodes."""

    place: Place
    value: Any

    def at(self, *keys: str) -> Place:
        """Return the place of a value within a table, or of where it would be."""
        node = self
        for number, key in enumerate(keys):
            if not isinstance(node.value, dict) or key not in node.value:
                return (*node.place, *keys[number:])
            node = node.value[key]
        return node.place


def locate(value: Any, place: Place = ()) -> Placed:
    """Return the output of tomllib as nodes with places."""
    if isinstance(value, dict):
        return Placed(place, {key: locate(each, (*place, key)) for key, each in value.items()})
    if isinstance(value, list):
        return Placed(place, [locate(each, (*place, i)) for i, each in enumerate(value)])
    return Placed(place, value)


def overlay(below: Placed, above: Placed) -> Placed:
    """Return ``below`` overridden by ``above``, table by table.

    A table with a ``kind`` replaces the other one, because the limit of a pfifo is not a bfifo's.
    """
    if not (isinstance(below.value, dict) and isinstance(above.value, dict)):
        return above
    if "kind" in above.value and "kind" in below.value:
        return above
    merged = dict(below.value)
    for key, node in above.value.items():
        merged[key] = overlay(merged[key], node) if key in merged else node
    return Placed(above.place, merged)


def _merge(
    below: Placed, path: KeyPath, above: Placed, at: Place, spend: Callable[[int], None]
) -> Placed:
    if not path:
        return overlay(below, above)
    key, rest = path[0], path[1:]
    if isinstance(below.value, list | dict):
        spend(len(below.value) // 16)
    if isinstance(below.value, list):
        if not key.isdecimal() or len(key) > 9 or int(key) >= len(below.value):
            here = f"{spell(below.place)}, which has {len(below.value)} (counted from 0)"
            raise MisfitError(f"there is no {quote(key)} in {here}")
        members = list(below.value)
        members[int(key)] = _merge(members[int(key)], rest, above, at, spend)
        return Placed(below.place, members)
    if not isinstance(below.value, dict):
        raise MisfitError(
            f"there is no {quote(key)} in {quote(plain(below))}, which is not a table"
        )
    table = dict(below.value)
    if key in table:
        table[key] = _merge(table[key], rest, above, at, spend)
    else:
        for missing in reversed(rest):
            above = Placed(at, {missing: above})
        table[key] = above
    return Placed(below.place, table)


class Reader:
    """Reads nodes; a wrong value becomes a mistake and is replaced by a default.

    Raises ``ScenarioError`` once it has read more than ``MOST_READ``.
    """

    def __init__(self, mistakes: Mistakes, folder: Path | None = None) -> None:
        self.mistakes = mistakes
        self.folder = folder
        """Folder of the scenario, whose files it may name; None if it is in none."""
        self.files: dict[str, str] = {}
        """Text of each file beside the scenario that was read, by its name there."""
        self._left = MOST_READ

    def spend(self, values: int = 1) -> None:
        """Count values that were read. Raises ``ScenarioError`` if there are too many."""
        self._left -= values
        if self._left < 0:
            text = f"more than {MOST_READ:,} keys and values, all cases and points counted"
            self.mistakes.refuse(text)

    def merge(self, below: Placed, path: KeyPath, above: Placed, at: Place) -> Placed:
        """Return ``below`` with ``above`` merged over the value at ``path``.

        Missing tables on the path are created with the place ``at``. A path beyond the members of a
        list is a mistake.
        """
        self.spend()
        try:
            return _merge(below, path, above, at, self.spend)
        except MisfitError as error:
            self.mistakes.add(at, str(error))
            return below

    def table(self, node: Placed | None, known: Iterable[str] | None = None) -> dict[str, Placed]:
        """Return the entries of a table; keys that are not ``known`` are mistakes."""
        if node is None:
            return {}
        if not isinstance(node.value, dict):
            self.mistakes.add(node.place, f"must be a table, not {quote(self._plain(node))}")
            return {}
        self.spend(1 + len(node.value))
        table = dict(node.value)
        if known is None:
            return table
        known = tuple(known)
        for key in [key for key in table if key not in known]:
            each = table.pop(key)
            # A value set by a path has another place, which does not show the key.
            there = "" if each.place[-1:] == (key,) else key
            self.mistakes.add(each.place, unknown_key(key, known, there))
            # Else the key that was meant would be reported as missing.
            if meant := nearest(key, known):
                table.setdefault(meant, each)
        return table

    def members(self, node: Placed | None, of: str = "tables") -> list[Placed]:
        """Return the members of an array of tables or other values."""
        if node is None:
            return []
        if not isinstance(node.value, list):
            text = f"must be a list of {of}, not {quote(self._plain(node))}"
            self.mistakes.add(node.place, text)
            return []
        self.spend(1 + len(node.value))
        return list(node.value)

    def value(self, node: Placed | None, read: Callable[[Any], T], default: T) -> T:
        """Return the result of ``read`` for a value; its ``ValueError`` becomes a mistake."""
        if node is None:
            return default
        try:
            return read(self._plain(node))
        except (ValueError, OverflowError) as error:
            self.mistakes.add(node.place, str(error))
            return default

    def _plain(self, node: Placed) -> Any:
        """Return a value without places; its size is counted."""
        self.spend(_size(node))
        return plain(node)


def unknown_key(key: str, known: Iterable[str], quoted: str = "") -> str:
    """Record an unknown key; the message has its name if its place does not show it."""
    text = f"unknown key{f' {quote(quoted)}' if quoted else ''}{did_you_mean(key, known)}"
    if key in ("timeline", "case"):
        text += "; in TOML everything after a [table] belongs to it: move it above the first one"
    return text


def _size(node: Placed) -> int:
    """Return the number of values within a value, and the length of their texts."""
    match node.value:
        case dict():
            return 1 + sum(map(_size, node.value.values()))
        case list():
            return 1 + sum(map(_size, node.value))
        case str():
            return 1 + (len(node.value) >> 6)
    return 1


def plain(node: Placed) -> Any:
    """Return a value without places."""
    if isinstance(node.value, dict):
        return {key: plain(each) for key, each in node.value.items()}
    if isinstance(node.value, list):
        return [plain(each) for each in node.value]
    return node.value


# --- older names of keys, which are read as if they were today's names ----------------------------

TODAYS = {"figures": "metrics", "figure": "metric"}
"""Today's names by older ones, which stay valid."""

_OF_NAMES = ("hosts", "links", "matrix", "measures")
"""Tables whose keys are names chosen by the user."""


def use_todays_keys(node: Placed, mistakes: Mistakes, *, names: bool = False) -> Placed:
    """Return a part of a file with today's names of keys; values keep their places.

    ``names`` is whether its keys are the user's. A key under both names is a mistake.
    """
    if isinstance(node.value, list):
        return Placed(node.place, [use_todays_keys(each, mistakes) for each in node.value])
    if not isinstance(node.value, dict):
        return node
    table: dict[str, Placed] = {}
    for key, each in node.value.items():
        todays = key if names or key not in TODAYS else TODAYS[key]
        if todays != key and todays in node.value:
            mistakes.add(
                each.place, f"the older name of {todays}, which is here too: keep one of them"
            )
            continue
        table[todays] = use_todays_keys(each, mistakes, names=not names and key in _OF_NAMES)
    return Placed(node.place, table)


def use_todays_path(path: KeyPath) -> tuple[KeyPath, bool]:
    """Return a path with today's names of keys, and whether the keys below it are the user's."""
    keys: list[str] = []
    names = False
    for key in path:
        keys.append(key if names else TODAYS.get(key, key))
        names = not names and key in _OF_NAMES
    return tuple(keys), names


# --- settings of the command line: ``--set links.bottleneck.rate="5 Mbit/s"`` ---------------------

MOST_SETTINGS = 1000
_OPENS = ("[", "{", '"', "'")


class GivenSetting(msgspec.Struct, frozen=True):
    """A value with its path, and its name in messages."""

    path: KeyPath
    value: Placed

    @property
    def place(self) -> Place:
        """Place of the value, which is not in the file."""
        return self.value.place


def read_settings(settings: Sequence[str], mistakes: Mistakes) -> list[GivenSetting]:
    """Read the arguments of ``--set``, each ``PATH=VALUE``."""
    read: list[GivenSetting] = []
    if len(settings) > MOST_SETTINGS:
        mistakes.add((GivenPath("PATH=VALUE"),), f"is given more than {MOST_SETTINGS} times")
        return read
    for text in settings:
        try:
            read.append(_setting(text, mistakes))
        except MisfitError as error:
            mistakes.add((GivenPath(text.partition("=")[0].strip()),), str(error))
    return read


def apply_settings(below: Placed, settings: Iterable[GivenSetting], reader: Reader) -> Placed:
    """Return a case with the settings merged into it; later ones override earlier ones."""
    for setting in settings:
        below = reader.merge(below, setting.path, setting.value, setting.place)
    return below


def _setting(text: str, mistakes: Mistakes) -> GivenSetting:
    # Arguments need not be text: Python keeps undecodable bytes as lone surrogates.
    if not text.isascii() and any("\ud800" <= each <= "\udfff" for each in text):
        raise MisfitError(f"{quote(text)} is not UTF-8 text")
    written, path, value = split_setting(text)
    if path[0] == "case":
        raise MisfitError("a setting applies to every case; --case NAME selects some")
    path, names = use_todays_path(path)
    found = locate(_value(value), (GivenPath(written),))
    return GivenSetting(path, use_todays_keys(found, mistakes, names=names))


def _value(text: str) -> Any:
    """Read a value as TOML, else as plain text, which saves a second pair of quotes."""
    if character := control_in(text):
        raise MisfitError(f"{quote(text)} {document.ControlError(character)}")
    try:
        table = document.loads(f"value = {text}")
    except (document.TooMuchError, document.ControlError) as error:
        raise MisfitError(str(error)) from None
    except ValueError as error:
        if not text.startswith(_OPENS):
            return text
        raise MisfitError(f"{quote(text)} is not TOML: {error}") from None
    # A line break would let more than one value in.
    return table["value"] if len(table) == 1 and "\n" not in text else text

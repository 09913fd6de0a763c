"""The values of a file with their places; the table of a case is merged over the common one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import msgspec

from ccplay.model.quoting import MisfitError, did_you_mean, quote
from ccplay.scenario.file.mistakes import Mistakes, Place, spell
from ccplay.scenario.file.paths import KeyPath

T = TypeVar("T")

MOST_READ = 250_000
"""Largest number of keys and values in all cases together: a small file can multiply them."""


class Node(msgspec.Struct, frozen=True):
    """A value and its place; a table is a dict of nodes, an array a list of nodes."""

    place: Place
    value: Any


def grow(value: Any, place: Place = ()) -> Node:
    """Return the output of tomllib as nodes with places."""
    if isinstance(value, dict):
        return Node(place, {key: grow(each, (*place, key)) for key, each in value.items()})
    if isinstance(value, list):
        return Node(place, [grow(each, (*place, i)) for i, each in enumerate(value)])
    return Node(place, value)


def overlay(below: Node, above: Node) -> Node:
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
    return Node(above.place, merged)


def _graft(
    below: Node, path: KeyPath, above: Node, at: Place, spend: Callable[[int], None]
) -> Node:
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
        members[int(key)] = _graft(members[int(key)], rest, above, at, spend)
        return Node(below.place, members)
    if not isinstance(below.value, dict):
        raise MisfitError(
            f"there is no {quote(key)} in {quote(plain(below))}, which is not a table"
        )
    table = dict(below.value)
    if key in table:
        table[key] = _graft(table[key], rest, above, at, spend)
    else:
        table[key] = _planted(rest, above, at)
    return Node(below.place, table)


def _planted(path: KeyPath, above: Node, at: Place) -> Node:
    for key in reversed(path):
        above = Node(at, {key: above})
    return above


class Reader:
    """Reads nodes; a wrong value becomes a mistake and is replaced by a default.

    Raises ``ScenarioError`` once it has read more than ``MOST_READ``.
    """

    def __init__(self, mistakes: Mistakes) -> None:
        self.mistakes = mistakes
        self._left = MOST_READ

    def spend(self, values: int = 1) -> None:
        """Count values that were read. Raises ``ScenarioError`` if there are too many."""
        self._left -= values
        if self._left < 0:
            text = f"more than {MOST_READ:,} keys and values, all cases and points counted"
            self.mistakes.refuse(text)

    def graft(self, below: Node, path: KeyPath, above: Node, at: Place) -> Node:
        """Return ``below`` with ``above`` merged over the value at ``path``.

        Missing tables on the path are created with the place ``at``. A path beyond the members of a
        list is a mistake.
        """
        self.spend()
        try:
            return _graft(below, path, above, at, self.spend)
        except MisfitError as error:
            self.mistakes.add(at, str(error))
            return below

    def table(self, node: Node | None, known: Iterable[str] | None = None) -> dict[str, Node]:
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
        return table

    def members(self, node: Node | None, of: str = "tables") -> list[Node]:
        """Return the members of an array of tables or other values."""
        if node is None:
            return []
        if not isinstance(node.value, list):
            text = f"must be a list of {of}, not {quote(self._plain(node))}"
            self.mistakes.add(node.place, text)
            return []
        self.spend(1 + len(node.value))
        return list(node.value)

    def value(self, node: Node | None, read: Callable[[Any], T], default: T) -> T:
        """Return the result of ``read`` for a value; its ``ValueError`` becomes a mistake."""
        if node is None:
            return default
        try:
            return read(self._plain(node))
        except (ValueError, OverflowError) as error:
            self.mistakes.add(node.place, str(error))
            return default

    def _plain(self, node: Node) -> Any:
        """Return a value without places; its size is counted."""
        self.spend(_size(node))
        return plain(node)


def unknown_key(key: str, known: Iterable[str], quoted: str = "") -> str:
    """Record an unknown key; the message has its name if its place does not show it."""
    text = f"unknown key{f' {quote(quoted)}' if quoted else ''}{did_you_mean(key, known)}"
    if key in ("timeline", "case"):
        text += "; in TOML everything after a [table] belongs to it: move it above the first one"
    return text


def _size(node: Node) -> int:
    """Return the number of values within a value, and the length of their texts."""
    match node.value:
        case dict():
            return 1 + sum(map(_size, node.value.values()))
        case list():
            return 1 + sum(map(_size, node.value))
        case str():
            return 1 + (len(node.value) >> 6)
    return 1


def plain(node: Node) -> Any:
    """Return a value without places."""
    if isinstance(node.value, dict):
        return {key: plain(each) for key, each in node.value.items()}
    if isinstance(node.value, list):
        return [plain(each) for each in node.value]
    return node.value

"""The values of a file with their places, and how a table of a case lies over the common one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from ccplay.scenario.mistakes import Mistakes, Place, did_you_mean, quote

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Node:
    """A value and where it stands; a table is a dict of nodes, an array a list of nodes."""

    place: Place
    value: Any


def grow(value: Any, place: Place = ()) -> Node:
    """Return what tomllib read, with places."""
    if isinstance(value, dict):
        return Node(place, {key: grow(each, (*place, key)) for key, each in value.items()})
    if isinstance(value, list):
        return Node(place, [grow(each, (*place, i)) for i, each in enumerate(value)])
    return Node(place, value)


def overlay(below: Node, above: Node) -> Node:
    """Return ``below`` with what ``above`` says instead, table by table.

    A table that names a ``kind`` starts anew: the limit of a pfifo is none of a bfifo's.
    """
    if not (isinstance(below.value, dict) and isinstance(above.value, dict)):
        return above
    if "kind" in above.value and "kind" in below.value:
        return above
    merged = dict(below.value)
    for key, node in above.value.items():
        merged[key] = overlay(merged[key], node) if key in merged else node
    return Node(above.place, merged)


class Reader:
    """Reads nodes; what does not fit becomes a mistake and a default."""

    def __init__(self, mistakes: Mistakes) -> None:
        self.mistakes = mistakes

    def table(self, node: Node | None, known: Iterable[str] | None = None) -> dict[str, Node]:
        """Return the entries of a table; keys that are not ``known`` are mistakes."""
        if node is None:
            return {}
        if not isinstance(node.value, dict):
            self.mistakes.add(node.place, f"must be a table, not {quote(plain(node))}")
            return {}
        if known is None:
            return dict(node.value)
        known = list(known)
        for key, each in node.value.items():
            if key not in known:
                self.mistakes.add(each.place, unknown_key(key, known))
        return {key: each for key, each in node.value.items() if key in known}

    def members(self, node: Node | None, of: str = "tables") -> list[Node]:
        """Return the members of an array of tables, or of what else it should hold."""
        if node is None:
            return []
        if not isinstance(node.value, list):
            self.mistakes.add(node.place, f"must be a list of {of}, not {quote(plain(node))}")
            return []
        return list(node.value)

    def value(self, node: Node | None, read: Callable[[Any], T], default: T) -> T:
        """Return what ``read`` makes of a value; its ``ValueError`` becomes a mistake."""
        if node is None:
            return default
        try:
            return read(plain(node))
        except (ValueError, OverflowError) as error:
            self.mistakes.add(node.place, str(error))
            return default


def unknown_key(key: str, known: Iterable[str]) -> str:
    """Say that a key is not known here."""
    text = f"unknown key{did_you_mean(key, known)}"
    if key in ("timeline", "case"):
        text += "; in TOML what follows a [table] belongs to it: put it above the first one"
    return text


def plain(node: Node) -> Any:
    """Return the value without its places."""
    if isinstance(node.value, dict):
        return {key: plain(each) for key, each in node.value.items()}
    if isinstance(node.value, list):
        return [plain(each) for each in node.value]
    return node.value

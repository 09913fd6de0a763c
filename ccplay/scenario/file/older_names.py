"""Older names of keys, which are read as if they were today's names."""

from __future__ import annotations

from ccplay.scenario.file.mistakes import Mistakes
from ccplay.scenario.file.paths import KeyPath
from ccplay.scenario.file.tree import Node

TODAYS = {"figures": "metrics", "figure": "metric"}
"""Today's names by older ones, which stay valid."""

_OF_NAMES = ("hosts", "links", "matrix", "measures")
"""Tables whose keys are names chosen by the user."""


def renewed(node: Node, mistakes: Mistakes, *, names: bool = False) -> Node:
    """Return a part of a file with today's names of keys; values keep their places.

    ``names`` is whether its keys are the user's. A key under both names is a mistake.
    """
    if isinstance(node.value, list):
        return Node(node.place, [renewed(each, mistakes) for each in node.value])
    if not isinstance(node.value, dict):
        return node
    table: dict[str, Node] = {}
    for key, each in node.value.items():
        todays = key if names or key not in TODAYS else TODAYS[key]
        if todays != key and todays in node.value:
            mistakes.add(
                each.place, f"the older name of {todays}, which is here too: keep one of them"
            )
            continue
        table[todays] = renewed(each, mistakes, names=not names and key in _OF_NAMES)
    return Node(node.place, table)


def renewed_path(path: KeyPath) -> tuple[KeyPath, bool]:
    """Return a path with today's names of keys, and whether the keys below it are the user's."""
    keys: list[str] = []
    names = False
    for key in path:
        keys.append(key if names else TODAYS.get(key, key))
        names = not names and key in _OF_NAMES
    return tuple(keys), names

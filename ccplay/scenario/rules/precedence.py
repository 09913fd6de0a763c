"""Precedence between the names of one link: a later entry must not undo a higher one before it."""

from __future__ import annotations

from collections.abc import Iterator

from ccplay.model.network import Network
from ccplay.model.quoting import quote
from ccplay.scenario.fields.network import directions
from ccplay.scenario.file.mistakes import Place, SetPath
from ccplay.scenario.file.tree import Node, Reader


def check_overruled(links: Node | None, network: Network, reader: Reader) -> None:
    """Refuse a case, setting or matrix whose value is undone by a lower one further down.

    ``links.bottleneck.delay`` would silently undo a matrix over ``links."r->h2".delay``.
    """
    below: dict[str, list[tuple[str, Node]]] = {}
    for link, node in reversed(reader.table(links).items()):
        leading = directions(network, link)
        for later, other in below.get(next(iter(leading), ""), ()):
            if not set(leading).issubset(directions(network, later)):
                continue
            for key in sorted(_keys(node) & _keys(other)):
                place = max(_places(node.value[key]), key=_layer)
                if _layer(place) > max(map(_layer, _places(other.value[key]))):
                    text = f"links.{quote(later)} further down sets {key} again for this link"
                    reader.mistakes.add(place, f"{text}: set it there, or move that entry above")
        for each in leading:
            below.setdefault(each, []).append((link, node))


def _keys(node: Node) -> set[str]:
    return set(node.value) if isinstance(node.value, dict) else set()


def _places(node: Node) -> Iterator[Place]:
    yield node.place
    inner = node.value.values() if isinstance(node.value, dict) else ()
    for each in inner:
        yield from _places(each)


def _layer(place: Place) -> int:
    """Return the rank of a value: the common part, its case, the command line, the matrix."""
    if place and isinstance(place[0], SetPath):
        return 2
    return {"case": 1, "matrix": 3}.get(str(place[0]), 0) if place else 0

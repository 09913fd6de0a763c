"""A network as a graph to draw: placed nodes, links with their settings, observed queues.

Any graph of hosts and routers works. If the routers form a chain, traffic runs from left to right;
else hosts are in the bottom row, and routers above by their distance from the next host.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ccplay.model.events import LinkChanged
from ccplay.model.layout import layout
from ccplay.model.network import Link, Network
from ccplay.model.wording import describe_link, describe_qdisc

MOST_NODES = 64
"""Number of nodes beyond which a drawing is illegible."""

_MOST_LABELS = 8
"""Number of links that are labelled; with more, the most common setting is given once, below."""


@dataclass(frozen=True, slots=True)
class Vertex:
    """A node; its place counts in steps to the right and down."""

    name: str
    router: bool
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Edge:
    """Both directions of a link, and their settings."""

    a: str
    b: str
    labels: tuple[str, ...]
    """One for both directions, or one each where they differ; none where the note has it."""
    queues: Mapping[str, str]
    """By the sending node the discipline where waiting packets are observed."""


@dataclass(frozen=True, slots=True)
class Graph:
    """A network, ready to draw."""

    vertices: list[Vertex]
    edges: list[Edge]
    note: str
    """Settings of all links without a label; empty for none."""


def graph(network: Network, links: Mapping[str, LinkChanged]) -> Graph | None:
    """Return a network as a graph; None for one that is too large, or none at all.

    ``links`` is what each direction does, by its name.
    """
    hosts = {node.name: node.role for node in network.nodes if node.role != "router"}
    names = list(dict.fromkeys(node.name for node in network.nodes))
    ways = [each for each in network.links if {each.src, each.dst} <= set(names)]
    if not 0 < len(names) <= MOST_NODES:
        return None
    places = layout(network).places
    edges = _edges(ways, network.bottlenecks, links, places)
    return Graph(
        [Vertex(name, name not in hosts, *places[name]) for name in names], *_summed_up(edges)
    )


# --- links ----------------------------------------------------------------------------------------


def _edges(
    ways: Sequence[Link],
    observed: Sequence[str],
    links: Mapping[str, LinkChanged],
    places: Mapping[str, tuple[float, float]],
) -> list[Edge]:
    pairs: dict[tuple[str, str], list[Link]] = {}
    for way in ways:
        a, b = sorted((way.src, way.dst), key=lambda name: places[name])
        pairs.setdefault((a, b), []).append(way)
    return [
        Edge(
            a,
            b,
            _labels(both, links, places),
            {w.src: _queue(w, links) for w in both if w.name in observed},
        )
        for (a, b), both in pairs.items()
    ]


def _labels(
    ways: Sequence[Link],
    links: Mapping[str, LinkChanged],
    places: Mapping[str, tuple[float, float]],
) -> tuple[str, ...]:
    said = [
        (_way(places[way.src], places[way.dst]) or f"{way.src} → {way.dst}:", way.name)
        for way in ways
        if way.name in links
    ]
    told = [(arrow, describe_link(links[name].setting)) for arrow, name in said]
    if len({text for _, text in told}) <= 1:
        return tuple({text for _, text in told if text})
    return tuple(f"{arrow} {text}" for arrow, text in told if text)


def _way(start: tuple[float, float], end: tuple[float, float]) -> str:
    """Return the arrow of a way to the right or left; empty for one that slants."""
    if start[1] != end[1]:
        return ""
    return "→" if start[0] < end[0] else "←"


def _queue(way: Link, links: Mapping[str, LinkChanged]) -> str:
    setting = links[way.name].setting if way.name in links else None
    return describe_qdisc(setting.qdisc) if setting and setting.qdisc else ""


def _summed_up(edges: list[Edge]) -> tuple[list[Edge], str]:
    """Take the label that most links share from them, where there are many, into a note."""
    if len(edges) <= _MOST_LABELS:
        return edges, ""
    plain = [each for each in edges if not each.queues]
    labels, _ = Counter(each.labels for each in plain or edges).most_common(1)[0]
    queues = Counter(text for each in edges for text in each.queues.values())
    # In a fabric every link has a queue: what most of them are is given once, too.
    alike = queues.most_common(1)[0][0] if queues.total() > _MOST_LABELS else None
    rest = [
        Edge(
            each.a,
            each.b,
            () if each.labels == labels else each.labels,
            {node: "" if text == alike else text for node, text in each.queues.items()},
        )
        for each in edges
    ]
    return rest, "; ".join(filter(None, [*labels, alike]))

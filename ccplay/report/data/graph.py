"""A network as a graph to draw: placed nodes, links with their settings, observed queues.

Any graph of hosts and routers works. If the routers form a chain, traffic runs from left to right;
else hosts are in the bottom row, and routers above by their distance from the next host.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ccplay.model.events import LinkChanged
from ccplay.model.network import Link, Network
from ccplay.model.wording import describe_link, describe_qdisc

MOST_NODES = 64
"""Number of nodes beyond which a drawing is illegible."""

_MOST_LABELS = 8
"""Number of links that are labelled; with more, the most common setting is given once, below."""
_SWEEPS = 8
"""Rounds of ordering a row; after some of them nothing moves any more."""

_Near = Mapping[str, Sequence[str]]
"""By node those that it has a link with."""


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
    """One for both directions, or one each if they differ; none if the note states it."""
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
    near = _neighbours(names, ways)
    chain = _chain([name for name in names if name not in hosts], near)
    places = _along(chain, hosts, near) if chain else _stacked(hosts, near)
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
    """Move the label that most links share into a note."""
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


# --- places ---------------------------------------------------------------------------------------


def _neighbours(names: Sequence[str], ways: Sequence[Link]) -> dict[str, list[str]]:
    near: dict[str, dict[str, None]] = {name: {} for name in names}
    for way in ways:
        near[way.src][way.dst] = near[way.dst][way.src] = None
    return {name: list(others) for name, others in near.items()}


def _chain(routers: Sequence[str], near: _Near) -> list[str]:
    """Return the routers from one end to the other; empty if they form no chain."""
    inner = {name: [each for each in near[name] if each in routers] for name in routers}
    ends = [name for name in routers if len(inner[name]) <= 1]
    if not ends or any(len(others) > 2 for others in inner.values()):
        return []
    found = [ends[0]]
    while further := [each for each in inner[found[-1]] if each not in found]:
        found.append(further[0])
    return found if len(found) == len(routers) else []


def _along(
    chain: Sequence[str], hosts: Mapping[str, str], near: _Near
) -> dict[str, tuple[float, float]]:
    """Put routers side by side, senders to the left of theirs, all other hosts to the right."""
    if any(hosts.get(each) == "sender" for each in near[chain[-1]]) and not any(
        hosts.get(each) == "sender" for each in near[chain[0]]
    ):
        chain = chain[::-1]
    places = {name: (float(number), 0.0) for number, name in enumerate(chain)}
    sides: dict[tuple[int, int], list[str]] = {}
    for host, role in hosts.items():
        at = next((chain.index(each) for each in near[host] if each in places), 0)
        sides.setdefault((at, -1 if role == "sender" else 1), []).append(host)
    for (at, side), members in sides.items():
        # Within the chain there is no room beside a router, but above and below it.
        ends = (side < 0 and at == 0) or (side > 0 and at == len(chain) - 1)
        for row, name in enumerate(members):
            y = row - (len(members) - 1) / 2 if ends else -side * (row + 1.5)
            places[name] = (at + (side if ends else side * 0.5), y)
    return places


def _stacked(hosts: Mapping[str, str], near: _Near) -> dict[str, tuple[float, float]]:
    """Put hosts into the bottom row, and routers above by their distance from the next host."""
    levels = dict.fromkeys(hosts, 0)
    queue = list(hosts)
    for name in queue:
        for other in near[name]:
            if other not in levels:
                levels[other] = levels[name] + 1
                queue.append(other)
    rows: list[list[str]] = [[] for _ in range(max(levels.values(), default=0) + 1)]
    for name in near:
        rows[levels.get(name, len(rows) - 1)].append(name)
    across = {name: _centred(index, row) for row in rows for index, name in enumerate(row)}
    for _ in range(_SWEEPS):
        for row in rows[1:]:
            row.sort(key=lambda name: _mean([across[each] for each in near[name]]))
            across |= {name: _centred(index, row) for index, name in enumerate(row)}
    widest = max(len(row) for row in rows)
    top = len(rows) - 1
    return {
        name: (across[name] * widest / max(len(row), 1), float(top - level))
        for level, row in enumerate(rows)
        for name in row
    }


def _centred(index: int, row: Sequence[str]) -> float:
    return index - (len(row) - 1) / 2


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0

"""Places a network's nodes in drawings, for screen and reports.

Any graph of hosts and routers works. If the routers form a chain, traffic runs from left to right.
A ring of routers with hosts becomes two rows with hosts outside. Otherwise hosts are in the bottom
row, and routers above by their distance from the nearest host.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ccplay.model.network import ROUTER, Link, Network

_SWEEPS = 8
"""Number of rounds that order a row; fewer are usually enough."""

_Near = Mapping[str, Sequence[str]]
"""Neighbours of each node."""


class Layout(msgspec.Struct, frozen=True):
    """The places of a network's nodes."""

    places: Mapping[str, tuple[float, float]]
    """Place of each node, in steps to the right and down."""
    tiers: Sequence[Sequence[str]]
    """Rows of nodes from the top, each from left to right; hosts are in the last row, and in a ring
    also in the first."""
    is_chain: bool
    """Whether the routers form a chain, along which ``places`` run from left to right."""


def layout(network: Network) -> Layout:
    """Return the places of a network's nodes."""
    hosts = {node.name: node.role for node in network.nodes if node.role != ROUTER}
    names = list(dict.fromkeys(node.name for node in network.nodes))
    near = _neighbours(names, _known(network, set(names)))
    chain = _chain([name for name in names if name not in hosts], near)
    ring = _ring([name for name in names if name not in hosts], near)
    tiers = _around(ring, hosts, near) if ring else _tiers(hosts, near)
    places = _along(chain, hosts, near) if chain else _stacked(tiers)
    return Layout(places, tiers, bool(chain))


def chained(network: Network) -> bool:
    """Return whether the routers of a network form a chain; a single router does."""
    names = [node.name for node in network.nodes]
    return bool(_chain(network.routers, _neighbours(names, _known(network, set(names)))))


def _known(network: Network, names: set[str]) -> list[Link]:
    """Return the links between known nodes; a recording from elsewhere may have others."""
    return [link for link in network.links if {link.src, link.dst} <= names]


def _neighbours(names: Sequence[str], ways: Sequence[Link]) -> dict[str, list[str]]:
    near: dict[str, dict[str, None]] = {name: {} for name in names}
    for way in ways:
        near[way.src][way.dst] = near[way.dst][way.src] = None
    return {name: list(others) for name, others in near.items()}


def _chain(routers: Sequence[str], near: _Near) -> list[str]:
    """Return the routers from one end to the other; empty if they do not form a chain."""
    inner = {name: [each for each in near[name] if each in routers] for name in routers}
    ends = [name for name in routers if len(inner[name]) <= 1]
    if not ends or any(len(others) > 2 for others in inner.values()):
        return []
    found = [ends[0]]
    while further := [each for each in inner[found[-1]] if each not in found]:
        found.append(further[0])
    return found if len(found) == len(routers) else []


def _ring(routers: Sequence[str], near: _Near) -> list[str]:
    """Return the routers of a ring in order; empty if they do not form one, or one has no hosts."""
    inner = {name: [each for each in near[name] if each in routers] for name in routers}
    if len(routers) < 3 or any(
        len(others) != 2 or len(near[name]) == 2 for name, others in inner.items()
    ):
        return []
    found = [routers[0]]
    while further := [each for each in inner[found[-1]] if each not in found]:
        found.append(further[0])
    return found if len(found) == len(routers) else []


def _around(ring: Sequence[str], hosts: Mapping[str, str], near: _Near) -> list[list[str]]:
    """Return the rows of a ring: its two halves, with their hosts above and below."""
    half = (len(ring) + 1) // 2
    rows = [list(ring[:half]), list(reversed(ring[half:]))]
    of = {router: [name for name in hosts if near[name][:1] == [router]] for router in ring}
    above, below = ([host for router in row for host in of[router]] for row in rows)
    placed = {*above, *below}
    return [above, *rows, [*below, *(name for name in hosts if name not in placed)]]


def _along(
    chain: Sequence[str], hosts: Mapping[str, str], near: _Near
) -> dict[str, tuple[float, float]]:
    """Place routers in a row, senders to the left of their router, other hosts to the right."""
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
        # Inside the chain there is room above and below a router only.
        ends = (side < 0 and at == 0) or (side > 0 and at == len(chain) - 1)
        for row, name in enumerate(members):
            y = row - (len(members) - 1) / 2 if ends else -side * (row + 1.5)
            places[name] = (at + (side if ends else side * 0.5), y)
    return places


def _tiers(hosts: Mapping[str, str], near: _Near) -> list[list[str]]:
    """Return rows of nodes from the top: routers by distance from the nearest host, then hosts.

    Each row is ordered so that few links cross.
    """
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
    # Put the hosts of one router side by side.
    order = {name: index for index, name in enumerate(near)}
    rows[0].sort(key=lambda name: min((order[each] for each in near[name]), default=0))
    across = {name: _centred(index, row) for row in rows for index, name in enumerate(row)}
    for _ in range(_SWEEPS):
        for row in rows[1:]:
            row.sort(key=lambda name: _mean([across[each] for each in near[name]]))
            across |= {name: _centred(index, row) for index, name in enumerate(row)}
    return rows[::-1]


def _stacked(tiers: Sequence[Sequence[str]]) -> dict[str, tuple[float, float]]:
    """Place rows of nodes one below the other, each spread over the width of the widest."""
    widest = max(len(row) for row in tiers)
    return {
        name: (_centred(index, row) * widest / max(len(row), 1), float(level))
        for level, row in enumerate(tiers)
        for index, name in enumerate(row)
    }


def _centred(index: int, row: Sequence[str]) -> float:
    return index - (len(row) - 1) / 2


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0

"""The layout of a drawn network: names of nodes, ends of links, dots of lines.

Tiers are rows, with hosts in the lowest; a ring's upper half is in the highest. A node sends on its
links at ports: those of links down are below its name, those of links up above it. Lines join
ports.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

import msgspec

from ccplay.model.layout import layout
from ccplay.model.network import Network

Cell: TypeAlias = tuple[int, int]
"""Column and row of a cell."""

_LEAST_BAND = 3
"""Smallest number of rows between two tiers: a row of ports at both ends, and one for lines."""

_BITS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""Bits of a braille cell's dots: two columns, each from top to bottom."""


class Port(msgspec.Struct, frozen=True):
    """The cell at which a node sends on a link."""

    link: str
    x: int
    y: int
    wide: bool
    """Whether the cell to the right of the port is free, too."""


class Strand(msgspec.Struct):
    """The line that draws a cable: the dots of each cell, for each weight of the line."""

    links: tuple[str, ...]
    """Names of the cable's links, one for each direction."""
    level: bool = False
    """Whether the line is horizontal and joins neighbours in one row."""
    sparse: dict[Cell, int] = msgspec.field(default_factory=dict)
    thin: dict[Cell, int] = msgspec.field(default_factory=dict)
    thick: dict[Cell, int] = msgspec.field(default_factory=dict)


class Geometry(msgspec.Struct, frozen=True):
    """The places of names, ports, lines and glyphs in a drawing."""

    names: Mapping[str, tuple[int, int]]
    """Column and row of the first letter of each node's name."""
    ports: Sequence[Port]
    strands: Sequence[Strand]
    glyphs: Mapping[str, int]
    """Row for the glyphs of each node's flows, above or below its name."""


def geometry(network: Network, width: int, height: int) -> Geometry | None:
    """Return the drawing of a network in ``width`` by ``height`` cells; None if it does not fit.

    Also return None if a link joins two nodes of a row, or two rows, that are not neighbours.
    """
    if not {end for link in network.links for end in (link.src, link.dst)} <= {
        node.name for node in network.nodes
    }:
        return None
    tiers = [list(row) for row in layout(network).tiers]
    hosts = set(network.hosts)
    bands, above = len(tiers) - 1, int(bool(hosts.intersection(tiers[0])))
    spare = height - len(tiers) - 1 - above
    if bands < 1 or spare < bands * _LEAST_BAND - 1 - above:
        return None
    centres = {
        name: (place + 0.5) * width / len(row) for row in tiers for place, name in enumerate(row)
    }
    if any(len(name) + 1 > width / len(row) for row in tiers for name in row):
        return None
    high = _bands(network, tiers, centres, spare)
    rows = [sum(high[:tier]) + tier + above for tier in range(len(tiers))]
    names = {
        name: (int(centres[name] - len(name) / 2), rows[tier])
        for tier, row in enumerate(tiers)
        for name in row
    }
    found = _Drawing(network, tiers, names, centres, width)
    if not found.draw():
        return None
    glyphs = {name: 0 if above and y == rows[0] else y + 1 for name, (_, y) in names.items()}
    return Geometry(names, found.ports, found.strands, glyphs)


def _bands(
    network: Network,
    tiers: Sequence[Sequence[str]],
    centres: Mapping[str, float],
    spare: int,
) -> list[int]:
    """Divide ``spare`` rows among the gaps between tiers; gaps with flat lines get more of them."""
    # Hosts have no row of ports, so a gap next to hosts needs one row less.
    hosts = set(network.hosts)
    high = [
        _LEAST_BAND - bool(hosts.intersection((*upper, *lower))) for upper, lower in pairwise(tiers)
    ]
    tier = {name: at for at, row in enumerate(tiers) for name in row}
    wide = [1.0] * len(high)
    for there, _ in network.cables:
        band = min(tier[there.src], tier[there.dst])
        if band < len(wide):
            wide[band] = max(wide[band], abs(centres[there.src] - centres[there.dst]))
    for _ in range(spare - sum(high)):
        flattest = max(range(len(high)), key=lambda band: wide[band] / high[band] ** 2)
        high[flattest] += 1
    return high


class _Drawing:
    """A drawing in progress: ports and lines are added to nodes whose places are known."""

    def __init__(
        self,
        network: Network,
        tiers: Sequence[Sequence[str]],
        names: Mapping[str, tuple[int, int]],
        centres: Mapping[str, float],
        width: int,
    ) -> None:
        self._network = network
        self._tier = {name: at for at, row in enumerate(tiers) for name in row}
        self._place = {name: at for row in tiers for at, name in enumerate(row)}
        self._room = {name: width / len(row) for row in tiers for name in row}
        self._names = names
        self._centres = centres
        self._hosts = set(network.hosts)
        self.ports: list[Port] = []
        self.strands: list[Strand] = []

    def draw(self) -> bool:
        """Place every port and draw every line; return whether all of them fit."""
        at: dict[tuple[str, str], Cell] = {}
        for node in self._names:
            for down in (True, False):
                if not self._place_ports(node, at, down=down):
                    return False
        return all(
            self._level(there.src, there.dst)
            if self._tier[there.src] == self._tier[there.dst]
            else self._slant(there.src, there.dst, at)
            for there, _ in self._network.cables
        )

    def _place_ports(self, node: str, at: dict[tuple[str, str], Cell], *, down: bool) -> bool:
        tier, (_, y) = self._tier[node], self._names[node]
        others = sorted(
            (
                link.dst
                for link in self._network.links
                if link.src == node and (self._tier[link.dst] - tier) * (1 if down else -1) > 0
            ),
            key=lambda other: self._centres[other],
        )
        if len(others) > self._room[node]:
            return False
        step = 2 if 2 * len(others) <= self._room[node] else 1
        first = self._centres[node] - step * len(others) / 2
        for number, other in enumerate(others):
            row = y if node in self._hosts else y + (1 if down else -1)
            cell = at[node, other] = (int(first + number * step), row)
            if node not in self._hosts:
                self.ports.append(Port(f"{node}->{other}", *cell, step > 1))
        return True

    def _slant(self, a: str, b: str, at: Mapping[tuple[str, str], Cell]) -> bool:
        """Draw a line between two tiers; return False if they are not neighbours."""
        if abs(self._tier[a] - self._tier[b]) != 1:
            return False
        high, low = sorted((a, b), key=lambda name: self._tier[name])
        (x, y), (u, v) = at[high, low], at[low, high]
        strand = Strand((f"{a}->{b}", f"{b}->{a}"))
        self.strands.append(strand)
        start, end = (2 * x + 1, 4 * (y + 1)), (2 * u + 1, 4 * v - 1)
        steps = max(abs(end[0] - start[0]), end[1] - start[1], 1)
        flat = abs(end[0] - start[0]) > end[1] - start[1]
        for step in range(steps + 1):
            dot = (
                round(start[0] + (end[0] - start[0]) * step / steps),
                round(start[1] + (end[1] - start[1]) * step / steps),
            )
            _put(strand.thin, dot)
            _put(strand.thick, dot)
            beside = (dot[0], min(dot[1] + 1, end[1])) if flat else (dot[0] - 1, dot[1])
            _put(strand.thick, beside)
            if step % 3 == 0:
                _put(strand.sparse, dot)
        return True

    def _level(self, a: str, b: str) -> bool:
        """Draw a line between neighbours in a row, with two ports; return whether it fits."""
        left, right = sorted((a, b), key=lambda name: self._place[name])
        if self._place[right] != self._place[left] + 1:
            return False
        start = self._names[left][0] + len(left) + 1
        end, y = self._names[right][0] - 2, self._names[left][1]
        if end - start < 3:
            return False
        strand = Strand((f"{a}->{b}", f"{b}->{a}"), level=True)
        strand.thin = {(x, y): 0 for x in range(start + 2, end - 1)}
        self.strands.append(strand)
        if left not in self._hosts:
            self.ports.append(Port(f"{left}->{right}", start, y, wide=True))
            self.ports.append(Port(f"{right}->{left}", end, y, wide=False))
        return True


def _put(cells: dict[Cell, int], dot: Cell) -> None:
    cell = (dot[0] // 2, dot[1] // 4)
    cells[cell] = cells.get(cell, 0) | _BITS[dot[0] % 2][dot[1] % 4]

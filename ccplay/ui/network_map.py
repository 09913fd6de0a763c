"""The network drawn large: tiers of nodes, how busy each link is, and where queues build.

::

     ● h1 → edge1 → agg2 → core4 → agg6 → edge5 → h9
         core1        core2        core3        core4
          ▁ ▇6          · ·          · ·         ▁ ·      traffic sent down: ▇ busy, 6/10 queued
          (lines: dotted if idle, thin, thick if busy or on the path above)
           ▃ ▁                                            traffic sent up
         agg1          agg2  …
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

import msgspec

from ccplay.model.layout import layout
from ccplay.model.network import Network
from ccplay.plots.levels import BUILDING, BUSY, IDLE, fill, utilisation
from ccplay.ui import network_panel
from ccplay.ui.cells import Row, Run, fit
from ccplay.ui.view import View

# --- the layout of a drawn network: names of nodes, ends of links, dots of lines ------------------
# Tiers are rows, with hosts in the lowest; a ring's upper half is in the highest. A node sends on
# its links at ports: those of links down are below its name, those of links up above it. Lines join
# ports.

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
    network: Network, tiers: Sequence[Sequence[str]], centres: Mapping[str, float], spare: int
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


# --- the network drawn large: tiers of nodes, how busy each link is, and where queues build -------

_SPAN_S = 1.0
"""Seconds over which the utilisation of a link is averaged."""

_LEVEL = {"sparse": "dotted", "thin": "horizontal", "thick": "bottleneck"}


class Drawing:
    """The drawing of a session's network, fitted to the size of its sheet."""

    def __init__(self) -> None:
        self._made: tuple[Network, int, int, Geometry | None] | None = None

    def rows(self, view: View, width: int, height: int) -> list[Row]:
        """Return the drawing, or the table of queues if the network can't be drawn well."""
        network = view.network
        if network is None or not network.senders:
            return []
        # The first row shows a path, the last one the legend.
        made = self._geometry(network, width, height - 2)
        if made is None:
            return network_panel.queue_rows(view, network, width, height)
        cells = _Cells(view, network, made, (width, height - 2))
        return [network_panel.path_title(view, width), *cells.rows(), _legend(view, width)]

    def _geometry(self, network: Network, width: int, height: int) -> Geometry | None:
        """Return the geometry, computed once per network and size; None if it does not fit."""
        made = self._made
        if made is None or made[0] is not network or made[1:3] != (width, height):
            made = self._made = (network, width, height, geometry(network, width, height))
        return made[3]


class _Cells:
    """The cells of a drawing at one moment."""

    def __init__(self, view: View, network: Network, made: Geometry, size: tuple[int, int]) -> None:
        self._view = view
        self._made = made
        self._width, self._height = size
        self._cells: dict[Cell, Run] = {}
        tick = view.tick
        start = view.t - _SPAN_S
        self._busy = {
            link: utilisation(view.state, link, start, view.t) or 0.0 for link in network.observed
        }
        self._queued = {
            link: fill(view.state, link, tick, tick + 1) or 0.0 for link in network.observed
        }
        flow = view.foremost
        crossed = network_panel.links_of(view, network, flow) if flow else ()
        self._path = {link.name for link in network.links if link.name in crossed}
        self._path_ink = f"bold {view.flow_ink(flow.name)}" if flow else ""
        self._on_path = {
            node for name in self._path for node in (network.link(name).src, network.link(name).dst)
        }
        self._bits: dict[Cell, int] = {}

    def rows(self) -> list[Row]:
        """Draw lines, ports and names, and return the rows."""
        lit = [each for each in self._made.strands if self._path.intersection(each.links)]
        rest = [each for each in self._made.strands if not self._path.intersection(each.links)]
        for strand in [*sorted(rest, key=self._load), *lit]:
            self._line(strand, lit=strand in lit)
        for cell, bits in self._bits.items():
            self._cells[cell] = (self._glyph(cell, bits), self._cells[cell][1])
        self._ports()
        self._names()
        return [self._row(y) for y in range(self._height)]

    def _load(self, strand: Strand) -> float:
        return max(self._busy.get(link, 0.0) for link in strand.links)

    # --- lines ------------------------------------------------------------------------------

    def _line(self, strand: Strand, *, lit: bool) -> None:
        view, load = self._view, self._load(strand)
        weight = "sparse" if load < IDLE else "thin" if load < BUSY else "thick"
        ink = self._path_ink if lit else self._ink(load)
        down = any(
            change is not None and change.setting.down
            for change in (view.state.link_at(link, view.t) for link in strand.links)
        )
        if strand.level:
            sign = getattr(view.glyphs, _LEVEL["thick" if lit else weight])
            dots = dict.fromkeys(strand.thin, sign)
            self._cells |= dict.fromkeys(dots, (sign, ink))
        else:
            dots = getattr(strand, "thick" if lit else weight)
            for cell, bits in dots.items():
                # A cell in which lines cross shows both, in the ink of the later one.
                self._bits[cell] = self._bits.get(cell, 0) | bits
                self._cells[cell] = ("", ink)
        if down and dots:
            middle = [*dots][len(dots) // 2]
            self._bits.pop(middle, None)
            self._cells[middle] = (view.glyphs.drop, f"bold {view.ink('drop')}")

    def _glyph(self, cell: Cell, bits: int) -> str:
        if self._view.glyphs.plot_cells == "braille":
            return chr(0x2800 + bits)
        count = bits.bit_count()
        lit = self._cells[cell][1] == self._path_ink
        return "*" if lit else "." if count <= 2 else ":" if count <= 4 else "#"

    def _ink(self, load: float) -> str:
        name = "ghost" if load < IDLE else "good" if load < 0.5 else "warn"
        return self._view.ink(name if load < BUSY else "bad")

    # --- nodes ------------------------------------------------------------------------------

    def _ports(self) -> None:
        bars = self._view.glyphs.bars
        for port in self._made.ports:
            busy, queued = self._busy.get(port.link), self._queued.get(port.link, 0.0)
            if busy is None:
                continue
            sign = bars[min(int(busy * len(bars)), len(bars) - 1)]
            if busy < IDLE:
                sign = self._view.glyphs.separator
            ink = self._ink(busy)
            tenths = str(min(int(queued * 10), 9))
            if queued >= BUILDING and port.wide:
                self._cells[port.x + 1, port.y] = (tenths, f"bold {self._view.ink('queue')}")
            elif queued >= BUILDING:
                sign, ink = tenths, f"bold {self._view.ink('queue')}"
            self._cells[port.x, port.y] = (sign, ink)

    def _names(self) -> None:
        view = self._view
        hosts = network_panel.flows_by_host(view)
        for name, (x, y) in self._made.names.items():
            lit = name in self._on_path
            ink = self._path_ink if lit else f"bold {view.ink('text')}"
            for place, letter in enumerate(name):
                self._cells[x + place, y] = (letter, ink)
            if lit and x:
                self._cells[x - 1, y] = (view.glyphs.chosen, ink)
            glyphs = network_panel.flow_glyphs(view, hosts.get(name, []), len(name) + 1)
            for place, glyph in enumerate(glyphs):
                self._cells[x + place, self._made.glyphs[name]] = glyph

    def _row(self, y: int) -> Row:
        return [self._cells.get((x, y), (" ", "")) for x in range(self._width)]


def _legend(view: View, width: int) -> Row:
    glyphs = view.glyphs
    words = [
        f"{glyphs.bars[0]}{glyphs.bars[-1]} sending",
        "7 queue 7/10 full",
        "lines: dotted idle, thick busy or the path",
    ]
    text = f" {glyphs.separator} ".join(words)
    return [(fit(f" {text}", width, glyphs.ellipsis), view.ink("muted"))]

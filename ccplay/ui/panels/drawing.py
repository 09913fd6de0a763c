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

from ccplay.model.network import Network
from ccplay.plots.utilisation import BUILDING, BUSY, IDLE, fill, utilisation
from ccplay.ui.cells.sheet import Row, Run, fit
from ccplay.ui.panels import queues
from ccplay.ui.panels.geometry import Cell, Geometry, Strand, geometry
from ccplay.ui.view import View

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
            return queues.rows(view, network, width, height)
        cells = _Cells(view, network, made, (width, height - 2))
        return [queues.title(view, width), *cells.rows(), _legend(view, width)]

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
        flow = queues.shown_flow(view)
        crossed = queues.links_of(view, network, flow) if flow else ()
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
        hosts: dict[str, list[Run]] = {}
        for flow in view.running():
            glyph = (view.flow_glyph(flow.name), f"bold {view.flow_ink(flow.name)}")
            for host in (flow.src, flow.dst):
                hosts.setdefault(host, []).append(glyph)
        for name, (x, y) in self._made.names.items():
            lit = name in self._on_path
            ink = self._path_ink if lit else f"bold {view.ink('text')}"
            for place, letter in enumerate(name):
                self._cells[x + place, y] = (letter, ink)
            if lit and x:
                self._cells[x - 1, y] = (view.glyphs.chosen, ink)
            glyphs = hosts.get(name, [])
            room = len(name) + 1
            if len(glyphs) > room:
                glyphs = [*glyphs[: room - 1], (view.glyphs.ellipsis, view.ink("muted"))]
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

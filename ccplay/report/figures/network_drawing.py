"""The network of a run: as a graph with its settings and load, and that graph as SVG.

The SVG is legible in print and on a screen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from xml.sax.saxutils import escape

import msgspec
from msgspec.structs import replace

from ccplay.model.events import LinkChanged
from ccplay.model.layout import layout
from ccplay.model.network import Link, Network
from ccplay.model.wording import describe_link, describe_qdisc
from ccplay.plots.levels import BUSY, IDLE, fill, utilisation
from ccplay.state.lab_state import LabState

# --- A network as a graph: placed nodes, links with their settings, observed queues ---------------
# Any graph of hosts and routers works. If the routers form a chain, traffic runs from left to
# right; else hosts are in the bottom row, and routers above by their distance from the nearest
# host.

MOST_NODES = 64
"""Number of nodes above which a drawing would be illegible."""

_MOST_LABELS = 8
"""Largest number of labelled links; with more, the most common setting is noted once below."""
_MOST_SLANTING = 4
"""Largest number of labelled links that slant between rows of routers, where labels overlap
sooner."""


class Vertex(msgspec.Struct, frozen=True):
    """A node with its place in steps to the right and down."""

    name: str
    router: bool
    x: float
    y: float


class Edge(msgspec.Struct, frozen=True):
    """Both directions of a link, with their settings."""

    a: str
    b: str
    labels: tuple[str, ...]
    """Labels of the link: one for both directions, or one each if they differ; none if a note has
    them."""
    queues: Mapping[str, str]
    """Discipline of each observed queue as text, by sending node."""
    busy: float | None = None
    """Mean share of its rate that the busier direction sent; None if neither is observed."""
    filled: Mapping[str, float] = msgspec.field(default_factory=dict)
    """Greatest length of each observed queue as a share of its limit, by sending node."""


class Load(msgspec.Struct, frozen=True):
    """The traffic of one direction of a link over a run."""

    busy: float | None
    """Mean share of the rate; None if the direction is not observed or has no rate."""
    filled: float | None
    """Greatest length of the queue as a share of its limit; None if either is unknown."""


class Graph(msgspec.Struct, frozen=True):
    """A network with everything needed to draw it."""

    vertices: list[Vertex]
    edges: list[Edge]
    notes: tuple[str, ...]
    """Lines with the settings of links without a label."""
    paths: Mapping[str, Sequence[str]] = msgspec.field(default_factory=dict)
    """Nodes crossed by each flow's packets at the end of the run."""


def loads(state: LabState, network: Network, start: float) -> dict[str, Load]:
    """Return the traffic of each observed direction since ``start``."""
    first, end = state.sweeps.before_or_at(start) + 1, state.sweeps.end
    return {
        link: Load(utilisation(state, link, start, state.now), fill(state, link, first, end))
        for link in network.observed
    }


def paths(state: LabState, network: Network) -> dict[str, list[str]]:
    """Return the nodes crossed by each flow's packets, on its last path if it changed."""
    found: dict[str, list[str]] = {}
    for name, flow in state.flows.items():
        if flow.paths:
            links = flow.paths[-1].links
        else:
            links = [link.name for link in network.path(flow.src, flow.dst)]
        ends = [link.partition("->") for link in links]
        if ends:
            found[name] = [ends[0][0], *(dst for _, _, dst in ends)]
    return found


def graph(
    network: Network,
    links: Mapping[str, LinkChanged],
    carried: Mapping[str, Load] | None = None,
    crossed: Mapping[str, Sequence[str]] | None = None,
) -> Graph | None:
    """Return a network as a graph; None if it has no nodes or more than ``MOST_NODES``.

    ``links`` has the settings and ``carried`` the traffic of each direction, by its name;
    ``crossed`` is the result of ``paths``.
    """
    hosts = {node.name: node.role for node in network.nodes if node.role != "router"}
    names = list(dict.fromkeys(node.name for node in network.nodes))
    ways = [each for each in network.links if {each.src, each.dst} <= set(names)]
    if not 0 < len(names) <= MOST_NODES:
        return None
    places = layout(network).places
    edges = _edges(ways, network.bottlenecks, links, places)
    vertices = [Vertex(name, name not in hosts, *places[name]) for name in names]
    rows = {each.y for each in vertices if each.router}
    edges, notes = _summed_up(
        [_loaded(each, carried or {}) for each in edges],
        _MOST_SLANTING if len(rows) > 1 else _MOST_LABELS,
    )
    known = {flow: nodes for flow, nodes in (crossed or {}).items() if set(nodes) <= set(names)}
    return Graph(vertices, edges, notes, known)


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
            _texts(both, links, places),
            {w.src: _queue(w, links) for w in both if w.name in observed},
        )
        for (a, b), both in pairs.items()
    ]


def _loaded(edge: Edge, carried: Mapping[str, Load]) -> Edge:
    """Return an edge with its traffic."""
    found = {
        a: load
        for a, b in ((edge.a, edge.b), (edge.b, edge.a))
        if (load := carried.get(f"{a}->{b}")) is not None
    }
    shares = [load.busy for load in found.values() if load.busy is not None]
    filled = {a: load.filled for a, load in found.items() if load.filled is not None}
    return replace(edge, busy=max(shares, default=None), filled=filled)


def _texts(
    ways: Sequence[Link],
    links: Mapping[str, LinkChanged],
    places: Mapping[str, tuple[float, float]],
) -> tuple[str, ...]:
    directions = [
        (_way(places[way.src], places[way.dst]) or f"{way.src} → {way.dst}:", way.name)
        for way in ways
        if way.name in links
    ]
    texts = [(arrow, describe_link(links[name].setting)) for arrow, name in directions]
    if len({text for _, text in texts}) <= 1:
        return tuple({text for _, text in texts if text})
    return tuple(f"{arrow} {text}" for arrow, text in texts if text)


def _way(start: tuple[float, float], end: tuple[float, float]) -> str:
    """Return the arrow of a direction to the right or left; empty for a slanting one."""
    if start[1] != end[1]:
        return ""
    return "→" if start[0] < end[0] else "←"


def _queue(way: Link, links: Mapping[str, LinkChanged]) -> str:
    setting = links[way.name].setting if way.name in links else None
    return describe_qdisc(setting.qdisc) if setting and setting.qdisc else ""


def _summed_up(edges: list[Edge], most: int) -> tuple[list[Edge], tuple[str, ...]]:
    """Move the labels that most links of a tier share into notes, if there are more than ``most``.

    A tier is all links between nodes whose names differ only in their numbers.
    """
    if len(edges) <= most:
        return edges, ()
    tiers: dict[str, list[Edge]] = {}
    for each in edges:
        stems = sorted(name.rstrip("0123456789") for name in (each.a, each.b))
        tiers.setdefault(" – ".join(stems), []).append(each)
    rest: dict[int, Edge] = {}
    noted: dict[str, list[str]] = {}
    for tier, members in tiers.items():
        # An observed link may be an exception, so the others determine what is common.
        plain = [each for each in members if not each.queues] or members
        labels, _ = Counter(each.labels for each in plain).most_common(1)[0]
        queues = Counter(text for each in members for text in each.queues.values())
        # In a fabric every link has a queue: the most common one is noted once, too.
        usual = queues.most_common(1)[0][0] if queues.total() >= len(members) else None
        if len(members) == 1:
            continue
        for each in members:
            rest[id(each)] = replace(
                each,
                labels=() if each.labels == labels else each.labels,
                queues={node: "" if text == usual else text for node, text in each.queues.items()},
            )
        if text := "; ".join(filter(None, [*labels, usual])):
            noted.setdefault(text, []).append(tier)
    notes = tuple(f"{', '.join(names)}: {text}" for text, names in noted.items())
    if len(noted) == 1:
        notes = (f"All links without a label: {next(iter(noted))}",)
    return [rest.get(id(each), each) for each in edges], notes


# --- the graph as SVG -----------------------------------------------------------------------------

_LETTER = 6.7
"""Assumed width in pixels of a letter in a label, on the safe side: most letters are narrower."""
_FONT = 12
_LINE = 15
_ROW = 52
_GAP = 46
"""Pixels between the end of a label and a node."""
_LEAST = 150
"""Smallest distance between columns in pixels."""
_ABOVE = 116
"""Distance between rows of routers in pixels."""
_MARGIN = 14
_NODE = 28
"""Height of a node in pixels."""
_BOX = (30, 14)
"""Size of the symbol of an observed queue in pixels."""
_BEHIND = 42
"""Pixels between the middle of a node and the symbol of its queue."""
_FEW = 6
"""Largest number of links at a node with queues at the distance ``_BEHIND``; with more links, they
are further away."""
_MOST_PATHS = 16
_LIT = "#1f6fb8"
"""Colour of the path that the mouse points at."""
_LIGHTS = (
    ".flow{cursor:pointer}.flow polyline{pointer-events:none}"
    ".flow:hover polyline,.flow:focus polyline{opacity:.55}"
)
_INK, _MUTED, _LINK, _QUEUE, _SOFT = "#1a1a1a", "#5a5a5a", "#8a8a8a", "#3d4f61", "#c9d3dc"


def draw(graph: Graph) -> str:
    """Return a graph as an SVG element."""
    across, down = _steps(graph)
    spots = {vertex.name: (vertex.x * across, vertex.y * down) for vertex in graph.vertices}
    degrees = Counter(node for edge in graph.edges for node in (edge.a, edge.b))
    lefts, tops, rights, bottoms = zip(*_extents(graph, spots, degrees), strict=True)
    left, right = min(lefts) - _MARGIN, max(rights) + _MARGIN
    top, bottom = min(tops) - _MARGIN, max(bottoms) + _MARGIN
    legend = [*graph.notes, *_legend(graph)]
    right = max(right, left + _LETTER * max(map(len, legend), default=0) + 2 * _MARGIN)
    bottom += _LINE * (len(legend) + 1) if legend else 0
    at = {name: (x - left, y - top) for name, (x, y) in spots.items()}
    parts = [
        *(_line(edge, at) for edge in graph.edges),
        *(part for edge in graph.edges for part in _labels(edge, at, degrees)),
        *(part for vertex in graph.vertices for part in _vertex(vertex, *at[vertex.name])),
    ]
    parts += _explained(graph, legend, at, bottom - top)
    width, height = round(right - left), round(bottom - top)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" style="max-width:{width}px" '
        f'font-family="DejaVu Sans, Helvetica, Arial, sans-serif" font-size="{_FONT}">'
        f"{''.join(parts)}</svg>\n"
    )


def _steps(graph: Graph) -> tuple[float, float]:
    """Return the pixels per step to the right and per step down."""
    flat = all(vertex.y == 0 for vertex in graph.vertices if vertex.router)
    longest = max((_length(edge) for edge in graph.edges), default=0.0)
    widest = max(map(_width, graph.vertices))
    if flat:
        return max(longest + widest + _GAP, _LEAST), _ROW
    labelled = any(edge.labels or edge.queues for edge in graph.edges)
    # Leave room for the symbols of queues on neighbouring links side by side.
    return max(widest + 24, 2.8 * _BOX[0], longest if labelled else 0.0), _ABOVE


def _extents(
    graph: Graph, at: Mapping[str, tuple[float, float]], degrees: Mapping[str, int]
) -> Iterator[tuple[float, float, float, float]]:
    """Yield left, top, right and bottom of each node with its surroundings, label and queue."""
    for vertex in graph.vertices:
        (x, y), half = at[vertex.name], _width(vertex) / 2
        yield x - half, y - _NODE, x + half, y + _NODE
    for edge in graph.edges:
        (x, y), (u, v) = at[edge.a], at[edge.b]
        middle, half, level = (x + u) / 2, _length(edge) / 2, y == v
        high = _LINE * sum(len(_lines(label)) for label in edge.labels)
        above, below = (high + 10, _BOX[1] + _LINE * len(edge.queues)) if level else (high / 2,) * 2
        yield middle - half, (y + v) / 2 - above, middle + half, (y + v) / 2 + below
        for sender, text in () if level else edge.queues.items():
            box = _beside(at[sender], at[edge.b if sender == edge.a else edge.a], degrees[sender])
            end = box[0] + _BOX[0] / 2 + 4 + _LETTER * len(text)
            yield box[0] - _BOX[0] / 2, box[1] - _BOX[1] / 2, end, box[1] + _BOX[1] / 2


def _length(edge: Edge) -> float:
    lines = [*(line for each in edge.labels for line in _lines(each)), *edge.queues.values()]
    room = (_BOX[0] + 8) * len(edge.queues)
    return max(_LETTER * max(map(len, lines), default=0), room)


def _lines(label: str) -> list[str]:
    """Break a label with several items into lines of two."""
    parts = label.split(", ")
    return [", ".join(parts[start : start + 2]) for start in range(0, len(parts), 2)]


def _width(vertex: Vertex) -> float:
    return max(_LETTER * len(vertex.name) + 14, _NODE if vertex.router else 36)


# --- shapes ---------------------------------------------------------------------------------------


def _vertex(vertex: Vertex, x: float, y: float) -> Iterator[str]:
    wide = _width(vertex)
    round_by = _NODE / 2 if vertex.router else 3
    fill = _INK if vertex.router else "#ffffff"
    yield (
        f'<rect x="{x - wide / 2:.1f}" y="{y - _NODE / 2:.1f}" width="{wide:.1f}" '
        f'height="{_NODE}" rx="{round_by:g}" fill="{fill}" stroke="{_INK}" stroke-width="1.2"/>'
    )
    yield _text(x, y + _FONT * 0.36, vertex.name, "#ffffff" if vertex.router else _INK, bold=True)


def _line(edge: Edge, at: dict[str, tuple[float, float]]) -> str:
    (x, y), (u, v) = at[edge.a], at[edge.b]
    colour, width = _QUEUE if edge.queues else _LINK, 2.6 if edge.queues else 1.4
    more, title = "", ""
    if edge.busy is not None:
        colour, width, more = _stroke(edge.busy)
        parts = [f"{edge.a} - {edge.b}: {edge.busy:.0%} busy"]
        parts += [f"queue of {node} up to {share:.0%} full" for node, share in edge.filled.items()]
        title = f"<title>{escape(', '.join(parts))}</title>"
    return (
        f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{u:.1f}" y2="{v:.1f}" '
        f'stroke="{colour}" stroke-width="{width}"{more}>{title}</line>'
    )


def _stroke(busy: float) -> tuple[str, float, str]:
    """Return the colour, width and dashes for a link's utilisation, in classes as on the screen."""
    if busy < IDLE:
        return _LINK, 1.4, ' stroke-dasharray="2 4"'
    if busy < 0.5:
        return "#2e8b57", 2.0, ""
    return ("#c8741a", 3.0, "") if busy < BUSY else ("#b8302a", 4.4, "")


def _legend(graph: Graph) -> list[str]:
    """Return the lines of the legend; empty if the utilisation of every link is unknown."""
    if all(edge.busy is None for edge in graph.edges):
        return []
    lines = [
        "Lines: what routers send, as a mean share of the rate: thick from 80 %, dashed below 2 %.",
        "Boxes: queues, filled to their greatest length.",
    ]
    shown = list(graph.paths)[:_MOST_PATHS]
    if shown:
        more = f" and {len(graph.paths) - len(shown)} more" if len(graph.paths) > len(shown) else ""
        lines.append(f"Path of flow: {'  '.join(shown)}{more}")
    return lines


def _explained(
    graph: Graph, legend: list[str], at: dict[str, tuple[float, float]], bottom: float
) -> Iterator[str]:
    """Yield the legend, in which pointing at a flow's name highlights the flow's path."""
    for number, line in enumerate(legend):
        y = bottom - _LINE * (len(legend) - number) + 4
        if not line.startswith("Path of flow"):
            yield _text(_MARGIN, y, line, _MUTED, anchor="start")
            continue
        head = "Path of flow: "
        yield _text(_MARGIN, y, head, _MUTED, anchor="start")
        x = _MARGIN + _LETTER * len(head)
        yield f"<style>{_LIGHTS}</style>"
        for flow in list(graph.paths)[:_MOST_PATHS]:
            points = " ".join(f"{at[n][0]:.1f},{at[n][1]:.1f}" for n in graph.paths[flow])
            yield (
                f'<g class="flow" tabindex="0"><polyline points="{points}" fill="none" '
                f'stroke="{_LIT}" stroke-width="9" stroke-linejoin="round" opacity="0"/>'
                f"{_text(x, y, flow, _LIT, bold=True, anchor='start')}</g>"
            )
            x += _LETTER * (len(flow) + 2)


def _labels(
    edge: Edge, at: dict[str, tuple[float, float]], degrees: Mapping[str, int]
) -> Iterator[str]:
    """Yield the settings and the queues of a link; on a slanting link both are on the line."""
    (x, y), (u, v) = at[edge.a], at[edge.b]
    level = y == v
    lines = [line for label in edge.labels for line in _lines(label)]
    above = _LINE * (len(lines) - 1)
    top = (y + v) / 2 + (_FONT * 0.36 - above / 2 if not level else -above - 13)
    if lines and not level:
        yield _paper((x + u) / 2, (y + v) / 2, lines)
    for number, line in enumerate(lines):
        yield _text((x + u) / 2, top + number * _LINE, line, _MUTED)
    for sender, text in edge.queues.items():
        box = _beside(at[sender], at[edge.b if sender == edge.a else edge.a], degrees[sender])
        yield from _observed(*box, edge.filled.get(sender, 0.75))
        if not level:
            yield _text(box[0] + _BOX[0] / 2 + 4, box[1] + 4, text, _QUEUE, anchor="start")
    for number, text in enumerate(dict.fromkeys(edge.queues.values()) if level else ()):
        yield _text((x + u) / 2, y + _BOX[1] + 7 + number * _LINE, text, _QUEUE)


def _beside(
    sender: tuple[float, float], other: tuple[float, float], degree: int
) -> tuple[float, float]:
    """Return a queue's place on a link near its node, further away if many links meet there."""
    dx, dy = other[0] - sender[0], other[1] - sender[1]
    length = max((dx * dx + dy * dy) ** 0.5, 1.0)
    share = max(_BEHIND, min(_BEHIND + 8 * (degree - _FEW), length / 2)) / length
    return sender[0] + dx * share, sender[1] + dy * share


def _observed(x: float, y: float, share: float) -> Iterator[str]:
    """Yield a queue: a box with packets, dark up to ``share``, the greatest length."""
    wide, high = _BOX
    left, top = x - wide / 2, y - high / 2
    yield (
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{wide}" height="{high}" '
        f'fill="#ffffff" stroke="{_QUEUE}" stroke-width="1.2"/>'
    )
    for slot in range(4):
        yield (
            f'<rect x="{left + 3 + slot * 6.4:.1f}" y="{top + 3:.1f}" width="4.6" '
            f'height="{high - 6}" fill="{_QUEUE if 4 - slot <= round(share * 4) else _SOFT}"/>'
        )


def _paper(x: float, y: float, lines: list[str]) -> str:
    """Return a white background for a label on a line."""
    wide, high = _LETTER * max(map(len, lines)), _LINE * len(lines) + 2
    return (
        f'<rect x="{x - wide / 2:.1f}" y="{y - high / 2:.1f}" width="{wide:.1f}" '
        f'height="{high}" fill="#ffffff"/>'
    )


def _text(
    x: float, y: float, text: str, colour: str, *, bold: bool = False, anchor: str = "middle"
) -> str:
    weight = (
        ' font-weight="600"' if bold else ' paint-order="stroke" stroke="#ffffff" stroke-width="4"'
    )
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}"{weight}>'
        f"{escape(text)}</text>"
    )

"""The network of a run as a graph, drawn over time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from ccplay.analysis.results import Checkpoint, checkpoint, fixed_sizes
from ccplay.model.events import LinkChanged
from ccplay.model.layout import layout
from ccplay.model.network import Link, Network
from ccplay.model.variables import Variable
from ccplay.model.wording import describe_link, describe_qdisc, limit_unit
from ccplay.plots import levels
from ccplay.plots.levels import Scope
from ccplay.plots.subjects import owners, series_of
from ccplay.plots.utilisation import fill, utilisation
from ccplay.report.data.curves import flow_groups
from ccplay.report.data.naming import in_order
from ccplay.state.lab_state import LabState
from ccplay.state.samples import Queue
from ccplay.traffic import KINDS
from ccplay.traffic.base import Traffic
from ccplay.traffic.connections import Flow
from ccplay.traffic.monitored import CountedTraffic

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


def loads(state: LabState, start: float) -> dict[str, Load]:
    """Return the traffic of each observed direction since ``start``."""
    first, end = state.sweeps.before_or_at(start) + 1, state.sweeps.end
    network = state.hello.network if state.hello is not None else None
    return {
        link: Load(utilisation(state, link, start, state.now), fill(state, link, first, end))
        for link in (network.observed if network is not None else ())
    }


def paths(state: LabState) -> dict[str, list[str]]:
    """Return the nodes crossed by each flow's packets, on its last path if it changed."""
    network = state.hello.network if state.hello is not None else None
    found: dict[str, list[str]] = {}
    for name, flow in state.flows.items() if network is not None else ():
        links = flow.paths[-1].links if flow.paths else []
        if not flow.paths and network is not None:
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
            _labels(both, links, places),
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


def _labels(
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
        tiers.setdefault(" – ".join(sorted(map(_stem, (each.a, each.b)))), []).append(each)
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


def _stem(name: str) -> str:
    return name.rstrip("0123456789")


# --- the content of one run's figures: its flows, queues and marks on one time axis ---------------

_SOME = 4
"""Number of packets that a queue must have held at some time to be drawn."""
_CLOSING_S = 1.0
_LEAST_S = 0.1


class Finish(msgspec.Struct, frozen=True):
    """The moment at which the first flow of a fixed size was done, and each flow's bytes then."""

    t: float
    """Moment on the figures' axis in seconds."""
    bytes: Mapping[str, int]
    ratio: float | None


class Scene(msgspec.Struct, frozen=True):
    """One run, ready to draw; ``start`` is the moment of the stream at 0 on the time axis."""

    state: LabState
    start: float
    span_s: float
    flows: list[list[Flow]]
    """Flows and downloads, each as its parallel streams."""
    queues: list[Queue]
    """Queues that held packets, and in any case the first observed one."""
    marks: list[tuple[float, str]]
    """Commands and marks with their moments in seconds on the time axis."""
    sizes: Mapping[str, int]
    finish: Finish | None

    @property
    def counted(self) -> list[CountedTraffic]:
        """Traffic whose packets are counted, in the order of its start."""
        return [*self.state.of(CountedTraffic).values()]

    def others(self, variable: Variable) -> list[Traffic]:
        """Return the traffic of a variable's kind that has at least one value of it."""
        every = owners(self.state, variable)
        return [each for each in every if isinstance(each, Traffic) and _has_values(each, variable)]

    def in_bytes(self, link: str) -> bool:
        """Return whether the limit of a link's queue always counted bytes rather than packets."""
        every = levels.qdiscs(self.state, link)
        kinds = {qdisc.kind for _, _, qdisc in every if qdisc is not None}
        return bool(kinds) and all(limit_unit(kind) == "bytes" for kind in kinds)

    def scopes(self, link: str = "") -> list[Scope]:
        """Return the subjects of settings: the queue of ``link``, or pairs of hosts with traffic.

        A class of a link is named ``LINK CLASS``.
        """
        if link:
            in_bytes = self.in_bytes(link)
            return [Scope(self.state, link=link, in_bytes=in_bytes, converts=True)]
        ends = [(streams[0].src, streams[0].dst) for streams in self.flows]
        traffic = self.state.traffic.values()
        ends += [(each.src, each.dst) for each in traffic if not KINDS[each.kind].fills]
        return [Scope(self.state, ends=pair) for pair in dict.fromkeys(ends)]


def _has_values(traffic: Traffic, variable: Variable) -> bool:
    series = series_of(traffic, variable)
    return series is not None and series.end > 0


def scene(state: LabState, known: Checkpoint | None = None) -> Scene:
    """Return a session's scene; ``known`` is the checkpoint in its result, if it has one."""
    start = state.ready_at or 0.0
    sizes = fixed_sizes(state)
    span = max((each.ended or state.now for each in state.flows.values()), default=state.now)
    last = max([span, *(each.ended or state.now for each in state.traffic.values())])
    return Scene(
        state=state,
        start=start,
        span_s=max(min(last, state.now) - start, _LEAST_S),
        flows=_in_order(flow_groups(state)),
        queues=_queues(state),
        marks=_marks(state, start),
        sizes=sizes,
        finish=_finish(known or checkpoint(state), start),
    )


def _in_order(groups: list[list[Flow]]) -> list[list[Flow]]:
    """Return flows sorted by name, subflows after their flow, downloads last, as in all figures."""
    names = in_order({streams[0].name for streams in groups})

    def place(streams: list[Flow]) -> tuple[bool, int, int, int]:
        first = streams[0]
        return (
            first.kind == "download",
            names.index(first.parent if first.kind == "subflow" else first.name),
            first.kind == "subflow",
            names.index(first.name),
        )

    return sorted(groups, key=place)


def _marks(state: LabState, start: float) -> list[tuple[float, str]]:
    """Return commands and marks; of those at one moment the mark, which is the reason, comes first.

    Stops in the last second are omitted, because every run has them.
    """
    end = state.now - _CLOSING_S
    marks = [e for e in state.log if e.is_mark and not (e.t > end and e.text.endswith(" stops"))]
    marks.sort(key=lambda e: (round(e.t, 1), e.kind != "mark"))
    return [(max(e.t - start, 0.0), e.text) for e in marks]


def _queues(state: LabState) -> list[Queue]:
    """Return the queues to draw; a link with classes has one per class in place of their sum."""
    names = list(state.hello.network.observed) if state.hello else []
    busy = []
    for name, queue in state.queues.items():
        direction, _, own = name.partition(" ")
        if not own and any(each.startswith(f"{name} ") for each in state.queues):
            continue
        found = queue.series["qlen"].extremes(0, queue.series["qlen"].end)
        if [direction] == names[:1] or (found and found[1] >= _SOME):
            busy.append(queue)
    return busy or list(state.queues.values())[:1]


def _finish(found: Checkpoint | None, start: float) -> Finish | None:
    """Return the checkpoint with its moment on the figures' axis; None if there is none."""
    return None if found is None else Finish(found.t - start, found.bytes, found.ratio)

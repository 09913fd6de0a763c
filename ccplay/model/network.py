"""The network as data: nodes, cables, directed links and observed queues, and what follows.

A topology is a generator of networks (``topologies``). Scenario, lab, screen and report read names,
paths, peers and base RTTs from the network; none of them depends on the topology.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Annotated

from ccplay.errors import CommandError
from ccplay.model.base import FEW, Value

BOTTLENECK = "bottleneck"
"""Name of all observed links of a network together, in scenario files and commands."""

ROUTER = "router"
"""Role of a node that forwards packets. All other roles are those of hosts."""

MOST_PATHS = 64
"""Largest number of equal-cost paths between two hosts that ``Network.paths`` returns."""

_LONGEST_INTERFACE = 15
"""Largest length of an interface's name in characters; one less than ``IFNAMSIZ`` of
include/uapi/linux/if.h."""


class WrittenNetwork(Value, frozen=True):
    """A network whose nodes and cables are listed, in a scenario or by a Mininet file."""

    hosts: Annotated[list[str], FEW] = []
    routers: Annotated[list[str], FEW] = []
    cables: Annotated[list[tuple[str, str]], FEW] = []
    """Pairs of nodes joined by cables."""
    observed: Annotated[list[str], FEW] = []
    """Directed links whose queue is observed; if empty, every egress of a router."""
    name: str = ""
    """Name on the screen; if empty, the numbers of nodes describe the network."""
    remarks: Annotated[list[str], FEW] = []
    """Parts of the source that have no effect in ccplay; the lab reports each as a warning."""


class Topology(Value, frozen=True):
    """The choice of a network: the name of a generator in ``topologies``, and its parameters."""

    kind: str = "dumbbell"
    pairs: int = 2
    """Parameter ``pairs`` of a dumbbell, separate from ``parameters`` as in recordings of 0.1."""
    parameters: dict[str, int] = {}
    """All other parameters by name; a missing one has its generator's default."""
    written: WrittenNetwork | None = None
    """Nodes and cables of the kind ``written``."""
    observed: Annotated[list[str], FEW] = []
    """Directed links whose queue is observed, of other kinds; if empty, those of the generator."""

    @property
    def remarks(self) -> list[str]:
        """Parts of the network's source that have no effect in ccplay, one per line."""
        return self.written.remarks if self.written is not None else []

    def parameter(self, name: str, default: int) -> int:
        """Return the value of a parameter."""
        return self.pairs if name == "pairs" else self.parameters.get(name, default)


class Node(Value, frozen=True):
    """A host or router of the network."""

    name: str
    role: str
    """``sender``, ``receiver`` or ``router``; a sender is where traffic starts by default."""
    address: str
    """IPv4 address by which others reach the node."""
    peer: str = ""
    """Host with which the node exchanges traffic by default; empty for a router."""


class Link(Value, frozen=True):
    """One direction of a cable: packets leave ``src`` through ``interface``, towards ``dst``."""

    name: str
    src: str
    dst: str
    interface: str
    address: str = ""
    """IPv4 address of ``interface``; empty in recordings of 0.1."""


class Network(Value, frozen=True, dict=True):
    """Nodes and links, and the observed links; everything else is derived from these."""

    topology: Topology
    nodes: Annotated[list[Node], FEW]
    links: Annotated[list[Link], FEW]
    bottlenecks: Annotated[list[str], FEW]
    """Names of the links whose queue is observed; the screen opens with the first one."""
    groups: Annotated[dict[str, Annotated[list[str], FEW]], FEW] = {}
    """Links by the name of a group, such as a tier: both directions of each cable."""

    # --- nodes ------------------------------------------------------------------------------

    @cached_property
    def hosts(self) -> list[str]:
        """Names of the nodes that send and receive; those that start traffic are first."""
        hosts = [node for node in self.nodes if node.role != ROUTER]
        return [node.name for node in sorted(hosts, key=lambda node: node.role == "receiver")]

    @cached_property
    def routers(self) -> list[str]:
        """Names of the nodes that forward packets."""
        return [node.name for node in self.nodes if node.role == ROUTER]

    @cached_property
    def senders(self) -> list[str]:
        """Names of the hosts where traffic starts by default; all hosts if none has that role."""
        return [node.name for node in self.nodes if node.role == "sender"] or self.hosts

    def address(self, node: str) -> str:
        """Return the IPv4 address of a node."""
        return self._nodes[node].address

    def peer(self, host: str) -> str:
        """Return the default partner of ``host`` in traffic; empty if there is none."""
        if (node := self._nodes.get(host)) is None or node.role == ROUTER:
            return ""
        if node.peer:
            return node.peer
        # Recordings of 0.1 name no peers: there, receiver N is the peer of sender N.
        same = [each.name for each in self.nodes if each.role == node.role]
        others = [each for each in self.hosts if each not in same]
        return others[same.index(host) % len(others)] if others else ""

    # --- links ------------------------------------------------------------------------------

    @cached_property
    def observed(self) -> list[str]:
        """Names of the links whose queue is sampled, in the order in which they are shown."""
        return [name for name in self.bottlenecks if name in self._links]

    def link(self, name: str) -> Link:
        """Return the directed link with this name. Raises ``KeyError``."""
        return self._links[name]

    @cached_property
    def cables(self) -> list[tuple[Link, Link]]:
        """Both directions of every cable."""
        places = {link.name: place for place, link in enumerate(self.links)}
        return [
            (link, self.opposite(link))
            for place, link in enumerate(self.links)
            if place < places[self._opposites[link.name]]
        ]

    def opposite(self, link: Link) -> Link:
        """Return the other direction of a link's cable."""
        return self._links[self._opposites[link.name]]

    def resolve(self, name: str) -> list[Link]:
        """Return the directed links that a name stands for.

        ``a->b`` is one link, ``a-b`` both directions of a cable, ``bottleneck`` all observed links,
        and the name of a group its links. Raises ``CommandError`` with the known names for others.
        """
        if name == BOTTLENECK:
            return [self._links[each] for each in self.observed]
        if name in self.groups:
            return [self._links[each] for each in self.groups[name] if each in self._links]
        if name in self._links:
            return [self._links[name]]
        # Names of nodes may have dashes, too.
        for dash in (place for place, letter in enumerate(name) if letter == "-"):
            if (there := self._links.get(f"{name[:dash]}->{name[dash + 1 :]}")) is not None:
                return [there, self.opposite(there)]
        raise CommandError(f"no link {name!r}; links: {', '.join(self.link_names)}")

    @cached_property
    def link_names(self) -> list[str]:
        """Names that people type: ``bottleneck``, the groups, and every cable ``a-b``."""
        alias = [BOTTLENECK] if self.bottlenecks else []
        return [*alias, *self.groups, *(f"{there.src}-{there.dst}" for there, _ in self.cables)]

    def vantage(self, name: str) -> Link:
        """Return the directed link for a name if both directions are to be captured at one end.

        It is the first observed link if there is one, else one that leaves a router if possible.
        Raises ``CommandError`` for an unknown name.
        """

        def rank(link: Link) -> tuple[int, bool]:
            observed = link.name in self.bottlenecks
            place = self.bottlenecks.index(link.name) if observed else len(self.bottlenecks)
            return place, link.src not in self.routers

        return min(self.resolve(name), key=rank)

    # --- paths ------------------------------------------------------------------------------

    def next_hops(self, node: str, dst: str) -> list[Link]:
        """Return the links through which ``node`` may forward to ``dst``, all equally short."""
        hops = self._hops_to(dst)
        return [
            link
            for link in self._leaving.get(node, ())
            if link.dst in hops and hops[link.dst] == hops.get(node, 0) - 1
        ]

    def hops(self, node: str, dst: str) -> int:
        """Return the number of links between two nodes; without a path, more than all links."""
        return self._hops_to(dst).get(node, len(self.links) + 1)

    def paths(self, src: str, dst: str) -> list[list[Link]]:
        """Return the shortest paths between two nodes, at most ``MOST_PATHS``; none without a path.

        Hosts do not forward, so paths lead only through routers.
        """
        found: list[list[Link]] = []
        growing: list[list[Link]] = [[link] for link in self.next_hops(src, dst)]
        while growing and len(found) < MOST_PATHS:
            path = growing.pop(0)
            if path[-1].dst == dst:
                found.append(path)
            else:
                growing += [[*path, link] for link in self.next_hops(path[-1].dst, dst)]
        return found

    def path(self, src: str, dst: str) -> list[Link]:
        """Return the first of the shortest paths; empty if there is none."""
        return next(iter(self.paths(src, dst)), [])

    def round_trip(self, src: str, dst: str) -> list[Link]:
        """Return the links of a path there and back; empty if there is none."""
        there, back = self.path(src, dst), self.path(dst, src)
        return [*there, *back] if there and back else []

    def base_rtt(self, src: str, dst: str, delay: Callable[[str], float]) -> float:
        """Return the sum of the delays there and back, in the unit of ``delay``.

        ``delay`` returns the delay of a directed link by its name.
        """
        return sum(delay(link.name) for link in self.round_trip(src, dst))

    # --- look-ups ---------------------------------------------------------------------------

    @cached_property
    def _nodes(self) -> dict[str, Node]:
        return {node.name: node for node in self.nodes}

    @cached_property
    def _links(self) -> dict[str, Link]:
        return {link.name: link for link in self.links}

    @cached_property
    def _opposites(self) -> dict[str, str]:
        ends = {(link.src, link.dst): link.name for link in self.links}
        # A recording from elsewhere may lack the opposite direction.
        return {link.name: ends.get((link.dst, link.src), link.name) for link in self.links}

    @cached_property
    def _leaving(self) -> dict[str, list[Link]]:
        leaving: dict[str, list[Link]] = {}
        for link in self.links:
            leaving.setdefault(link.src, []).append(link)
        return leaving

    @cached_property
    def _arriving(self) -> dict[str, list[Link]]:
        arriving: dict[str, list[Link]] = {}
        for link in self.links:
            arriving.setdefault(link.dst, []).append(link)
        return arriving

    @cached_property
    def _distances(self) -> dict[str, dict[str, int]]:
        return {}

    def _hops_to(self, dst: str) -> dict[str, int]:
        """Return the number of links from each node to ``dst``."""
        if dst not in self._distances:
            hops, queue, routers = {dst: 0}, [dst], set(self.routers)
            for node in queue:
                if node != dst and node not in routers:
                    continue
                for link in self._arriving.get(node, ()):
                    if link.src not in hops:
                        hops[link.src] = hops[node] + 1
                        queue.append(link.src)
            self._distances[dst] = hops
        return self._distances[dst]


def assemble(
    topology: Topology,
    roles: Mapping[str, str],
    cables: Iterable[tuple[str, str]],
    observed: Sequence[str],
    peers: Iterable[tuple[str, str]],
    *,
    groups: Mapping[str, Iterable[tuple[str, str]]] | None = None,
) -> Network:
    """Return a network with interfaces and addresses filled in: the last step of a generator.

    ``roles`` maps the names of all nodes, in the order in which they are shown, to their roles.
    ``cables`` are pairs of nodes, ``observed`` names of directed links, ``peers`` pairs of hosts
    that exchange traffic by default. ``groups`` maps names of groups to cables. Cable N has the
    subnet ``10.H.L.0/24`` with N = 256 H + L.
    """
    links: list[Link] = []
    addresses: dict[str, str] = {}
    ports = dict.fromkeys(roles, 0)
    for number, ends in enumerate(cables):
        high, low = divmod(number, 256)
        for host, (src, dst) in enumerate((ends, ends[::-1]), start=1):
            interface, address = _interface(src, ports[src]), f"10.{high}.{low}.{host}"
            ports[src] += 1
            addresses.setdefault(src, address)
            link = Link(
                name=f"{src}->{dst}", src=src, dst=dst, interface=interface, address=address
            )
            links.append(link)
    opposite = {host: other for pair in peers for host, other in (pair, pair[::-1])}
    nodes = [
        Node(name=name, role=role, address=addresses[name], peer=opposite.get(name, ""))
        for name, role in roles.items()
    ]
    return Network(
        topology=topology,
        nodes=nodes,
        links=links,
        bottlenecks=list(observed),
        groups={
            name: [f"{src}->{dst}" for ends in members for src, dst in (ends, ends[::-1])]
            for name, members in (groups or {}).items()
        },
    )


def _interface(node: str, port: int) -> str:
    """Return the name of an interface, shortened if the node's name makes it too long."""
    name = f"{node}-eth{port}"
    return name if len(name) <= _LONGEST_INTERFACE else f"eth{port}"

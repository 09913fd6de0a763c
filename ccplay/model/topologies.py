"""The topologies: generators of networks with their parameters, and the table of all of them.

A generator is a pure function: it depends on neither kernel nor scenario nor screen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

import msgspec
from msgspec.structs import replace

from ccplay.errors import CommandError
from ccplay.model import written
from ccplay.model.network import Network, Topology, assemble
from ccplay.model.quantities import WHOLE, Field, did_you_mean, quote

# --- the description of a topology ----------------------------------------------------------------


def parameter(name: str, low: int, high: int, default: int, meaning: str) -> Field:
    """Return a numeric parameter of a topology, named by the plural of what it counts, or ``k``."""
    return Field(WHOLE, meaning, low, high, default=default, key=name, name=name)


def value_of(parameter: Field, topology: Topology) -> int:
    """Return the value of a parameter in ``topology``. Raises ``CommandError`` if out of bounds."""
    number = topology.parameter(parameter.name, parameter.default)
    try:
        parameter.check(number)
    except ValueError as error:
        raise CommandError(f"topology {topology.kind}: {parameter.name}: {error}") from None
    return number


def counted(parameter: Field, count: int) -> str:
    """Return a parameter as text: ``1 pair``, ``2 pairs``; for a name of one letter: ``k = 4``."""
    if len(parameter.name) == 1:
        return f"{parameter.name} = {count}"
    noun = parameter.name
    if count == 1:
        noun = noun.removesuffix("ves") + "f" if noun.endswith("aves") else noun.removesuffix("s")
    return f"{count} {noun}"


def is_implied(parameter: Field, count: int) -> bool:
    """Return whether a parameter is 1, as by default; descriptions leave it out."""
    return count == 1 and parameter.default == 1


class TopologyKind(msgspec.Struct, frozen=True):
    """A topology: its name, its parameters and its generator."""

    name: str
    summary: str
    """Drawing of the network in one line: ``h1 - r - h2``."""
    parameters: tuple[Field, ...]
    generate: Callable[..., Network]
    """Generator, called with the ``Topology`` and the values of ``parameters`` in their order."""


# --- fabrics: hosts below tiers of routers --------------------------------------------------------

EDGE, AGGREGATION, CORE = "edge", "aggregation", "core"
"""Names of the tiers of cables, from the hosts to the top."""


def numbered(prefix: str, count: int) -> list[str]:
    """Return ``count`` names: the prefix and a number from 1."""
    return [f"{prefix}{number}" for number in range(1, count + 1)]


def fabric(
    topology: Topology,
    hosts: Sequence[str],
    routers: Sequence[str],
    tiers: Mapping[str, Sequence[tuple[str, str]]],
) -> Network:
    """Return a network with cables in tiers, each of which is a group of links.

    ``tiers`` maps the name of each tier, lowest tier first, to its cables, lower end first. Host N
    of the first half is the peer of host N of the second half, so that traffic between peers
    crosses as much of the fabric as any, and no two pairs share a host. Every egress of a router is
    observed: first those upwards, from the bottom to the top, then those downwards.
    """
    half = len(hosts) // 2
    senders, receivers = hosts[:half], hosts[half:]
    upwards = [f"{low}->{high}" for tier in tiers.values() for low, high in tier if low in routers]
    downwards = [f"{high}->{low}" for tier in reversed([*tiers.values()]) for low, high in tier]
    return assemble(
        topology,
        {
            **dict.fromkeys(senders, "sender"),
            **dict.fromkeys(routers, "router"),
            **dict.fromkeys(receivers, "receiver"),
        },
        [cable for tier in tiers.values() for cable in tier],
        observed=[*upwards, *downwards],
        # With an odd number of hosts, the last one has no peer of its own.
        peers=zip(senders, receivers, strict=False),
        groups=tiers,
    )


# --- linear: two hosts and the routers between them -----------------------------------------------

ROUTERS = parameter("routers", 1, 16, 1, "How many routers in a row a linear network has")


def linear(topology: Topology, routers: int) -> Network:
    """Return ``h1 - r - h2``, or with several routers ``h1 - r1 - r2 - … - h2``.

    Every egress of a router is observed, first those towards ``h2``.
    """
    names = ["r"] if routers == 1 else numbered("r", routers)
    cables = list(pairwise(["h1", *names, "h2"]))
    return assemble(
        topology,
        {"h1": "sender", **dict.fromkeys(names, "router"), "h2": "receiver"},
        cables,
        observed=[f"{a}->{b}" for a, b in cables[1:]]
        + [f"{b}->{a}" for a, b in reversed(cables[:-1])],
        peers=[("h1", "h2")],
    )


LINEAR = TopologyKind("linear", "h1 - r - h2, or more routers in a row", (ROUTERS,), linear)


# --- dumbbell: pairs of hosts that share one link between two routers -----------------------------

PAIRS = parameter("pairs", 1, 8, 2, "How many senders, and how many receivers, a dumbbell has")


def dumbbell(topology: Topology, pairs: int) -> Network:
    """Return senders ``s1`` … and receivers ``d1`` … around the observed link ``r1-r2``."""
    senders, receivers = numbered("s", pairs), numbered("d", pairs)
    roles = dict.fromkeys(senders, "sender") | dict.fromkeys(("r1", "r2"), "router")
    return assemble(
        topology,
        roles | dict.fromkeys(receivers, "receiver"),
        [*((host, "r1") for host in senders), ("r1", "r2"), *(("r2", host) for host in receivers)],
        observed=["r1->r2", "r2->r1"],
        peers=zip(senders, receivers, strict=True),
    )


DUMBBELL = TopologyKind("dumbbell", "s1 s2 … - r1 - r2 - d1 d2 …", (PAIRS,), dumbbell)


# --- parking lot: a chain of hops, each shared by flows along the whole chain and cross flows -----

HOPS = parameter("hops", 2, 8, 3, "How many observed links in a row a parking lot has")


def parking_lot(topology: Topology, hops: int) -> Network:
    """Return ``h1 - r1 - r2 - … - h2``, with a cross flow from ``sN`` to ``dN`` over hop N.

    The links between routers are observed, first those away from ``h1``. The path from ``h1`` to
    ``h2`` crosses all hops, the path of a cross flow only one.
    """
    routers = numbered("r", hops + 1)
    senders, receivers = numbered("s", hops), numbered("d", hops)
    roles = dict.fromkeys(["h1", *senders], "sender") | dict.fromkeys(routers, "router")
    chain = list(pairwise(routers))
    cables = [("h1", routers[0]), *chain, (routers[-1], "h2")]
    cables += [(sender, router) for sender, router in zip(senders, routers, strict=False)]
    cables += [(router, receiver) for router, receiver in zip(routers[1:], receivers, strict=True)]
    return assemble(
        topology,
        roles | dict.fromkeys(["h2", *receivers], "receiver"),
        cables,
        observed=[f"{a}->{b}" for a, b in chain] + [f"{b}->{a}" for a, b in reversed(chain)],
        peers=[("h1", "h2"), *zip(senders, receivers, strict=True)],
    )


PARKING_LOT = TopologyKind(
    "parking-lot", "h1 - r1 - r2 - … - h2, with sN - rN, rN+1 - dN", (HOPS,), parking_lot
)


# --- star: hosts around one router ----------------------------------------------------------------

STAR_HOSTS = parameter("hosts", 2, 64, 8, "How many hosts a star has")


def star(topology: Topology, hosts: int) -> Network:
    """Return hosts ``h1`` … around the router ``r``, whose egresses are observed."""
    names = numbered("h", hosts)
    return fabric(topology, names, ["r"], {EDGE: [(host, "r") for host in names]})


STAR = TopologyKind("star", "h1 h2 … around r", (STAR_HOSTS,), star)


# --- leaf-spine: every leaf has a cable to every spine, so there are as many paths as spines ------

LEAVES = parameter("leaves", 2, 16, 4, "How many leaves, the routers of hosts, a leaf-spine has")
SPINES = parameter("spines", 1, 8, 2, "How many spines join the leaves, each by a path of its own")
HOSTS = parameter("hosts", 1, 16, 4, "How many hosts a leaf has")


def leaf_spine(topology: Topology, leaves: int, spines: int, hosts: int) -> Network:
    """Return hosts ``h1`` … below leaves ``leaf1`` …, with every leaf below all spines.

    Tiers: ``edge`` joins hosts to leaves, ``core`` joins leaves to spines.
    """
    low, high = numbered("leaf", leaves), numbered("spine", spines)
    names = numbered("h", leaves * hosts)
    return fabric(
        topology,
        names,
        [*low, *high],
        {
            EDGE: [(host, low[number // hosts]) for number, host in enumerate(names)],
            CORE: [(leaf, spine) for leaf in low for spine in high],
        },
    )


LEAF_SPINE = TopologyKind(
    "leaf-spine",
    "h1 h2 … - leaf1 leaf2 … - spine1 spine2 …, every leaf at every spine",
    (LEAVES, SPINES, HOSTS),
    leaf_spine,
)


# --- super-spine: pods of leaves and spines, joined by a tier above the spines --------------------

PODS = parameter("pods", 2, 8, 2, "How many pods a super-spine has")
POD_LEAVES = parameter("leaves", 1, 8, 2, "How many leaves, the routers of hosts, a pod has")
POD_SPINES = parameter("spines", 1, 4, 2, "How many spines a pod has")
SUPERS = parameter("supers", 1, 8, 2, "How many super-spines join the pods")


def super_spine(topology: Topology, pods: int, *each: int) -> Network:
    """Return ``pods`` leaf-spines; every spine has a cable to every super-spine.

    Leaves, spines and hosts are numbered across all pods. Tiers: ``edge`` joins hosts to leaves,
    ``aggregation`` leaves to spines, ``core`` spines to super-spines.
    """
    leaves, spines, supers, hosts = each
    low, middle = numbered("leaf", pods * leaves), numbered("spine", pods * spines)
    top, names = numbered("super", supers), numbered("h", pods * leaves * hosts)
    return fabric(
        topology,
        names,
        [*low, *middle, *top],
        {
            EDGE: [(host, low[number // hosts]) for number, host in enumerate(names)],
            AGGREGATION: [
                (leaf, spine)
                for pod in range(pods)
                for leaf in low[pod * leaves : (pod + 1) * leaves]
                for spine in middle[pod * spines : (pod + 1) * spines]
            ],
            CORE: [(spine, top_spine) for spine in middle for top_spine in top],
        },
    )


SUPER_SPINE = TopologyKind(
    "super-spine",
    "h1 h2 … - leaf1 … - spine1 … - super1 …, pods of leaves and spines below super-spines",
    (PODS, POD_LEAVES, POD_SPINES, SUPERS, HOSTS),
    super_spine,
)


# --- fat tree of k-port routers: k³/4 hosts, and (k/2)² paths between those of two pods -----------

# Source: Al-Fares, Loukissas, Vahdat, "A Scalable, Commodity Data Center Network Architecture",
# 2008: k³/4 hosts, and (k/2)² paths between those of two pods.

# k = 10 would have 1,500 directed links; an event can list at most 1,000 (base.FEW).
PORTS = parameter("k", 2, 8, 4, "How many ports each router of a fat tree has: 2, 4, 6 or 8")


def fat_tree(topology: Topology, k: int) -> Network:
    """Return k pods of k/2 edge and k/2 aggregation routers each, below (k/2)² core routers.

    Aggregation router N of each pod has cables to the Nth group of k/2 core routers. Tiers:
    ``edge`` joins hosts to edge routers, ``aggregation`` edge to aggregation routers, ``core``
    aggregation to core routers. Raises ``CommandError`` if k is odd.
    """
    if k % 2:
        raise CommandError(f"topology fat-tree: k is even, not {k}")
    half = k // 2
    low, middle = numbered("edge", k * half), numbered("agg", k * half)
    top, names = numbered("core", half * half), numbered("h", k * half * half)
    return fabric(
        topology,
        names,
        [*low, *middle, *top],
        {
            EDGE: [(host, low[number // half]) for number, host in enumerate(names)],
            AGGREGATION: [
                (edge, middle[number // half * half + other])
                for number, edge in enumerate(low)
                for other in range(half)
            ],
            CORE: [
                (each, top[number % half * half + other])
                for number, each in enumerate(middle)
                for other in range(half)
            ],
        },
    )


FAT_TREE = TopologyKind(
    "fat-tree", "h1 h2 … - edge1 … - agg1 … - core1 …, of routers with k ports", (PORTS,), fat_tree
)


# --- loopless: a tree of routers, so there is one path between any two hosts ----------------------

BRANCHES = parameter(
    "branches", 2, 4, 2, "How many routers each router of the upper two tiers has below it"
)
LOOPLESS_HOSTS = parameter("hosts", 1, 16, 4, "How many hosts a router of the lowest tier has")


def loopless(topology: Topology, branches: int, hosts: int) -> Network:
    """Return ``core1`` above ``branches`` aggregation routers, each above as many edge routers.

    Tiers: ``edge`` joins hosts to edge routers, ``aggregation`` edge to aggregation routers,
    ``core`` aggregation routers to the core router.
    """
    low, middle = numbered("edge", branches * branches), numbered("agg", branches)
    names = numbered("h", branches * branches * hosts)
    return fabric(
        topology,
        names,
        [*low, *middle, "core1"],
        {
            EDGE: [(host, low[number // hosts]) for number, host in enumerate(names)],
            AGGREGATION: [(edge, middle[number // branches]) for number, edge in enumerate(low)],
            CORE: [(each, "core1") for each in middle],
        },
    )


LOOPLESS = TopologyKind(
    "loopless", "h1 h2 … - edge1 … - agg1 … - core1, a tree", (BRANCHES, LOOPLESS_HOSTS), loopless
)


# --- multihomed: two hosts with several links each, and a path through each link ------------------

PATHS = parameter(
    "paths", 2, 4, 2, "How many links each of the two hosts has, each to another router"
)


def multihomed(topology: Topology, paths: int) -> Network:
    """Return hosts ``h1`` and ``h2``, each with a link to every router.

    A host has an address on each of its links; the one on path 1 is the node's own. Packets take
    the path of the address to which they are sent.
    """
    routers = numbered("r", paths)
    return assemble(
        topology,
        {"h1": "sender", **dict.fromkeys(routers, "router"), "h2": "receiver"},
        [*(("h1", router) for router in routers), *((router, "h2") for router in routers)],
        observed=[*(f"{each}->h2" for each in routers), *(f"{each}->h1" for each in routers)],
        peers=[("h1", "h2")],
    )


MULTIHOMED = TopologyKind(
    "multihomed", "h1 - r1, r2 … - h2, both hosts at every router", (PATHS,), multihomed
)


# --- all topologies -----------------------------------------------------------------------------

WRITTEN = TopologyKind(
    "written", "the hosts, routers and links that it lists", (), written.generate
)

TOPOLOGIES: dict[str, TopologyKind] = {
    each.name: each
    for each in (
        LINEAR,
        DUMBBELL,
        PARKING_LOT,
        STAR,
        LEAF_SPINE,
        SUPER_SPINE,
        FAT_TREE,
        LOOPLESS,
        MULTIHOMED,
        WRITTEN,
    )
}
"""All topologies by name, for scenarios, schema, lab and screen."""


def parameters() -> Iterable[Field]:
    """Yield the parameters of all topologies, each name once, with the widest bounds it has."""
    found: dict[str, list[Field]] = {}
    for each in (each for kind in TOPOLOGIES.values() for each in kind.parameters):
        found.setdefault(each.name, []).append(each)
    for same in found.values():
        lows = [each.low for each in same if each.low is not None]
        highs = [each.high for each in same if each.high is not None]
        meaning = "; ".join(dict.fromkeys(each.meaning for each in same))
        yield replace(same[0], low=min(lows), high=max(highs), meaning=meaning)


def generated() -> Iterable[TopologyKind]:
    """Yield the topologies that numeric parameters describe completely."""
    return (kind for kind in TOPOLOGIES.values() if kind is not WRITTEN)


def topology_of(kind: str, values: Mapping[str, int]) -> Topology:
    """Return a topology with these parameters; missing ones have the generator's defaults."""
    others = {name: value for name, value in values.items() if name != "pairs"}
    return Topology(kind=kind, pairs=values.get("pairs", Topology().pairs), parameters=others)


def plan(topology: Topology) -> Network:
    """Return the network of a topology.

    Raises ``CommandError`` for an unknown topology or parameter, a value out of bounds, and
    whatever the generator refuses.
    """
    kind = TOPOLOGIES.get(topology.kind)
    if kind is None:
        known = ", ".join(TOPOLOGIES)
        raise CommandError(f"no topology {topology.kind!r}; there are: {known}")
    for name in topology.parameters:
        if name not in [each.name for each in kind.parameters]:
            raise CommandError(f"topology {kind.name} has no parameter {name!r}")
    network = kind.generate(topology, *(value_of(each, topology) for each in kind.parameters))
    if not topology.observed:
        return network
    for each in topology.observed:
        if problem := observed_problem(network, each):
            raise CommandError(problem)
    return replace(network, bottlenecks=list(dict.fromkeys(topology.observed)))


def observed_problem(network: Network, link: str) -> str | None:
    """Return why the queue of ``link`` can't be observed; None if it can."""
    names = [each.name for each in network.links]
    if link in names:
        return None
    return f"there is no link {quote(link)} in one direction{did_you_mean(link, names)}"


def describe_topology(topology: Topology) -> str:
    """Return a topology as text: ``dumbbell, 2 pairs``."""
    kind = TOPOLOGIES.get(topology.kind)
    if kind is None:
        return topology.kind
    if topology.written is not None:
        return written.describe(topology.written)
    counts = [(each, topology.parameter(each.name, each.default)) for each in kind.parameters]
    counts_text = [counted(*each) for each in counts if not is_implied(*each)]
    return ", ".join([kind.name, *counts_text])

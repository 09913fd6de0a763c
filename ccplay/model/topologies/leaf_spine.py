"""Leaf-spine: every leaf has a cable to every spine, so there are as many paths as spines."""

from __future__ import annotations

from ccplay.model.network import Network, Topology
from ccplay.model.topologies.fabric import CORE, EDGE, fabric, numbered
from ccplay.model.topologies.kind import TopologyKind, parameter

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


KIND = TopologyKind(
    "leaf-spine",
    "h1 h2 … - leaf1 leaf2 … - spine1 spine2 …, every leaf at every spine",
    (LEAVES, SPINES, HOSTS),
    leaf_spine,
)

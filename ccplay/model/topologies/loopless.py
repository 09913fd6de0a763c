"""Loopless: a tree of routers, so there is one path between any two hosts."""

from __future__ import annotations

from ccplay.model.network import Network, Topology
from ccplay.model.topologies.fabric import AGGREGATION, CORE, EDGE, fabric, numbered
from ccplay.model.topologies.kind import TopologyKind, parameter

BRANCHES = parameter(
    "branches", 2, 4, 2, "How many routers each router of the upper two tiers has below it"
)
HOSTS = parameter("hosts", 1, 16, 4, "How many hosts a router of the lowest tier has")


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


KIND = TopologyKind(
    "loopless", "h1 h2 … - edge1 … - agg1 … - core1, a tree", (BRANCHES, HOSTS), loopless
)

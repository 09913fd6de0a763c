"""Multihomed: two hosts with several links each, and a path through each link."""

from __future__ import annotations

from ccplay.model.network import Network, Topology, assemble
from ccplay.model.topologies.fabric import numbered
from ccplay.model.topologies.kind import TopologyKind, parameter

PATHS = parameter("paths", 2, 4, 2, "How many links two multihomed hosts have, each to a router")


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


KIND = TopologyKind(
    "multihomed", "h1 - r1, r2 … - h2, both hosts at every router", (PATHS,), multihomed
)

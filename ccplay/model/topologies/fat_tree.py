"""Fat tree of k-port routers: k³/4 hosts, and (k/2)² paths between those of two pods.

Source: Al-Fares, Loukissas, Vahdat, "A Scalable, Commodity Data Center Network Architecture", 2008.
"""

from __future__ import annotations

from ccplay.errors import CommandError
from ccplay.model.network import Network, Topology
from ccplay.model.topologies.fabric import AGGREGATION, CORE, EDGE, fabric, numbered
from ccplay.model.topologies.kind import TopologyKind, parameter

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


KIND = TopologyKind(
    "fat-tree", "h1 h2 … - edge1 … - agg1 … - core1 …, of routers with k ports", (PORTS,), fat_tree
)

"""Super-spine: pods of leaves and spines, joined by a tier above the spines."""

from __future__ import annotations

from ccplay.model.network import Network, Topology
from ccplay.model.topologies.fabric import AGGREGATION, CORE, EDGE, fabric, numbered
from ccplay.model.topologies.kind import TopologyKind, parameter
from ccplay.model.topologies.leaf_spine import HOSTS

PODS = parameter("pods", 2, 8, 2, "How many pods a super-spine has")
LEAVES = parameter("leaves", 1, 8, 2, "How many leaves, the routers of hosts, a pod has")
SPINES = parameter("spines", 1, 4, 2, "How many spines a pod has")
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


KIND = TopologyKind(
    "super-spine",
    "h1 h2 … - leaf1 … - spine1 … - super1 …, pods of leaves and spines below super-spines",
    (PODS, LEAVES, SPINES, SUPERS, HOSTS),
    super_spine,
)

"""Star: hosts around one router."""

from __future__ import annotations

from ccplay.model.network import Network, Topology
from ccplay.model.topologies.fabric import EDGE, fabric, numbered
from ccplay.model.topologies.kind import TopologyKind, parameter

HOSTS = parameter("hosts", 2, 64, 8, "How many hosts a star has")


def star(topology: Topology, hosts: int) -> Network:
    """Return hosts ``h1`` … around the router ``r``, whose egresses are observed."""
    names = numbered("h", hosts)
    return fabric(topology, names, ["r"], {EDGE: [(host, "r") for host in names]})


KIND = TopologyKind("star", "h1 h2 … around r", (HOSTS,), star)

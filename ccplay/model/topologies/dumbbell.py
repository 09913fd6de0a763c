"""Dumbbell: pairs of hosts that share one link between two routers."""

from __future__ import annotations

from ccplay.model.network import Network, Topology, assemble
from ccplay.model.topologies.kind import TopologyKind, parameter

PAIRS = parameter("pairs", 1, 8, 2, "How many senders, and how many receivers, a dumbbell has")


def dumbbell(topology: Topology, pairs: int) -> Network:
    """Return senders ``s1`` … and receivers ``d1`` … around the observed link ``r1-r2``."""
    senders = [f"s{number}" for number in range(1, pairs + 1)]
    receivers = [f"d{number}" for number in range(1, pairs + 1)]
    roles = dict.fromkeys(senders, "sender") | dict.fromkeys(("r1", "r2"), "router")
    return assemble(
        topology,
        roles | dict.fromkeys(receivers, "receiver"),
        [*((host, "r1") for host in senders), ("r1", "r2"), *(("r2", host) for host in receivers)],
        observed=["r1->r2", "r2->r1"],
        peers=zip(senders, receivers, strict=True),
    )


KIND = TopologyKind("dumbbell", "s1 s2 … - r1 - r2 - d1 d2 …", (PAIRS,), dumbbell)

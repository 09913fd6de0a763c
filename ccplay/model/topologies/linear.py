"""Linear: two hosts and the routers between them."""

from __future__ import annotations

from itertools import pairwise

from ccplay.model.network import Network, Topology, assemble
from ccplay.model.topologies.kind import TopologyKind, parameter

ROUTERS = parameter("routers", 1, 16, 1, "How many routers in a row a linear network has")


def linear(topology: Topology, routers: int) -> Network:
    """Return ``h1 - r - h2``, or with several routers ``h1 - r1 - r2 - … - h2``.

    Every egress of a router is observed, first those towards ``h2``.
    """
    names = ["r"] if routers == 1 else [f"r{number}" for number in range(1, routers + 1)]
    cables = list(pairwise(["h1", *names, "h2"]))
    return assemble(
        topology,
        {"h1": "sender", **dict.fromkeys(names, "router"), "h2": "receiver"},
        cables,
        observed=[f"{a}->{b}" for a, b in cables[1:]]
        + [f"{b}->{a}" for a, b in reversed(cables[:-1])],
        peers=[("h1", "h2")],
    )


KIND = TopologyKind("linear", "h1 - r - h2, or more routers in a row", (ROUTERS,), linear)

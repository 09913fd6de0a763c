"""Parking lot: a chain of hops, each shared by flows along the whole chain and cross flows."""

from __future__ import annotations

from itertools import pairwise

from ccplay.model.network import Network, Topology, assemble
from ccplay.model.topologies.kind import TopologyKind, parameter

HOPS = parameter("hops", 2, 8, 3, "How many observed links in a row a parking lot has")


def parking_lot(topology: Topology, hops: int) -> Network:
    """Return ``h1 - r1 - r2 - … - h2``, with a cross flow from ``sN`` to ``dN`` over hop N.

    The links between routers are observed, first those away from ``h1``. The path from ``h1`` to
    ``h2`` crosses all hops, the path of a cross flow only one.
    """
    numbers = range(1, hops + 1)
    routers = [f"r{number}" for number in range(1, hops + 2)]
    senders, receivers = [f"s{n}" for n in numbers], [f"d{n}" for n in numbers]
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


KIND = TopologyKind(
    "parking-lot", "h1 - r1 - r2 - … - h2, with sN - rN, rN+1 - dN", (HOPS,), parking_lot
)

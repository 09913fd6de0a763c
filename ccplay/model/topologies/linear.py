"""Linear: two hosts and a router between them."""

from __future__ import annotations

from ccplay.model.network import Network, Topology, assemble
from ccplay.model.topologies.kind import TopologyKind


def linear(topology: Topology) -> Network:
    """Return ``h1 - r - h2``, with both egresses of the router observed."""
    return assemble(
        topology,
        {"h1": "sender", "r": "router", "h2": "receiver"},
        [("h1", "r"), ("r", "h2")],
        observed=["r->h2", "r->h1"],
        peers=[("h1", "h2")],
    )


KIND = TopologyKind("linear", "h1 - r - h2", (), linear)

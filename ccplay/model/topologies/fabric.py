"""Fabrics: equivalent hosts below tiers of routers; the links of each tier form a group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ccplay.model.network import Network, Topology, assemble

EDGE, AGGREGATION, CORE = "edge", "aggregation", "core"
"""Names of the tiers of cables, from the hosts to the top."""


def numbered(prefix: str, count: int) -> list[str]:
    """Return ``count`` names: the prefix and a number from 1."""
    return [f"{prefix}{number}" for number in range(1, count + 1)]


def fabric(
    topology: Topology,
    hosts: Sequence[str],
    routers: Sequence[str],
    tiers: Mapping[str, Sequence[tuple[str, str]]],
) -> Network:
    """Return a network with cables in tiers, each of which is a group of links.

    ``tiers`` maps the name of each tier, lowest tier first, to its cables, lower end first. Host N
    of the first half is the peer of host N of the second half, so that traffic between peers
    crosses as much of the fabric as any, and no two pairs share a host. Every egress of a router is
    observed: first those upwards, from the bottom to the top, then those downwards.
    """
    half = len(hosts) // 2
    senders, receivers = hosts[:half], hosts[half:]
    upwards = [f"{low}->{high}" for tier in tiers.values() for low, high in tier if low in routers]
    downwards = [f"{high}->{low}" for tier in reversed([*tiers.values()]) for low, high in tier]
    return assemble(
        topology,
        {
            **dict.fromkeys(senders, "sender"),
            **dict.fromkeys(routers, "router"),
            **dict.fromkeys(receivers, "receiver"),
        },
        [cable for tier in tiers.values() for cable in tier],
        observed=[*upwards, *downwards],
        # With an odd number of hosts, the last one has no peer of its own.
        peers=zip(senders, receivers, strict=False),
        groups=tiers,
    )

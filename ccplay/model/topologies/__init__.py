"""Topologies: each a file with a generator of networks, and the parameters that it takes.

A generator is pure: it knows no kernel, no scenario and no screen.
"""

from __future__ import annotations

from ccplay.errors import CommandError
from ccplay.model.network import Network, Topology
from ccplay.model.topologies import dumbbell, linear, parking_lot
from ccplay.model.topologies.kind import TopologyKind, noun, value

TOPOLOGIES: dict[str, TopologyKind] = {
    each.name: each for each in (linear.KIND, dumbbell.KIND, parking_lot.KIND)
}
"""Every topology by name: the table that scenarios, schema, lab and screen read."""


def plan(topology: Topology) -> Network:
    """Return the network of a topology.

    Raises ``CommandError`` for an unknown topology and for a parameter out of bounds.
    """
    kind = TOPOLOGIES.get(topology.kind)
    if kind is None:
        known = ", ".join(TOPOLOGIES)
        raise CommandError(f"no topology {topology.kind!r}; there are: {known}")
    for name in topology.parameters:
        if name not in [each.name for each in kind.parameters]:
            raise CommandError(f"topology {kind.name} has no parameter {name!r}")
    return kind.generate(topology, *(value(each, topology) for each in kind.parameters))


def describe_topology(topology: Topology) -> str:
    """Return a topology in words: ``dumbbell, 2 pairs``."""
    kind = TOPOLOGIES.get(topology.kind)
    if kind is None:
        return topology.kind
    counts = [(topology.parameter(each.name, each.default), each) for each in kind.parameters]
    return ", ".join([kind.name, *(f"{count} {noun(each, count)}" for count, each in counts)])

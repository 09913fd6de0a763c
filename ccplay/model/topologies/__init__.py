"""The topologies, one module each: a generator of networks and its parameters.

A generator is a pure function: it depends on neither kernel nor scenario nor screen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from ccplay.errors import CommandError
from ccplay.model.network import Network, Topology
from ccplay.model.quantities import Field, did_you_mean, quote
from ccplay.model.topologies import (
    dumbbell,
    fat_tree,
    leaf_spine,
    linear,
    loopless,
    multihomed,
    parking_lot,
    star,
    super_spine,
    written,
)
from ccplay.model.topologies.kind import TopologyKind, counted, is_implied, value

TOPOLOGIES: dict[str, TopologyKind] = {
    each.name: each
    for each in (
        linear.KIND,
        dumbbell.KIND,
        parking_lot.KIND,
        star.KIND,
        leaf_spine.KIND,
        super_spine.KIND,
        fat_tree.KIND,
        loopless.KIND,
        multihomed.KIND,
        written.KIND,
    )
}
"""All topologies by name, for scenarios, schema, lab and screen."""


def parameters() -> Iterable[Field]:
    """Yield the parameters of all topologies, each name once, with the widest bounds it has."""
    found: dict[str, list[Field]] = {}
    for each in (each for kind in TOPOLOGIES.values() for each in kind.parameters):
        found.setdefault(each.name, []).append(each)
    for same in found.values():
        lows = [each.low for each in same if each.low is not None]
        highs = [each.high for each in same if each.high is not None]
        meaning = "; ".join(dict.fromkeys(each.meaning for each in same))
        yield replace(same[0], low=min(lows), high=max(highs), meaning=meaning)


def generated() -> Iterable[TopologyKind]:
    """Yield the topologies that numeric parameters describe completely."""
    return (kind for kind in TOPOLOGIES.values() if kind is not written.KIND)


def topology_of(kind: str, values: Mapping[str, int]) -> Topology:
    """Return a topology with these parameters; missing ones have the generator's defaults."""
    others = {name: value for name, value in values.items() if name != "pairs"}
    return Topology(kind=kind, pairs=values.get("pairs", Topology().pairs), parameters=others)


def plan(topology: Topology) -> Network:
    """Return the network of a topology.

    Raises ``CommandError`` for an unknown topology or parameter, a value out of bounds, and
    whatever the generator refuses.
    """
    kind = TOPOLOGIES.get(topology.kind)
    if kind is None:
        known = ", ".join(TOPOLOGIES)
        raise CommandError(f"no topology {topology.kind!r}; there are: {known}")
    for name in topology.parameters:
        if name not in [each.name for each in kind.parameters]:
            raise CommandError(f"topology {kind.name} has no parameter {name!r}")
    network = kind.generate(topology, *(value(each, topology) for each in kind.parameters))
    if not topology.observed:
        return network
    for each in topology.observed:
        if problem := observed_problem(network, each):
            raise CommandError(problem)
    return replace(network, bottlenecks=list(dict.fromkeys(topology.observed)))


def observed_problem(network: Network, link: str) -> str | None:
    """Return why the queue of ``link`` can't be observed; None if it can."""
    names = [each.name for each in network.links]
    if link in names:
        return None
    return f"there is no link {quote(link)} in one direction{did_you_mean(link, names)}"


def describe_topology(topology: Topology) -> str:
    """Return a topology as text: ``dumbbell, 2 pairs``."""
    kind = TOPOLOGIES.get(topology.kind)
    if kind is None:
        return topology.kind
    if topology.written is not None:
        return written.describe(topology.written)
    counts = [(each, topology.parameter(each.name, each.default)) for each in kind.parameters]
    counts_text = [counted(*each) for each in counts if not is_implied(*each)]
    return ", ".join([kind.name, *counts_text])

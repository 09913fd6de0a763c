"""Paths that the user can choose for traffic, for keys and palette."""

from __future__ import annotations

from collections.abc import Iterator

from ccplay.model.commands import SetPath
from ccplay.model.network import Network
from ccplay.model.traffic import KINDS
from ccplay.state.lab_state import Flow, LabState, Traffic
from ccplay.state.traffic import Routed

_MOST_OFFERED = 16
"""Largest number of paths that the palette offers for one flow."""


def name_of(traffic: Traffic) -> str:
    """Return the name of traffic in commands; for a stream or subflow, that of its flow."""
    return traffic.parent if isinstance(traffic, Flow) else traffic.name


def can_choose(traffic: Traffic, network: Network) -> bool:
    """Return whether traffic has several paths, and a command can choose one."""
    chosen = "via" in KINDS[traffic.kind].start.__struct_fields__
    return chosen and len(network.paths(traffic.src, traffic.dst)) > 1


def offers(state: LabState, traffic: Traffic, network: Network) -> Iterator[tuple[str, SetPath]]:
    """Yield the other paths of running traffic: a description, and the command."""
    if not can_choose(traffic, network):
        return
    subject = state.flows.get(traffic.name, traffic)
    now = subject.paths[-1] if isinstance(subject, Routed) and subject.paths else None
    paths = network.paths(traffic.src, traffic.dst)[:_MOST_OFFERED]
    nodes = [[link.dst for link in path[:-1]] for path in paths]
    shared = set.intersection(*map(set, nodes))
    for path, routers in zip(paths, nodes, strict=True):
        if now is None or [link.name for link in path] != now.links or not now.pinned:
            via = [each for each in routers if each not in shared]
            yield f"via {', '.join(via)}", SetPath(traffic=name_of(traffic), via=via)
    if now is not None and now.pinned:
        yield "by hash", SetPath(traffic=name_of(traffic), via=[])

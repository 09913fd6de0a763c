"""The way from host to host over a network's links, and what it is set to delay."""

from __future__ import annotations

from ccplay.model.values import Network
from ccplay.state.lab_state import LabState

_ENDS = ("sender", "receiver")


def base_rtt(state: LabState, network: Network | None) -> tuple[tuple[float, float | None], ...]:
    """Return the delay that the links are set to add, there and back, in ms, at each change."""
    if network is None:
        return ()
    hosts = [next((n.name for n in network.nodes if n.role == role), "") for role in _ENDS]
    names = [*path(network, hosts[0], hosts[1]), *path(network, hosts[1], hosts[0])]
    moments = sorted({change.t for name in names for change in state.links.get(name, ())})
    changes: list[tuple[float, float | None]] = []
    for t in moments:
        settings = [state.link_at(name, t) for name in names]
        total = sum((each.setting.delay_us or 0) * 1e-3 for each in settings if each)
        changes.append((t, total or None))
    return tuple(changes)


def path(network: Network, src: str, dst: str) -> list[str]:
    """Return the names of the directed links from one node to another."""
    ways: dict[str, list[str]] = {src: []}
    queue: list[str] = [src]
    for node in queue:
        for link in network.links:
            if link.src == node and link.dst not in ways:
                ways[link.dst] = [*ways[node], link.name]
                queue.append(link.dst)
    return ways.get(dst, [])

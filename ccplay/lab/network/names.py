"""Which directions of links a name stands for."""

from __future__ import annotations

from ccplay.errors import CommandError
from ccplay.model.values import BOTTLENECK, Link, Network


def directions(network: Network, name: str) -> list[Link]:
    """Return the directed links that a name stands for. Raises ``CommandError``."""
    links = {link.name: link for link in network.links}
    if name == BOTTLENECK:
        return [links[each] for each in network.bottlenecks]
    if name in links:
        return [links[name]]
    one, _, other = name.partition("-")
    both = [links[each] for each in (f"{one}->{other}", f"{other}->{one}") if each in links]
    if len(both) != 2:
        pairs = ", ".join(f"{each.src}-{each.dst}" for each in network.links[::2])
        raise CommandError(f"no link {name!r}; there are: {BOTTLENECK}, {pairs}")
    return both


def capture_point(network: Network, name: str) -> Link:
    """Return the direction that is named; of two the one under study, or else the router's own.

    Raises ``CommandError``.
    """
    routers = [node.name for node in network.nodes if node.role == "router"]

    def rank(link: Link) -> int:
        if link.name in network.bottlenecks:
            return network.bottlenecks.index(link.name)
        return len(network.bottlenecks) + (link.src not in routers)

    return min(directions(network, name), key=rank)

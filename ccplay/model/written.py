"""Written: nodes and links listed one by one, in a scenario or by a Mininet file."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from typing import TypeAlias

from msgspec.structs import replace

from ccplay.errors import CommandError
from ccplay.model.network import Network, Topology, WrittenNetwork, assemble
from ccplay.model.quantities import did_you_mean, quote

MOST_HOSTS, MOST_ROUTERS, MOST_LINKS = 128, 256, 400
"""Largest numbers of hosts, routers and cables; the largest fat tree has 128, 80 and 384."""

NODE_PATTERN = r"[A-Za-z0-9]([A-Za-z0-9_-]{0,14}[A-Za-z0-9_])?"
"""Pattern of the names of hosts and routers."""

_NODE = re.compile(NODE_PATTERN)
_NAMES = "up to 16 letters, digits, dashes and underscores, no dash at either end"

Where: TypeAlias = tuple[str | int, ...]
"""Keys and indexes below ``topology`` in a scenario file: ``("links", 2, "ends")``."""


def mistakes(written: WrittenNetwork) -> Iterator[tuple[Where, str]]:
    """Yield the mistakes in names and links, each as its place and a message."""
    nodes: set[str] = set()
    for key, names in (("hosts", written.hosts), ("routers", written.routers)):
        for number, name in enumerate(names):
            if not _NODE.fullmatch(name):
                yield (key, number), f"{quote(name)} is not a name of a node: {_NAMES}"
            if name in nodes:
                yield (key, number), f"there is a node {quote(name)} already"
            nodes.add(name)
    for key, many, most in (
        ("hosts", written.hosts, MOST_HOSTS),
        ("routers", written.routers, MOST_ROUTERS),
        ("links", written.cables, MOST_LINKS),
    ):
        if len(many) > most:
            yield (key,), f"more than {most}"
    if len(written.hosts) < 2:
        yield ("hosts",), "a network needs two hosts or more"
    yield from _wrong_links(written, nodes)


def _wrong_links(written: WrittenNetwork, nodes: set[str]) -> Iterator[tuple[Where, str]]:
    directed = sorted({f"{a}->{b}" for ends in written.cables for a, b in (ends, ends[::-1])})
    for number, name in enumerate(written.observed):
        if name not in directed:
            hint = did_you_mean(name, directed)
            yield ("observed", number), f"there is no link {quote(name)} in one direction{hint}"
    seen: set[str] = set()
    for number, ends in enumerate(written.cables):
        for place, node in enumerate(ends):
            if node not in nodes:
                known = did_you_mean(node, sorted(filter(None, nodes)))
                yield ("links", number, "ends", place), f"there is no node {quote(node)}{known}"
        if ends[0] == ends[1]:
            yield ("links", number, "ends"), f"joins {quote(ends[0])} with itself"
            continue
        names = {"-".join(ends), "-".join(reversed(ends))}
        if names & seen:
            text = f"there is a link {ends[0]}-{ends[1]} already: two nodes have one at most"
            yield ("links", number, "ends"), text
        seen |= names


def find_apart(written: WrittenNetwork) -> Iterator[tuple[Where, str]]:
    """Yield the place of, and a message about, each node that the first host can't reach.

    Hosts do not forward.
    """
    if not written.hosts:
        return
    first, routers = written.hosts[0], set(written.routers)
    beside: dict[str, list[str]] = {}
    for a, b in written.cables:
        beside.setdefault(a, []).append(b)
        beside.setdefault(b, []).append(a)
    reached = {first: None}
    queue = [first]
    for node in queue:
        if node == first or node in routers:
            fresh = [each for each in beside.get(node, ()) if each not in reached]
            reached |= dict.fromkeys(fresh)
            queue += fresh
    for key, names in (("hosts", written.hosts), ("routers", written.routers)):
        for number, node in enumerate(names):
            if node not in reached:
                hint = "hosts do not forward" if beside.get(node) else "it has no link"
                yield (key, number), f"no path from {first} to {node}: {hint}"


def generate(topology: Topology) -> Network:
    """Return the listed network, with addresses assigned by ccplay.

    Each host of the first half has a peer in the second half, as far away as possible. Raises
    ``CommandError`` with the first mistake.
    """
    written = topology.written or WrittenNetwork()
    for where, text in chain(mistakes(written), find_apart(written)):
        place = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in where)
        raise CommandError(f"topology{place}: {text}")
    half = len(written.hosts) // 2
    senders, receivers = written.hosts[:half], written.hosts[half:]
    roles = {
        **dict.fromkeys(senders, "sender"),
        **dict.fromkeys(written.routers, "router"),
        **dict.fromkeys(receivers, "receiver"),
    }
    directed = [f"{a}->{b}" for ends in written.cables for a, b in (ends, ends[::-1])]
    egresses = [each for each in directed if roles[each.partition("->")[0]] == "router"]

    def made(peers: Iterable[tuple[str, str]]) -> Network:
        observed = written.observed or egresses
        return assemble(topology, roles, written.cables, observed=observed, peers=peers)

    network = made(_farthest(made(()), senders, receivers))
    return network if written.observed else replace(network, bottlenecks=_in_order(network))


def _farthest(
    network: Network, senders: Iterable[str], receivers: Iterable[str]
) -> Iterator[tuple[str, str]]:
    """Yield each sender with the farthest remaining receiver, or the first of several as far."""
    left = [*receivers]
    for sender in senders:
        other = max(left, key=lambda each: network.hops(sender, each))
        left.remove(other)
        yield sender, other


def observing(written: WrittenNetwork, names: Collection[str]) -> WrittenNetwork:
    """Return ``written``, which must be valid, with these directed links observed.

    Links on the path of the first sender's traffic are shown first.
    """
    network = generate(Topology(kind="written", written=replace(written, observed=[])))
    return replace(written, observed=[each for each in network.bottlenecks if each in names])


def _in_order(network: Network) -> list[str]:
    first = network.senders[0]
    path = [link.name for link in network.path(first, network.peer(first))]
    return sorted(
        network.bottlenecks, key=lambda name: path.index(name) if name in path else len(path)
    )


def describe(written: WrittenNetwork) -> str:
    """Return the network as text: its name, or ``written, 4 hosts, 3 routers``."""
    counts = {"host": len(written.hosts), "router": len(written.routers)}
    parts = [f"{count} {noun}{'' if count == 1 else 's'}" for noun, count in counts.items()]
    return written.name or ", ".join(["written", *parts])

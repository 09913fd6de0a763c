"""Proof that every host reaches every other: a datagram from each to each, before links are shaped.

Without delays and queues a datagram arrives before the call that sends it returns, or little later,
so all pairs of 16 hosts take some milliseconds.
"""

from __future__ import annotations

import select
import socket
import time
from contextlib import ExitStack

from ccplay.errors import LabError
from ccplay.lab.network.netns import Namespace
from ccplay.lab.network.routing import Routing
from ccplay.model.network import Network

_PORT = 9
"""Where hosts listen: the port of the discard protocol (RFC 863)."""

_PATIENCE_S = 2.0
"""How long datagrams may take on a machine that is busy with something else."""


def prove(network: Network, namespaces: dict[str, Namespace], routing: Routing) -> None:
    """Send a datagram from every host to every other that it has a path to.

    Raises ``LabError`` that names a pair, and the node where its packets end.
    """
    addresses = {network.address(host): host for host in network.hosts}
    with ExitStack() as stack:
        listening = {}
        for host in network.hosts:
            each = namespaces[host].socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
            listening[host] = stack.enter_context(each)
            each.bind((network.address(host), _PORT))
        missing = set[tuple[str, str]]()
        # After each sender all receive: no receiver's buffer has to hold more than one round.
        for src in network.hosts:
            missing |= _send(network, src, listening[src])
            for dst in network.hosts:
                missing -= {(addresses.get(each, ""), dst) for each in _arrived(listening[dst])}
        deadline = time.monotonic() + _PATIENCE_S
        while missing and (left := deadline - time.monotonic()) > 0:
            ready, _, _ = select.select([listening[dst] for _, dst in missing], [], [], left)
            for dst in {dst for _, dst in missing if listening[dst] in ready}:
                missing -= {(addresses.get(each, ""), dst) for each in _arrived(listening[dst])}
    if missing:
        src, dst = min(missing)
        more = f" (and {len(missing) - 1} other pairs)" if len(missing) > 1 else ""
        raise LabError(f"{src} does not reach {dst}{more}: {routing.where_it_ends(src, dst)}")


def _send(network: Network, src: str, sender: socket.socket) -> set[tuple[str, str]]:
    """Send a datagram to every other host, and return the pairs that it concerns."""
    pairs = set()
    for dst in network.hosts:
        if dst == src or network.hops(src, dst) > len(network.links):
            continue
        pairs.add((src, dst))
        try:
            sender.sendto(b"?", (network.address(dst), _PORT))
        except OSError:
            # No route from here, or a router refused the one before: that it is missing says so.
            continue
    return pairs


def _arrived(receiver: socket.socket) -> list[str]:
    """Return from which addresses datagrams have come."""
    found = []
    while True:
        try:
            _, (address, _) = receiver.recvfrom(16)
        except BlockingIOError:
            return found
        except OSError:
            # An ICMP error about what this host itself has sent.
            continue
        found.append(address)

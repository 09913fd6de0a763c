"""Proves with datagrams that every host reaches every other, before links are shaped.

Without delays and queues a datagram arrives before the call that sends it returns, or shortly
after, so that all pairs of 16 hosts take some milliseconds.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from itertools import groupby
from typing import TypeAlias

from ccplay.errors import LabError
from ccplay.lab.network.netns import Namespace
from ccplay.lab.network.routing import Routing
from ccplay.model.network import Network

_PORT = 9
"""UDP port on which hosts receive the datagrams: that of the discard protocol (RFC 863)."""

_PATIENCE_S = 2.0
"""Longest time in seconds that the proof may take, which a busy machine may need."""

_AGAIN_S = 0.02
"""Seconds before missing datagrams are sent again. The kernel discards packets for some
milliseconds after both ends of a cable are up."""

_Pairs: TypeAlias = set[tuple[str, str]]


def prove(network: Network, namespaces: Mapping[str, Namespace], routing: Routing) -> None:
    """Send a datagram from every host to every other to which it has a path.

    Raises ``LabError`` that names a pair without connectivity and where its packets get lost.
    """
    missing = {
        (src, dst)
        for src in network.hosts
        for dst in network.hosts
        if src != dst and network.hops(src, dst) <= len(network.links)
    }
    with ExitStack() as stack:
        sockets = {}
        for host in network.hosts:
            each = namespaces[host].socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
            sockets[host] = stack.enter_context(each)
            each.bind((network.address(host), _PORT))
        deadline = time.monotonic() + _PATIENCE_S
        while missing and time.monotonic() < deadline:
            missing -= _try(network, sorted(missing), sockets)
    if missing:
        src, dst = min(missing)
        count = len(missing) - 1
        more = f" (and {count} other pair{'s' if count > 1 else ''} of hosts)" if count else ""
        raise LabError(f"{src} does not reach {dst}{more}: {routing.where_it_ends(src, dst)}")


def _try(
    network: Network, pairs: Iterable[tuple[str, str]], sockets: Mapping[str, socket.socket]
) -> _Pairs:
    """Send a datagram for each pair, and return the pairs whose datagrams arrived.

    ``pairs`` are sorted by their source.
    """
    hosts = {network.address(host): host for host in network.hosts}
    arrived: _Pairs = set()
    # Receivers are read after each sender, so that no buffer holds more than one round.
    for src, destinations in groupby(pairs, lambda pair: pair[0]):
        for _, dst in destinations:
            # Fails if the host has no route, or a router rejected an earlier datagram.
            with suppress(OSError):
                sockets[src].sendto(b"?", (network.address(dst), _PORT))
        arrived |= _received(hosts, sockets)
    if not arrived.issuperset(pairs):
        select.select([*sockets.values()], [], [], _AGAIN_S)
        arrived |= _received(hosts, sockets)
    return arrived


def _received(hosts: Mapping[str, str], sockets: Mapping[str, socket.socket]) -> _Pairs:
    """Return the pairs whose datagrams have arrived."""
    found: _Pairs = set()
    for dst, each in sockets.items():
        while True:
            try:
                _, (address, _) = each.recvfrom(16)
            except BlockingIOError:
                break
            except OSError:
                # An ICMP error about a datagram that this host sent.
                continue
            found.add((hosts.get(address, ""), dst))
    return found

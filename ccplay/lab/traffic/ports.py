"""Port numbers for the lab's own traffic, so that all of it is known by them."""

from __future__ import annotations

import itertools

SERVERS = range(5201, 10_000)
"""iperf3's own port and those after it: one server takes one flow."""

SENDERS = range(10_000, 32_000)
"""Below ``ip_local_port_range``, so no other socket takes one by chance."""


WEB = range(80, 144)
"""Where every web server listens: a download gets a port that no other running one has."""

ECHOES = range(1, 1 << 16)
"""Identifiers of pings (RFC 792); 0 would let ping(8) choose."""


class Ports:
    """Hands out ports; one comes again only when all others have been used."""

    def __init__(self) -> None:
        self._servers = itertools.cycle(SERVERS)
        self._senders = 0
        self._web = itertools.cycle(WEB)
        self._echoes = itertools.cycle(ECHOES)

    def server(self) -> int:
        """Return a port to listen on."""
        return next(self._servers)

    def web(self) -> int:
        """Return a port of a web server to fetch from."""
        return next(self._web)

    def echo(self) -> int:
        """Return an identifier for a ping."""
        return next(self._echoes)

    def senders(self, count: int) -> range:
        """Return ``count`` neighbouring ports to send from."""
        if self._senders + count > len(SENDERS):
            self._senders = 0
        first = SENDERS[self._senders]
        self._senders += count
        return range(first, first + count)

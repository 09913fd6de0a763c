"""Port numbers of the lab's traffic, which identify its packets."""

from __future__ import annotations

import itertools

SERVERS = range(5201, 10_000)
"""Ports of servers, beginning with iperf3's own: each flow has its own server."""

SENDERS = range(10_000, 32_000)
"""Ports to send from, below ``ip_local_port_range``, so that no other socket uses one by chance."""


WEB = range(80, 144)
"""Ports of every web server; each running download has its own."""

ECHOES = range(1, 1 << 16)
"""Identifiers of pings (RFC 792); given 0, ping(8) would choose one itself."""


class Ports:
    """Provides ports; one is reused only after all others."""

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
        """Return ``count`` consecutive ports to send from."""
        if self._senders + count > len(SENDERS):
            self._senders = 0
        first = SENDERS[self._senders]
        self._senders += count
        return range(first, first + count)

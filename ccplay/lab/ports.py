"""Port numbers for the lab's own traffic, so that every connection is known by them."""

from __future__ import annotations

SERVERS = range(5201, 10_000)
"""iperf3's own port and those after it: one server takes one flow."""

SENDERS = range(10_000, 32_000)
"""Below ``ip_local_port_range``, so no other socket takes one by chance."""


class Ports:
    """Hands out ports; one comes again only when all others have been used."""

    def __init__(self) -> None:
        self._servers = 0
        self._senders = 0

    def server(self) -> int:
        """Return a port to listen on."""
        self._servers += 1
        return SERVERS[(self._servers - 1) % len(SERVERS)]

    def senders(self, count: int) -> range:
        """Return ``count`` neighbouring ports to send from."""
        if self._senders + count > len(SENDERS):
            self._senders = 0
        first = SENDERS[self._senders]
        self._senders += count
        return range(first, first + count)

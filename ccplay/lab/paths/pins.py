"""Pins: paths that commands choose for some packets.

A pin consists of rules by addresses and ports, ip-rule(8), at each router with several next hops.
While a cable of its path is down, the hash chooses the packets' path.
"""

from __future__ import annotations

from typing import NamedTuple

from ccplay.errors import CommandError, LabError
from ccplay.lab.network.routing import Routing
from ccplay.model.network import Link, Network


class Packets(NamedTuple):
    """The packets that some traffic sends from its source to its destination."""

    ends: tuple[str, str]
    """Source and destination hosts."""
    protocol: int
    """Protocol: ``socket.IPPROTO_TCP`` or ``IPPROTO_UDP``."""
    sports: range | None
    """Source ports; None for any."""
    dport: int | None
    """Destination port; None for any."""


def choose(network: Network, packets: Packets, via: list[str]) -> list[str]:
    """Return the links of the first shortest path that leads through these nodes in this order.

    Raises ``CommandError``, which names the nodes on possible paths.
    """
    src, dst = packets.ends
    paths = network.paths(src, dst)
    for path in paths:
        passed = iter(link.dst for link in path)
        if all(node in passed for node in via):
            return [link.name for link in path]
    there = list(dict.fromkeys(link.dst for path in paths for link in path[:-1]))
    wanted = ", ".join(via)
    raise CommandError(
        f"no shortest path from {src} to {dst} leads through {wanted}; they lead through: "
        f"{', '.join(there) or 'no router'}"
    )


class Pin:
    """A path that some packets take while all of its cables are up."""

    def __init__(self, routing: Routing, packets: Packets, path: list[str]) -> None:
        """Prepare a pin; ``path`` lists names of links. ``renew`` puts the pin in force."""
        self.holds = False
        """Whether the pin is in force."""
        self._routing, self._packets = routing, packets
        self.path = [routing.network.link(name) for name in path]

    def renew(self) -> None:
        """Put the pin in force if all its cables are up; otherwise the hash chooses the path.

        Raises ``LabError`` if the kernel refuses; then the hash chooses, too.
        """
        self.remove()
        paths = self._routing.paths(*self._packets.ends)
        if self.path not in paths:
            return
        for number, link in enumerate(self._choices()):
            try:
                self._steer(link, on=True)
            except LabError:
                for earlier in self._choices()[:number]:
                    self._steer(earlier, on=False)
                raise
        self.holds = True

    def remove(self) -> None:
        """Remove the pin's rules, so that the hash chooses the packets' path."""
        if self.holds:
            self.holds = False
            for link in self._choices():
                self._steer(link, on=False)

    def _choices(self) -> list[Link]:
        """Return the pin's links out of routers with several next hops when all cables are up."""
        network, dst = self._routing.network, self._packets.ends[1]
        return [link for link in self.path[1:] if len(network.next_hops(link.src, dst)) > 1]

    def _steer(self, link: Link, *, on: bool) -> None:
        packets = self._packets
        ports = packets.sports, packets.dport
        self._routing.steer(link, packets.ends, packets.protocol, ports, on=on)

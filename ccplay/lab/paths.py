"""Finds, pins and changes the paths of traffic if there are several."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from ccplay.errors import CommandError, LabError
from ccplay.lab.network import Routing
from ccplay.model.base import Event
from ccplay.model.events import FlowPath, Log
from ccplay.model.network import Link, Network

# --- pins: paths that commands choose for some packets --------------------------------------------
# A pin consists of rules by addresses and ports, ip-rule(8), at each router with several next hops.
# While a cable of its path is down, the hash chooses the packets' path.


STREAMS, DATAGRAMS = 6, 17
"""Numbers of the protocols TCP and UDP; protocols(5)."""


class Packets(NamedTuple):
    """The packets that some traffic sends from its source to its destination."""

    ends: tuple[str, str]
    """Source and destination hosts."""
    protocol: int
    """Protocol: ``STREAMS`` or ``DATAGRAMS``."""
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
        paths = self._routing.remaining.paths(*self._packets.ends)
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


# --- finds which of several paths each connection takes, at its start and when it may change ------


class _Followed(msgspec.Struct):
    """Traffic that is followed, and its known paths."""

    packets: Packets
    ports: dict[str, tuple[int, int]] = msgspec.field(default_factory=dict)
    """Source and destination ports by connection."""
    addresses: dict[str, tuple[str, str]] = msgspec.field(default_factory=dict)
    """Addresses by connection, if they are not those of the hosts."""
    pin: Pin | None = None
    known: dict[str, tuple[list[str], list[str], bool]] = msgspec.field(default_factory=dict)
    """Last reported path of each connection: its links there, its links back, and whether a command
    chose them."""
    begun: bool = False
    """Whether the traffic's start has been reported, so that its paths may be too."""
    seen: list[tuple[list[str], bool]] = msgspec.field(default_factory=list)
    """Links of the paths that single transfers took, and whether a command chose them, oldest
    first."""

    @property
    def pinned(self) -> bool:
        """Whether a path chosen by a command is in force."""
        return self.pin is not None and self.pin.holds


class PathFinder:
    """The running traffic, and the last known path of each of its connections."""

    def __init__(
        self,
        routing: Routing,
        network: Network,
        emit: Callable[[Event], None],
        clock: Callable[[], float],
    ) -> None:
        """Find paths in ``network``, which lists all cables, whether up or down."""
        self._routing, self._network = routing, network
        self._emit, self._clock = emit, clock
        self._followed: dict[str, _Followed] = {}

    def expect(self, name: str, packets: Packets, via: list[str] | None) -> None:
        """Follow traffic that is about to start, on the path that leads through ``via``.

        None, or no nodes, leaves the choice to the hash. Raises ``CommandError`` if there is no
        such path, ``LabError`` if the kernel refuses.
        """
        self._followed[name] = followed = _Followed(packets)
        if via:
            followed.pin = Pin(self._routing, packets, choose(self._network, packets, via))
            followed.pin.renew()

    def connect(
        self,
        name: str,
        stream: str,
        sport: int,
        dport: int,
        addresses: tuple[str, str] | None = None,
    ) -> None:
        """Follow a connection of some traffic by its ports, and its addresses if not the hosts'."""
        if (followed := self._followed.get(name)) is not None:
            followed.ports[stream] = (sport, dport)
            if addresses is not None:
                followed.addresses[stream] = addresses
            if followed.begun:
                self._find(followed)

    def begin(self, name: str) -> None:
        """Report the paths of traffic that has begun."""
        if (followed := self._followed.get(name)) is not None:
            followed.begun = True
            self._find(followed)

    def transfer(self, name: str, sport: int, dport: int) -> int | None:
        """Return the number of the reported path that a single transfer took, from 0.

        Returns None if there is only one path, or if the path is not known.
        """
        followed = self._followed.get(name)
        if followed is None or len(self._shortest(followed)) == 1:
            return None
        packets = followed.packets
        links = self._path(name, packets.ends, packets.protocol, (sport, dport))
        if links is None:
            return None
        taken = (links, followed.pinned)
        if taken not in followed.seen:
            followed.seen.append(taken)
            self._emit(FlowPath(t=self._clock(), flow=name, links=links, pinned=followed.pinned))
        return followed.seen.index(taken)

    def forget(self, name: str) -> None:
        """Stop following traffic that has ended."""
        if (followed := self._followed.pop(name, None)) is not None and followed.pin is not None:
            # A rule that remains matches no packets: its ports are the last to be reused.
            with contextlib.suppress(LabError):
                followed.pin.remove()

    def move(self, name: str, via: list[str] | None) -> list[str]:
        """Move traffic to another path; return the routers on it, or none if the hash chooses.

        ``via`` are the nodes to pass; if empty, the hash chooses; None stands for the next path.
        Raises ``CommandError`` if there is no such path, ``LabError`` if the kernel refuses.
        """
        followed = self._followed[name]
        packets, pin = followed.packets, None
        if via is None:
            pin = Pin(self._routing, packets, self._next(followed))
        elif via:
            pin = Pin(self._routing, packets, choose(self._network, packets, via))
        if followed.pin is not None:
            followed.pin.remove()
        try:
            if pin is not None:
                pin.renew()
        except LabError:
            if followed.pin is not None:
                followed.pin.renew()
            raise
        followed.pin = pin
        if pin is not None and not pin.holds:
            nodes = ", ".join(link.dst for link in pin.path[:-1])
            self._warn(f"{name} takes the path via {nodes} once all of its cables are up")
        if followed.begun:
            self._find(followed)
        return [] if pin is None else [link.dst for link in pin.path[:-1]]

    def look(self) -> None:
        """Renew pins, and report the paths that changed because cables went down or up."""
        for name, followed in self._followed.items():
            if followed.pin is not None:
                try:
                    followed.pin.renew()
                except LabError as error:
                    # The cable did change, so that is no failure of its command.
                    self._warn(f"{name} leaves the path that was chosen for it: {error}")
            if followed.begun:
                self._find(followed)

    def _next(self, followed: _Followed) -> list[str]:
        """Return the path after the current one, among those with all cables up.

        Raises ``CommandError`` if there is none.
        """
        src, dst = followed.packets.ends
        paths = [[link.name for link in path] for path in self._routing.remaining.paths(src, dst)]
        if not paths:
            raise CommandError(f"there is no path from {src} to {dst} now: cables are down")
        now = next((there for there, _, _ in followed.known.values()), [])
        if followed.pin is not None and followed.pinned:
            now = [link.name for link in followed.pin.path]
        return paths[(paths.index(now) + 1) % len(paths)] if now in paths else paths[0]

    def _shortest(self, followed: _Followed) -> list[list[str]]:
        paths = self._network.paths(*followed.packets.ends)
        return [[link.name for link in path] for path in paths]

    def _find(self, followed: _Followed) -> None:
        only, pinned = self._shortest(followed), followed.pinned
        ends, protocol = followed.packets.ends, followed.packets.protocol
        answered = protocol == STREAMS
        implied = None
        if len(only) == 1:
            # The only path need not be reported, unless one of its cables is down.
            implied = (only[0], self._opposite(only[0]) if answered else [], False)
        for stream, ports in followed.ports.items():
            addresses, back = followed.addresses.get(stream), list[str]()
            links = self._path(stream, ends, protocol, ports, addresses)
            if links is None:
                continue
            if answered:
                other = addresses[::-1] if addresses else None
                back = self._path(stream, ends[::-1], protocol, ports[::-1], other) or []
            known = followed.known.get(stream, implied)
            followed.known[stream] = (links, back, pinned)
            if followed.known[stream] != known:
                t = self._clock()
                self._emit(FlowPath(t=t, flow=stream, links=links, pinned=pinned, back=back))

    def _opposite(self, links: Sequence[str]) -> list[str]:
        network = self._network
        return [network.opposite(network.link(name)).name for name in reversed(links)]

    def _path(
        self,
        stream: str,
        ends: tuple[str, str],
        protocol: int,
        ports: tuple[int, int],
        addresses: tuple[str, str] | None = None,
    ) -> list[str] | None:
        """Return the links that a connection's packets take; None if the kernel reports none.

        ``addresses`` are the connection's if they are not those of the hosts at its ``ends``.
        """
        try:
            path = self._routing.path(ends, ports, protocol, addresses)
        except OSError as error:
            self._warn(f"{stream}: its path is not known: {error.strerror}")
            return None
        return [link.name for link in path]

    def _warn(self, text: str) -> None:
        self._emit(Log(t=self._clock(), level="warning", text=text))

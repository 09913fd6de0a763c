"""Everything that traffic needs to start: hosts, ports, the probe, classes, monitors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Protocol, TypeVar

from ccplay.errors import LabError, UnsupportedError
from ccplay.lab import htb
from ccplay.lab.netns import Namespace
from ccplay.lab.network import Routing
from ccplay.lab.paths import Packets, PathFinder
from ccplay.lab.probe import Probe
from ccplay.lab.traffic import congestion
from ccplay.lab.traffic.iperf import Bypass
from ccplay.lab.traffic.monitor import MonitoredStreams, Monitoring, Stream
from ccplay.lab.traffic.path_manager import Ends
from ccplay.lab.traffic.program import Ports
from ccplay.model.base import Event
from ccplay.model.events import Log
from ccplay.model.network import Network


class Classifier(Protocol):
    """Anything that directs packets into classes, as ``shaping.Shaper`` does."""

    def admit(self, packets: htb.Packets) -> None:
        """Register traffic before its first packet. Raises ``LabError``."""

    def dismiss(self, kind: str, name: str) -> None:
        """Remove traffic that has ended."""


class Runner(Protocol):
    """Running traffic of any kind."""

    src: str
    dst: str
    ended: asyncio.Event

    def begin_stop(self) -> None:
        """End the traffic without waiting; an event reports its end."""

    async def stop(self) -> None:
        """End the traffic and wait until it has ended."""


class Connected(Runner, Protocol):
    """Running traffic that is one set of sampled TCP connections: a flow, or a download."""

    sports: range
    """Source ports of the connections."""

    @property
    def opening_under(self) -> str | None:
        """Algorithm requested for the connections; None once they are open or have ended."""

    def switch(self, cc: str) -> None:
        """Change the congestion control. Raises ``CommandError`` or ``UnsupportedError``."""

    def watch(self) -> None:
        """Process a sweep."""


class Closing(Protocol):
    """What traffic shares, such as servers, and is closed with the lab."""

    async def close(self) -> None:
        """End it."""


Shared = TypeVar("Shared", bound=Closing)


class Site:
    """The network as traffic uses it. ``emit`` receives every event, with times of ``clock``."""

    def __init__(
        self,
        namespace: Callable[[str], Namespace],
        probe: Probe,
        emit: Callable[[Event], None],
        clock: Callable[[], float],
        network: Network,
        *,
        classifier: Classifier | None,
        paths: PathFinder | None,
        routing: Routing | None = None,
    ) -> None:
        """Prepare; ``classifier`` learns about packets before they are sent.

        ``paths`` is None if the kernel does not report which of several paths packets take,
        and ``routing`` if no path is known.
        """
        self._routing = routing
        self.namespace, self.probe, self.emit, self.clock = namespace, probe, emit, clock
        self.network = network
        self.paths = paths
        self.ports = Ports()
        self.bypass = Bypass(network, namespace)
        self._classifier = classifier
        self._cleaning: set[asyncio.Task[None]] = set()
        self._shared: dict[type, Closing] = {}
        self._monitoring = Monitoring(lambda text: emit(Log(t=clock(), level="warning", text=text)))

    def address(self, host: str) -> str:
        """Return a host's IP address."""
        return self.network.address(host)

    def path(self, src: str, dst: str, ends: Ends) -> list[str]:
        """Return the links that packets of a TCP connection take; empty if unknown."""
        if self._routing is None or not self._routing.knows_paths:
            return []
        # If a cable is down, a node may have no route.
        with suppress(OSError):
            found = self._routing.path(
                (src, dst), (ends.sport, ends.dport), addresses=(ends.src, ends.dst)
            )
            return [link.name for link in found]
        return []

    def choose_cc(self, src: str, cc: str | None) -> str:
        """Return the algorithm that ``cc`` selects; None selects the sending host's default.

        Raises ``UnsupportedError`` if the kernel lacks it.
        """
        if cc is None:
            return congestion.host_default(self.namespace(src))
        congestion.require(cc)
        return congestion.called(cc)

    def follow(self, name: str, packets: Packets, via: list[str] | None) -> None:
        """Follow traffic that is about to start, on a path that leads through ``via`` if given.

        Raises ``CommandError`` if no path leads there, ``UnsupportedError`` if paths are unknown.
        """
        if self.paths is not None:
            self.paths.expect(name, packets, via)
        elif via:
            raise UnsupportedError(
                f"{name} can't be sent via {', '.join(via)}: this kernel does not report paths "
                "(net.ipv4.fib_multipath_hash_fields, Linux 5.14)"
            )

    def connected(
        self,
        name: str,
        stream: str,
        sport: int,
        dport: int,
        addresses: tuple[str, str] | None = None,
    ) -> None:
        """Follow one connection of traffic, by its ports, and its addresses if not the hosts'."""
        if self.paths is not None:
            self.paths.connect(name, stream, sport, dport, addresses)

    def shared(self, kind: type[Shared], make: Callable[[], Shared]) -> Shared:
        """Return what all traffic of a kind shares; it is made once, and closed with the lab."""
        if kind not in self._shared:
            self._shared[kind] = make()
        found = self._shared[kind]
        assert isinstance(found, kind)  # noqa: S101
        return found

    async def watched(
        self, src: str, dst: str, streams: Sequence[Stream]
    ) -> MonitoredStreams | None:
        """Monitor connections that are yet to open; return None if that is impossible."""
        return await self._monitoring.watch(self.namespace(src), self.namespace(dst), streams)

    @contextmanager
    def admitted(self, packets: htb.Packets) -> Generator[None]:
        """Direct packets into their class before the first one is sent; undo that on an error."""
        if self._classifier is not None:
            self._classifier.admit(packets)
        try:
            yield
        except BaseException:
            self.dismiss(packets.kind, packets.name)
            raise

    def dismiss(self, kind: str, name: str) -> None:
        """Remove the packets of traffic that has ended from their class."""
        if self._classifier is not None:
            self._classifier.dismiss(kind, name)

    def later(self, work: Coroutine[object, object, None]) -> None:
        """Begin to clean up after traffic that has ended; a failure is logged."""

        async def carried_out() -> None:
            try:
                await work
            except (LabError, OSError) as error:
                self.emit(Log(t=self.clock(), level="warning", text=str(error)))

        self._cleaning.add(task := asyncio.create_task(carried_out()))
        task.add_done_callback(self._cleaning.discard)

    async def close(self) -> None:
        """End everything that traffic shares; what is in a host ends with its namespace."""
        for each in self._cleaning:
            each.cancel()
        await asyncio.gather(*(each.close() for each in self._shared.values()))
        self._monitoring.close()

"""What running traffic is, and what it needs: hosts, ports, the probe, classes, monitors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from ccplay.errors import LabError, UnsupportedError
from ccplay.lab.htb import Keys, Selection, port_keys
from ccplay.lab.netns import Namespace
from ccplay.lab.network import Routing
from ccplay.lab.paths import Packets, PathFinder
from ccplay.lab.probe import Probe
from ccplay.lab.shaping import Shaper
from ccplay.lab.traffic import congestion
from ccplay.lab.traffic.gate import GateEntry
from ccplay.lab.traffic.iperf import Bypass
from ccplay.lab.traffic.monitor import MonitoredStreams, Monitoring, Stream
from ccplay.lab.traffic.path_manager import Ends
from ccplay.lab.traffic.program import Hold, Ports, Program, script_argv
from ccplay.model.base import Event, StartTraffic
from ccplay.model.events import Log
from ccplay.model.network import Network
from ccplay.traffic import started_by

Shared = TypeVar("Shared")


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
        classifier: Shaper | None,
        paths: PathFinder | None,
        routing: Routing | None = None,
        before: Callable[[str, Namespace, range], None] | None = None,
    ) -> None:
        """Prepare; ``classifier`` learns about packets before they are sent.

        ``before`` is called with the name, the source and its ports before traffic starts.
        ``paths`` is None if the kernel does not report which of several paths packets take,
        and ``routing`` if no path is known.
        """
        self._routing = routing
        self.namespace, self.probe, self.emit, self.clock = namespace, probe, emit, clock
        self.network = network
        self.paths = paths
        self.ports = Ports()
        self.bypass = Bypass(network, namespace)
        self._classifier, self._before = classifier, before
        self._cleaning: set[asyncio.Task[None]] = set()
        self._shared: dict[type, object] = {}
        self.closing = AsyncExitStack()
        """Called when the lab ends, for what traffic shares, such as servers."""
        self._monitoring = Monitoring(lambda text: emit(Log(t=clock(), level="warning", text=text)))

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
        """Return what all traffic of a kind shares; it is made once."""
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

    def follow(self, command: StartTraffic, packets: Packets) -> None:
        """Follow the packets of traffic that is about to start, on the path that it asks for.

        Raises ``CommandError`` if no path leads there, ``UnsupportedError`` if paths are unknown.
        """
        name, via = command.name or "", getattr(command, "via", None)
        if self._before is not None and packets.sports is not None:
            self._before(name, self.namespace(packets.ends[0]), packets.sports)
        if self.paths is not None:
            self.paths.expect(name, packets, via)
        elif via:
            raise UnsupportedError(
                f"{name} can't be sent via {', '.join(via)}: this kernel does not report paths "
                "(net.ipv4.fib_multipath_hash_fields, Linux 5.14)"
            )

    @contextmanager
    def sending(self, command: StartTraffic, packets: Packets) -> Generator[None]:
        """Direct packets into their class before the first is sent; undo that on an error.

        They are known by their destination port, or else by their source port.
        """
        host, port = packets.ends[1], packets.dport
        if port is None and packets.sports is not None:
            host, port = packets.ends[0], packets.sports.start
        keys = port_keys(packets.protocol, self.network.address(host), port or 0)
        with self.selected(command, *keys):
            yield

    @contextmanager
    def selected(self, command: StartTraffic, *matches: Keys) -> Generator[None]:
        """Direct packets with these keys into their class; an error in the block undoes it."""
        kind, name = started_by(command), command.name or ""
        plural = "" if kind is None else kind.plural
        if self._classifier is not None:
            self._classifier.admit(Selection(plural, name, matches))
        try:
            yield
        except BaseException:
            self.dismiss(plural, name)
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
        await self.closing.aclose()
        self._monitoring.close()


class Running:
    """Running traffic of any kind: it ends by itself, by ``stop``, or because a program dies."""

    _program: Program
    """Program that sends, whose end is that of the traffic."""

    def __init__(self, command: StartTraffic, site: Site) -> None:
        """Prepare; ``command`` has all names and is within bounds."""
        self.name, self.src, self.dst = command.name or "", command.src or "", command.dst or ""
        self.ended = asyncio.Event()
        self._site, self._emit, self._clock = site, site.emit, site.clock
        self._asked = False

    @property
    def sender(self) -> Namespace:
        """Network namespace of the source."""
        return self._site.namespace(self.src)

    @property
    def receiver(self) -> Namespace:
        """Network namespace of the destination."""
        return self._site.namespace(self.dst)

    def begin_stop(self) -> None:
        """End the traffic without waiting; an event reports its end."""
        if not self._asked:
            self._asked = True
            self._stopping = asyncio.create_task(self._program.stop())

    async def stop(self) -> None:
        """End the traffic and wait until it has ended."""
        self.begin_stop()
        await self.ended.wait()


class Connected(Running):
    """Running traffic that is one set of sampled TCP connections: a flow, or a download."""

    sports: range
    """Source ports of the connections."""
    began: float
    """Lab time in seconds of the start; a connection may have been opened before, and waited."""

    @property
    def opening_under(self) -> str | None:
        """Algorithm requested for the connections; None once they are open or have ended."""
        raise NotImplementedError

    def switch(self, cc: str) -> None:
        """Change the congestion control. Raises ``CommandError`` or ``UnsupportedError``."""
        raise NotImplementedError

    def watch(self) -> None:
        """Process a sweep."""


REPORT_S = 0.5
"""Interval in seconds between two reports of what the sender of a ``Pair`` has written."""


class Pair(Running):
    """Traffic by a program of ccplay: one process receives, one sends and reports its progress."""

    def __init__(
        self,
        command: StartTraffic,
        site: Site,
        on_line: Callable[[str], None],
        on_report: Callable[[], None],
        on_end: Callable[[str | None], None],
    ) -> None:
        """Prepare; ``on_line`` receives each line, ``on_report`` is called every ``REPORT_S``.

        ``on_end`` is called once, after all lines of the sender, with the reason if it died
        unasked.
        """
        super().__init__(command, site)
        self._on_line, self._on_report, self._on_end = on_line, on_report, on_end

    async def start(
        self,
        script: Path,
        receiver: Sequence[str],
        sender: Sequence[str],
        hold: Hold,
        entry: GateEntry,
    ) -> None:
        """Start ``script`` in both hosts with their arguments.

        The receiver writes ``ready`` once it listens; the sender passes ``entry`` at ``hold``.
        Raises ``LabError`` if the receiver does not listen.
        """
        receiving, sending = script_argv(script, *receiver), script_argv(script, *sender)
        self._server = await Program.start_server(self.receiver, receiving, script.stem)
        self._server.ignore_output()
        try:
            self._program, _ = await entry.start(self.sender, sending, hold, script.stem)
        except BaseException:
            self._server.kill()
            raise
        self._attending = asyncio.create_task(self._attend())

    async def _attend(self) -> None:
        reporting = asyncio.create_task(self._report())
        async for line in self._program.lines():
            self._on_line(line)
        status = await self._program.wait()
        reporting.cancel()
        await self._server.stop()
        self._on_report()
        self.ended.set()
        self._on_end(self._program.last_words() if status and not self._asked else None)

    async def _report(self) -> None:
        while True:
            await asyncio.sleep(REPORT_S)
            self._on_report()

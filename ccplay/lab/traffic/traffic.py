"""All traffic of the lab: starts, stops and lists flows, downloads, pings and UDP by name."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeAlias, TypeVar

from msgspec.structs import replace

from ccplay.errors import CommandError
from ccplay.lab.links.filters import Packets, echo_packets, tcp_packets, udp_packets
from ccplay.lab.network.bypass import Bypass
from ccplay.lab.network.netns import Namespace
from ccplay.lab.probe.probe import Probe
from ccplay.lab.traffic import congestion, ecn
from ccplay.lab.traffic.download import Download, WebServer
from ccplay.lab.traffic.flow import Flow
from ccplay.lab.traffic.monitor import Stream
from ccplay.lab.traffic.monitoring import Monitoring, Watched
from ccplay.lab.traffic.ping import Ping
from ccplay.lab.traffic.ports import Ports
from ccplay.lab.traffic.udp import Udp
from ccplay.model.base import LONGEST_NAME, Event
from ccplay.model.commands import (
    StartDownload,
    StartFlow,
    StartPing,
    StartUdp,
    StopDownload,
    StopFlow,
    StopPing,
    StopUdp,
)
from ccplay.model.events import DownloadEnded, FlowEnded, Log, PingEnded, UdpEnded
from ccplay.model.fields import check
from ccplay.model.network import Network

Start: TypeAlias = StartFlow | StartDownload | StartPing | StartUdp
Stop: TypeAlias = StopFlow | StopDownload | StopPing | StopUdp

T = TypeVar("T", bound=Flow | Download | Ping | Udp)


class Classifier(Protocol):
    """Who leads packets into classes; ``shaping.Shaper`` does."""

    def admit(self, packets: Packets) -> None:
        """Take note of traffic before its first packet. Raises ``LabError``."""

    def dismiss(self, kind: str, name: str) -> None:
        """Forget traffic that has ended."""


class Traffic:
    """What runs on the network; ``close`` ends all of it.

    A name stands for one thing in a session, even after that has ended: recordings need that.
    """

    def __init__(
        self,
        namespace: Callable[[str], Namespace],
        probe: Probe,
        emit: Callable[[Event], None],
        clock: Callable[[], float],
        network: Network,
        *,
        classifier: Classifier | None = None,
        reserved: Iterable[str] = (),
    ) -> None:
        """``namespace`` gives a node's; events come by ``emit`` at times of ``clock``.

        ``classifier`` hears of packets before there are any. Names that are ``reserved`` must be
        asked for.
        """
        self._classifier = classifier
        self._reserved = set(reserved)
        self._namespace = namespace
        self._probe, self._emit, self._clock = probe, emit, clock
        self._network = network
        self._ports = Ports()
        self._flows: dict[str, Flow] = {}
        self._downloads: dict[str, Download] = {}
        self._pings: dict[str, Ping] = {}
        self._udp: dict[str, Udp] = {}
        self._bypass = Bypass(network, namespace)
        self._servers: dict[str, WebServer] = {}
        self._monitoring = Monitoring(lambda text: emit(Log(t=clock(), level="warning", text=text)))
        probe.after_sweep.append(self._watch)

    async def start(self, command: Start) -> Start:
        """Start traffic and return ``command`` with every name filled in.

        Raises ``CommandError``, ``UnsupportedError``, ``LabError``.
        """
        match command:
            case StartFlow():
                return await self.start_flow(command)
            case StartDownload():
                return await self.start_download(command)
            case StartPing():
                return await self.start_ping(command)
            case StartUdp():
                return await self.start_udp(command)

    def stop(self, command: Stop) -> None:
        """End traffic; news of its end follow.

        Raises ``CommandError`` where none of this name runs.
        """
        match command:
            case StopFlow(flow=name):
                _running("flow", name, self._flows).begin_stop()
            case StopDownload(download=name):
                _running("download", name, self._downloads).begin_stop()
            case StopPing(ping=name):
                _running("ping", name, self._pings).begin_stop()
            case StopUdp(udp=name):
                _running("udp", name, self._udp).begin_stop()

    # --- flows ------------------------------------------------------------------------------

    async def start_flow(self, command: StartFlow) -> StartFlow:
        """Start iperf3 and return ``command`` with every name filled in.

        Returns once iperf3 runs; ``FlowStarted`` follows when its connections are open. Raises
        ``CommandError``, ``UnsupportedError``, ``LabError``.
        """
        src, dst = self._path(command.src, command.dst)
        name = self._new_name("flow", command.flow, [*self._flows, *self._downloads, *self._udp])
        check(command, f"flow {name}")
        cc = self._choose_cc(src, command.cc)
        filled = replace(command, flow=name, src=src, dst=dst, cc=cc)
        flow = Flow(filled, self._ports, self._probe, self._tell, self._clock, bypass=self._bypass)
        address = self._network.address(dst)
        if command.ecn:
            ecn.ask_for_ecn(self._namespace(src), flow.port)
        if command.monitor:
            streams = [Stream(socket.IPPROTO_TCP, sport, flow.port) for sport in flow.sports]
            flow.watched = await self._watched(src, dst, streams)
        with self._admitted(tcp_packets("flows", name, address, flow.port)):
            await flow.start(self._namespace(dst), address, self._namespace(src))
        self._flows[name] = flow
        return filled

    def switch_flow(self, name: str, cc: str) -> None:
        """Change the congestion control of a running flow or download.

        Raises ``CommandError`` or ``UnsupportedError``.
        """
        _running("flow", name, self._sampled).switch(cc)

    def sender(self, name: str) -> tuple[Namespace, range]:
        """Return where a running flow or download sends from: the node, and its ports there.

        Raises ``CommandError`` where none of this name runs.
        """
        found = _running("flow", name, self._sampled)
        return self._namespace(found.src), found.sports

    def runs(self, name: str) -> bool:
        """Say whether a flow or download of this name runs."""
        found = self._sampled.get(name)
        return found is not None and not found.ended.is_set()

    @property
    def _sampled(self) -> dict[str, Flow | Download]:
        return {**self._flows, **self._downloads}

    # --- downloads --------------------------------------------------------------------------

    async def start_download(self, command: StartDownload) -> StartDownload:
        """Start wget and return ``command`` with every name filled in.

        Raises ``CommandError``, ``UnsupportedError``, ``LabError``.
        """
        src, dst = self._path(command.src, command.dst)
        name = self._new_name(
            "download", command.download, [*self._flows, *self._downloads, *self._udp]
        )
        check(command, f"download {name}")
        cc = self._choose_cc(src, command.cc)
        filled = replace(command, download=name, src=src, dst=dst, cc=cc)
        server = self._servers.get(src)
        if server is None or server.ended:
            server = await WebServer.start(self._namespace(src), self._served)
            self._servers[src] = server
        port, address = self._ports.web(), self._network.address(src)
        download = Download(filled, server, self._probe, self._tell, self._clock, port=port)
        self._downloads[name] = download
        with self._admitted(tcp_packets("downloads", name, address, port)):
            await download.start(self._namespace(dst), address)
        return filled

    def _served(self, name: str, port: int) -> None:
        if name in self._downloads:
            self._downloads[name].served_on(port)

    # --- pings ------------------------------------------------------------------------------

    async def start_ping(self, command: StartPing) -> StartPing:
        """Start ping(8) and return ``command`` with every name filled in.

        Raises ``CommandError`` or ``LabError``.
        """
        src, dst = self._path(command.src, command.dst)
        name = self._new_name("ping", command.ping, [*self._pings, *self._udp])
        check(command, f"ping {name}")
        filled = replace(command, ping=name, src=src, dst=dst)
        identifier = self._ports.echo()
        ping = Ping(filled, self._tell, self._clock, identifier=identifier)
        with self._admitted(echo_packets(name, identifier)):
            await ping.start(self._namespace(src), self._network.address(dst))
        self._pings[name] = ping
        return filled

    # --- cross traffic ----------------------------------------------------------------------

    async def start_udp(self, command: StartUdp) -> StartUdp:
        """Start iperf3 and return ``command`` with every name filled in.

        Returns once iperf3 runs; ``UdpStarted`` follows when it sends. Raises ``CommandError``
        or ``LabError``.
        """
        src, dst = self._path(command.src, command.dst)
        taken = [*self._flows, *self._downloads, *self._pings, *self._udp]
        name = self._new_name("udp", command.udp, taken)
        check(command, f"UDP {name}")
        filled = replace(command, udp=name, src=src, dst=dst)
        port, (sport,) = self._ports.server(), self._ports.senders(1)
        udp = Udp(filled, self._tell, self._clock, self._bypass, port=port, sport=sport)
        if command.monitor:
            streams = [Stream(socket.IPPROTO_UDP, sport, port)]
            udp.watched = await self._watched(src, dst, streams)
        address = self._network.address(dst)
        with self._admitted(udp_packets(name, address, udp.port)):
            await udp.start(self._namespace(dst), address, self._namespace(src))
        self._udp[name] = udp
        return filled

    async def _watched(self, src: str, dst: str, streams: Sequence[Stream]) -> Watched | None:
        """Follow packets before there are any; None where that is not possible."""
        return await self._monitoring.watch(self._namespace(src), self._namespace(dst), streams)

    def under(self, cc: str) -> list[str]:
        """Return the running flows and downloads whose connection uses ``cc``."""
        sampled: dict[str, Flow | Download] = {**self._flows, **self._downloads}
        found = {
            name: self._probe.counters(name)
            for name, each in sampled.items()
            if not each.ended.is_set()
        }
        return [name for name, now in found.items() if now is not None and now.cc == cc]

    def opening(self, cc: str) -> bool:
        """Say whether a connection under ``cc`` is about to open."""
        return any(each.opening_under == cc for each in self._sampled.values())

    # --- all --------------------------------------------------------------------------------

    @contextmanager
    def _admitted(self, packets: Packets) -> Generator[None]:
        """Lead packets into their class before the first one is sent."""
        if self._classifier is not None:
            self._classifier.admit(packets)
        try:
            yield
        except BaseException:
            self._dismiss(packets.kind, packets.name)
            raise

    def _dismiss(self, kind: str, name: str) -> None:
        if self._classifier is not None:
            self._classifier.dismiss(kind, name)

    def _tell(self, event: Event) -> None:
        """Pass an event on; traffic that has ended needs no class any more."""
        match event:
            case FlowEnded():
                self._dismiss("flows", event.flow)
                if (flow := self._flows.get(event.flow)) is not None and flow.asks_for_ecn:
                    ecn.ask_no_more(self._namespace(flow.src), flow.port)
            case DownloadEnded():
                self._dismiss("downloads", event.download)
            case PingEnded():
                self._dismiss("pings", event.ping)
            case UdpEnded():
                self._dismiss("udp", event.udp)
        self._emit(event)

    async def close(self) -> None:
        """End everything, and wait until it has."""
        everything: list[Flow | Download | Ping | Udp] = [
            *self._flows.values(),
            *self._downloads.values(),
            *self._pings.values(),
            *self._udp.values(),
        ]
        await asyncio.gather(
            *(each.stop() for each in everything if not each.ended.is_set()),
        )
        await asyncio.gather(*(server.stop() for server in self._servers.values()))
        self._probe.after_sweep.remove(self._watch)
        self._monitoring.close()

    def _watch(self) -> None:
        for flow in self._flows.values():
            flow.watch()
        for download in self._downloads.values():
            download.watch()

    def _choose_cc(self, src: str, cc: str | None) -> str:
        if cc is None:
            return congestion.host_default(self._namespace(src))
        congestion.require(cc)
        return congestion.called(cc)

    def _path(self, src: str | None, dst: str | None) -> tuple[str, str]:
        """Fill in what is missing: the first sender, and the peer of ``src``."""
        src = src if src is not None else self._network.senders[0]
        self._require_host(src)
        dst = dst if dst is not None else self._network.peer(src)
        self._require_host(dst)
        if src == dst:
            raise CommandError(f"traffic from {src} to itself crosses no network")
        return src, dst

    def _require_host(self, name: str) -> None:
        if name not in self._network.hosts:
            raise CommandError(f"no host {name!r}; hosts: {', '.join(self._network.hosts)}")

    def _new_name(self, kind: str, name: str | None, taken: Iterable[str]) -> str:
        names = set(taken)
        if name is None:
            prefix = {"flow": "", "download": "w", "ping": "p", "udp": "u"}[kind]
            avoided = names | self._reserved
            return next(
                free
                for number in range(1, len(avoided) + 2)
                if (free := f"{prefix}{number}") not in avoided
            )
        if name in names:
            raise CommandError(f"the name {name!r} is taken: another {kind} has or had it")
        if not name.isprintable() or not name or set(name) & set("/ "):
            raise CommandError(f"{kind} {name!r}: a name has neither spaces nor '/'")
        if len(name) > LONGEST_NAME:
            short = f"{name[:20]}…"
            raise CommandError(f"{kind} {short!r}: a name has at most {LONGEST_NAME} characters")
        return name


def _running(kind: str, name: str, things: Mapping[str, T]) -> T:
    """Return what runs under ``name``. Raises ``CommandError`` naming what does instead."""
    thing = things.get(name)
    if thing is None or thing.ended.is_set():
        there = [each for each, other in things.items() if not other.ended.is_set()]
        state = f"no {kind} {name!r}" if thing is None else f"{kind} {name!r} has ended"
        raise CommandError(f"{state}; running: {', '.join(there) or 'none'}")
    return thing

"""Starts each kind of traffic: one function for each kind, in one table.

Each takes a command within bounds that has its name and both hosts, and the entry of the gate for
its first packet. Each returns the command as carried out, and the running traffic. All raise
``CommandError``, ``UnsupportedError`` or ``LabError``.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, TypeAlias

from msgspec.structs import replace

from ccplay.lab.links.filters import datagrams, echo_packets, tcp_packets, udp_packets
from ccplay.lab.paths.pins import Packets
from ccplay.lab.traffic import congestion, ecn
from ccplay.lab.traffic.download import Download
from ccplay.lab.traffic.flow import Flow
from ccplay.lab.traffic.gate import Entry
from ccplay.lab.traffic.holding import Hold
from ccplay.lab.traffic.monitor import Stream
from ccplay.lab.traffic.mptcp import support
from ccplay.lab.traffic.mptcp.flow import MptcpFlow
from ccplay.lab.traffic.pair import Pair
from ccplay.lab.traffic.pings.ping import Ping
from ccplay.lab.traffic.site import Runner, Site
from ccplay.lab.traffic.udp import Udp
from ccplay.model.base import Event
from ccplay.model.traffic_commands import (
    StartDownload,
    StartFlow,
    StartPing,
    StartShortFlows,
    StartUdp,
)
from ccplay.model.traffic_events import (
    FlowEnded,
    ShortFlowsEnded,
    ShortFlowsProgress,
    ShortFlowsStarted,
)

_BEFORE_FIRST_ARRIVAL = Hold("sched_yield")
"""Hold at a call that the script makes only once, for this purpose."""


async def _flow(command: StartFlow, site: Site, entry: Entry) -> tuple[StartFlow, Flow]:
    """Start iperf3 and return; ``FlowStarted`` follows when its connections are open."""
    name, src, dst = command.flow or "", command.src or "", command.dst or ""
    command = replace(command, cc=site.choose_cc(src, command.cc))

    sender, rules = site.namespace(src), ExitStack()

    def emit(event: Event) -> None:
        if isinstance(event, FlowEnded):
            # A rule that remains matches no packets: the flow's port is the last to be reused.
            with suppress(OSError):
                rules.close()
        site.emit(event)

    support.require(command)
    flow: Flow
    if command.mptcp:
        flow = MptcpFlow(command, site, emit)
    else:
        flow = Flow(command, site.ports, site.probe, emit, site.clock, bypass=site.bypass)
    site.follow(name, Packets((src, dst), socket.IPPROTO_TCP, flow.sports, flow.port), command.via)
    if not command.mptcp:
        for stream, sport in zip(flow.streams, flow.sports, strict=True):
            site.connected(name, stream, sport, flow.port)
    address = site.address(dst)
    try:
        if command.l4s:
            sending = asyncio.create_task(ecn.send_ect_1(sender, flow.port))
            rules.callback(lambda: site.later(ecn.stop_ect_1(sender, flow.port, sending)))
            await asyncio.shield(sending)
        if flow.asks_for_ecn:
            ecn.ask_for_ecn(sender, flow.port)
            rules.callback(ecn.stop_asking, sender, flow.port)
        if command.monitor:
            streams = [Stream(socket.IPPROTO_TCP, sport, flow.port) for sport in flow.sports]
            flow.watched = await site.watched(src, dst, streams)
        with site.admitted(tcp_packets("flows", name, address, flow.port)):
            await flow.start(site.namespace(dst), address, sender, entry)
    except BaseException:
        flow.abandon()
        with suppress(OSError):
            rules.close()
        raise
    return command, flow


async def _download(
    command: StartDownload, site: Site, entry: Entry
) -> tuple[StartDownload, Download]:
    name, src, dst = command.download or "", command.src or "", command.dst or ""
    command = replace(command, cc=site.choose_cc(src, command.cc))

    def served_on(there: int) -> None:
        download.served_on(there)
        site.connected(name, name, port, there)

    server = await site.web_server(src, name, served_on)
    port, address = site.ports.web(), site.address(src)
    packets = Packets((src, dst), socket.IPPROTO_TCP, range(port, port + 1), None)
    site.follow(name, packets, command.via)
    download = Download(command, server, site.probe, site.emit, site.clock, port=port)
    with site.admitted(tcp_packets("downloads", name, address, port)):
        await download.start(site.namespace(dst), address, entry)
    return command, download


async def _ping(command: StartPing, site: Site, entry: Entry) -> tuple[StartPing, Ping]:
    name, src, dst = command.ping or "", command.src or "", command.dst or ""
    address = site.address(dst)
    if command.protocol == "udp":
        identifier = site.ports.server()
        packets = datagrams("pings", name, address, identifier)
    else:
        identifier = site.ports.echo()
        packets = echo_packets(name, identifier)
    (sport,) = site.ports.senders(1)
    ping = Ping(command, site.emit, site.clock, identifier=identifier, sport=sport)
    with site.admitted(packets):
        await ping.start(site.namespace(dst), address, site.namespace(src), entry)
    return command, ping


async def _udp(command: StartUdp, site: Site, entry: Entry) -> tuple[StartUdp, Udp]:
    """Start iperf3 and return; ``UdpStarted`` follows when it sends."""
    name, src, dst = command.udp or "", command.src or "", command.dst or ""
    port, (sport,) = site.ports.server(), site.ports.senders(1)
    udp = Udp(command, site.emit, site.clock, site.bypass, port=port, sport=sport)
    packets = Packets((src, dst), socket.IPPROTO_UDP, range(sport, sport + 1), port)
    site.follow(name, packets, command.via)
    site.connected(name, name, sport, port)
    if command.monitor:
        udp.watched = await site.watched(src, dst, [Stream(socket.IPPROTO_UDP, sport, port)])
    address = site.address(dst)
    with site.admitted(udp_packets(name, address, udp.port)):
        await udp.start(site.namespace(dst), address, site.namespace(src), entry)
    return command, udp


async def _short_flows(
    command: StartShortFlows, site: Site, entry: Entry
) -> tuple[StartShortFlows, Pair]:
    name, src, dst = command.short_flows or "", command.src or "", command.dst or ""
    cc = site.choose_cc(src, command.cc)
    command = replace(command, cc=cc)
    started, failed, sizes, fct_us, taken = 0, 0, list[int](), list[float](), list[int]()

    def read(line: str) -> None:
        nonlocal started, failed
        match line.split():
            case ["done", size, took, sport]:
                sizes.append(int(size))
                fct_us.append(float(took))
                if site.paths is not None:
                    path = site.paths.transfer(name, int(sport), port)
                    taken.extend([] if path is None else [path])
            case ["failed"]:
                failed += 1
            case ["started"]:
                started += 1

    def report() -> None:
        site.emit(
            ShortFlowsProgress(
                t=site.clock(),
                short_flows=name,
                started=started,
                failed=failed,
                bytes=[*sizes],
                fct_us=[*fct_us],
                path=[*taken],
            )
        )
        for each in (sizes, fct_us, taken):
            each.clear()

    def end(error: str | None) -> None:
        site.emit(ShortFlowsEnded(t=site.clock(), short_flows=name, error=error))

    pair = Pair(src, dst, read, report, end)
    port, address, rate = site.ports.server(), site.address(dst), command.rate_bps
    limits = f"{command.duration_s or 0:g}", str(command.count or 0)
    drawn = str(rate), str(command.bytes), command.sizes, str(command.seed)
    sending = ["send", address, str(port), congestion.require(cc), *drawn, *limits]
    site.follow(name, Packets((src, dst), socket.IPPROTO_TCP, None, port), command.via)
    with site.admitted(tcp_packets("short-flows", name, address, port)):
        await pair.start(
            Path(__file__).with_name("short_flows.py"),
            (site.namespace(dst), ["receive", str(port)]),
            (site.namespace(src), sending),
            _BEFORE_FIRST_ARRIVAL,
            entry,
        )
    site.emit(
        ShortFlowsStarted(
            t=site.clock(), short_flows=name, src=src, dst=dst, cc=cc, rate_bps=rate, port=port
        )
    )
    return command, pair


_Starter: TypeAlias = Callable[[Any, Site, Entry], Coroutine[Any, Any, tuple[Any, Runner]]]

STARTERS: dict[str, _Starter] = {
    "flow": _flow,
    "download": _download,
    "ping": _ping,
    "udp": _udp,
    "short-flows": _short_flows,
}
"""Functions that start traffic, by the name of its kind."""

"""Starts a long-lived flow, with the rules of its host that its packets need."""

from __future__ import annotations

import asyncio
import socket
from contextlib import ExitStack, suppress

from msgspec.structs import replace

from ccplay.lab.htb import tcp_packets
from ccplay.lab.paths import Packets
from ccplay.lab.traffic import congestion
from ccplay.lab.traffic.gate import Entry
from ccplay.lab.traffic.monitor import Stream
from ccplay.lab.traffic.site import Site
from ccplay.model.base import Event
from ccplay.traffic.flow import FlowEnded, StartFlow, SubflowStarted
from ccplay.traffic.flow.mptcp import MptcpFlow, require
from ccplay.traffic.flow.tcp import Flow


async def start(command: StartFlow, site: Site, entry: Entry) -> tuple[StartFlow, Flow]:
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
        if isinstance(event, SubflowStarted):
            for subflow, sport, addresses in flow.connections():
                site.connected(name, subflow, sport, flow.port, addresses)

    require(command)
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
            sending = asyncio.create_task(congestion.send_ect_1(sender, flow.port))
            rules.callback(lambda: site.later(congestion.stop_ect_1(sender, flow.port, sending)))
            await asyncio.shield(sending)
        if flow.asks_for_ecn:
            congestion.ask_for_ecn(sender, flow.port)
            rules.callback(congestion.stop_asking, sender, flow.port)
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

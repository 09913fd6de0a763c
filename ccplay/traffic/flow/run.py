"""Starts a long-lived flow, with the rules of its host that its packets need."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack, suppress

from msgspec.structs import replace

from ccplay.lab.paths import STREAMS, Packets
from ccplay.lab.traffic import congestion
from ccplay.lab.traffic.gate import GateEntry
from ccplay.lab.traffic.monitor import Stream
from ccplay.lab.traffic.site import Site
from ccplay.model.base import Event
from ccplay.traffic.flow import FlowEnded, StartFlow, SubflowStarted
from ccplay.traffic.flow.mptcp import RunningMptcpFlow, require
from ccplay.traffic.flow.tcp import RunningFlow


async def start(command: StartFlow, site: Site, entry: GateEntry) -> tuple[StartFlow, RunningFlow]:
    """Start iperf3 and return; ``FlowStarted`` follows when its connections are open."""
    command = replace(command, cc=site.choose_cc(command.src or "", command.cc))
    rules = ExitStack()

    def emit(event: Event) -> None:
        if isinstance(event, FlowEnded):
            # A rule that remains matches no packets: the flow's port is the last to be reused.
            with suppress(OSError):
                rules.close()
        site.emit(event)
        if isinstance(event, SubflowStarted):
            for subflow, sport, addresses in flow.connections():
                site.connected(flow.name, subflow, sport, flow.port, addresses)

    require(command)
    flow = (RunningMptcpFlow if command.mptcp else RunningFlow)(command, site, emit)
    packets = Packets((flow.src, flow.dst), STREAMS, flow.sports, flow.port)
    site.follow(command, packets)
    if not command.mptcp:
        for stream, sport in zip(flow.streams, flow.sports, strict=True):
            site.connected(flow.name, stream, sport, flow.port)
    try:
        if command.l4s:
            sending = asyncio.create_task(congestion.send_ect_1(flow.sender, flow.port))
            rules.callback(
                lambda: site.later(congestion.stop_ect_1(flow.sender, flow.port, sending))
            )
            await asyncio.shield(sending)
        if flow.asks_for_ecn:
            congestion.ask_for_ecn(flow.sender, flow.port)
            rules.callback(congestion.stop_asking, flow.sender, flow.port)
        if command.monitor:
            streams = [Stream(STREAMS, sport, flow.port) for sport in flow.sports]
            flow.watched = await site.watched(flow.src, flow.dst, streams)
        with site.sending(command, packets):
            await flow.start(entry)
    except BaseException:
        flow.abandon()
        with suppress(OSError):
            rules.close()
        raise
    return command, flow

"""What tests of traffic and capabilities do inside their namespaces; each returns plain JSON."""

import asyncio
import os
import socket
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import msgspec

from ccplay.errors import UnsupportedError
from ccplay.lab import capabilities
from ccplay.lab.network import build_network
from ccplay.lab.probe import Probe
from ccplay.lab.rtnl import NetlinkError, NetlinkSocket
from ccplay.lab.traffic import congestion, iperf
from ccplay.lab.traffic.program import ports_of
from ccplay.lab.traffic.traffic import LabTraffic
from ccplay.model.base import Event
from ccplay.model.network import Topology
from ccplay.model.topologies import plan
from ccplay.traffic.flow import FlowEnded, FlowStarted, StartFlow
from ccplay.traffic.udp import StartUdp, UdpEnded


async def survey() -> Any:
    """Return the capabilities and the problems that keep a lab from running."""
    found = capabilities.discover()
    return msgspec.to_builtins(found), capabilities.problems(found)


async def switch(flow_cc: str, later_cc: str, next_cc: str) -> list[str]:
    """Switch a running flow, then the host's default; return the kernel's answer each time."""
    built = build_network(plan(Topology(kind="dumbbell", pairs=1)), lambda *_: None)
    host = built.namespace("s1")
    probe = Probe(built.namespaces, [])
    events: list[Event] = []
    traffic = LabTraffic(built.namespace, probe, events.append, time.monotonic, built.network)
    sweeping = asyncio.create_task(_sweep(probe))
    said = []
    await traffic.start(StartFlow(cc=flow_cc))
    said.append(await _cc_of(probe, "1", flow_cc))
    traffic.switch_flow("1", later_cc)
    said.append(await _cc_of(probe, "1", later_cc))
    congestion.set_host_default(host, next_cc)
    said.append(congestion.host_default(host))
    said.append((await traffic.start(StartFlow())).cc or "")
    said.append(await _cc_of(probe, "2", next_cc))
    await traffic.close()
    sweeping.cancel()
    with suppress(asyncio.CancelledError):
        await sweeping
    probe.close()
    assert sum(isinstance(each, FlowStarted) for each in events) == 2
    assert [each.error for each in events if isinstance(each, FlowEnded)] == [None, None]
    return said


async def refused_halfway(routes: int, sockets: int) -> list[list[str]]:
    """Refuse a host's new algorithm after so many routes, and a flow's after so many sockets.

    Returns the algorithms that routes and sockets then have.
    """
    built = build_network(plan(Topology(kind="dumbbell", pairs=1)), lambda *_: None)
    host, request, assign = built.namespace("s1"), NetlinkSocket.request, congestion._set
    congestion.set_host_default(host, "reno")
    with host.entered():
        server = socket.create_server(("127.0.0.1", 0))
        ends = [socket.create_connection(server.getsockname()) for _ in range(3)]
    for each in ends:
        assign(each, "cubic")
    left = sockets

    def refuse_routes(kernel: NetlinkSocket, messages: Iterable[Any], what: str) -> None:
        NetlinkSocket.request = request  # type: ignore[method-assign]
        kernel.request(list(messages)[:routes], what)
        raise NetlinkError(1, "refused")

    def refuse_sockets(connection: socket.socket, cc: str) -> None:
        nonlocal left
        left -= 1
        if left == -1:
            raise OSError(1, "refused")
        assign(connection, cc)

    NetlinkSocket.request = refuse_routes  # type: ignore[method-assign, assignment]
    with suppress(UnsupportedError, OSError):
        congestion.set_host_default(host, "bbr")
    congestion._set = refuse_sockets
    with suppress(OSError):
        ports = [ports_of(each) or (0, 0) for each in ends]
        congestion.switch(os.getpid(), ports, "bbr")
    server.close()
    with NetlinkSocket(host) as kernel:
        kept = [str(congestion._cc_of(each)) for each in congestion._routes(kernel)]
    return [kept, [congestion._get(each) for each in ends]]


async def udp_of_a_newer_iperf3(seconds: float) -> Any:
    """Send UDP with an iperf3 that does not stop in time; return the result."""
    iperf._looks = False
    built = build_network(plan(Topology(kind="dumbbell", pairs=1)), lambda *_: None)
    over: asyncio.Future[UdpEnded] = asyncio.get_running_loop().create_future()

    def take(event: Event) -> None:
        if isinstance(event, UdpEnded):
            over.set_result(event)

    probe = Probe(built.namespaces, [])
    traffic = LabTraffic(built.namespace, probe, take, time.monotonic, built.network)
    await traffic.start(StartUdp(packet_bytes=500, duration_s=seconds))
    ended = await over
    await traffic.close()
    probe.close()
    return msgspec.to_builtins(ended)


async def _sweep(probe: Probe) -> None:
    while True:
        probe.sweep(0.0)
        await asyncio.sleep(0.005)


async def _cc_of(probe: Probe, name: str, expected: str) -> str:
    """Return a flow's algorithm once it is ``expected``, or after 60 s whatever it is."""
    deadline = time.monotonic() + 60
    while True:
        counters = probe.counters(name)
        cc = counters.cc if counters else "none yet"
        if cc == expected or time.monotonic() > deadline:
            return cc
        await asyncio.sleep(0.005)

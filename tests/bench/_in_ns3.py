"""A bulk transfer over a line of links in ns-3; runs in the Python that has ns-3's bindings.

The only argument is JSON: ``seconds``, ``runs``, ``mtu`` and ``hops``, each hop with ``rate`` (bits
per second of IP packets with Ethernet headers), ``delay_us`` and ``limit`` (packets of its queue).
The output is JSON too: ``goodput_bps`` and ``wall_s`` of every run.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from typing import Any

_IP_AND_TCP = 20 + 20 + 12
"""Bytes of IP and TCP headers in a packet, TCP timestamps included."""

_ETHERNET, _PPP = 14, 2
"""Bytes of the link header of a packet: in a lab, and on a point-to-point link of ns-3."""

_PORT = 5201


def simulate(ns: Any, case: dict[str, Any]) -> float:
    """Run the case once and return its goodput in bits per second."""
    mtu, hops = case["mtu"], case["hops"]
    for name, value in {
        "ns3::TcpL4Protocol::SocketType": ns.StringValue("ns3::TcpNewReno"),
        "ns3::TcpSocket::SegmentSize": ns.UintegerValue(mtu - _IP_AND_TCP),
        # Large buffers, so that only TCP limits the window.
        "ns3::TcpSocket::SndBufSize": ns.UintegerValue(4 << 20),
        "ns3::TcpSocket::RcvBufSize": ns.UintegerValue(4 << 20),
    }.items():
        ns.Config.SetDefault(name, value)
    nodes = ns.NodeContainer()
    nodes.Create(len(hops) + 1)
    ns.InternetStackHelper().Install(nodes)
    addresses = ns.Ipv4AddressHelper()
    for number, hop in enumerate(hops):
        # The rate that carries as many full packets per second as a link with Ethernet headers.
        rate = round(hop["rate"] * (mtu + _PPP) / (mtu + _ETHERNET))
        link = ns.PointToPointHelper()
        link.SetDeviceAttribute("DataRate", ns.StringValue(f"{rate}bps"))
        link.SetDeviceAttribute("Mtu", ns.UintegerValue(mtu))
        link.SetChannelAttribute("Delay", ns.StringValue(f"{hop['delay_us']}us"))
        link.SetQueue("ns3::DropTailQueue", "MaxSize", ns.StringValue(f"{hop['limit']}p"))
        devices = link.Install(nodes.Get(number), nodes.Get(number + 1))
        addresses.SetBase(ns.Ipv4Address(f"10.0.{number}.0"), ns.Ipv4Mask("255.255.255.0"))
        last = addresses.Assign(devices)
        # ns-3 adds an FqCoDel queue to every device with an address.
        ns.TrafficControlHelper().Uninstall(devices)
    ns.Ipv4GlobalRoutingHelper.PopulateRoutingTables()
    there = ns.InetSocketAddress(last.GetAddress(1), _PORT).ConvertTo()
    receiver = ns.PacketSinkHelper("ns3::TcpSocketFactory", there).Install(nodes.Get(len(hops)))
    sender = ns.BulkSendHelper("ns3::TcpSocketFactory", there)
    sender.SetAttribute("MaxBytes", ns.UintegerValue(0))
    sender.Install(nodes.Get(0)).Start(ns.Seconds(0))
    ns.Simulator.Stop(ns.Seconds(case["seconds"]))
    ns.Simulator.Run()
    received = receiver.Get(0).GetObject[ns.PacketSink]().__deref__().GetTotalRx()
    ns.Simulator.Destroy()
    return float(received * 8 / case["seconds"])


def main() -> None:
    """Simulate as many runs as requested and print their results."""
    case = json.loads(sys.argv[1])
    ns = importlib.import_module("ns").ns
    runs = []
    for _ in range(case["runs"]):
        begun = time.monotonic()
        goodput = simulate(ns, case)
        runs.append({"goodput_bps": goodput, "wall_s": time.monotonic() - begun})
    print(json.dumps(runs))


if __name__ == "__main__":
    main()

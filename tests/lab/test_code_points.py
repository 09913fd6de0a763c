"""The second byte of IP headers on the wire: code points, ECT(1), and pings over UDP."""

import shutil
import subprocess
from pathlib import Path

import pytest

from ccplay.lab.traffic.program import SERVERS
from ccplay.model.commands import StartCapture
from ccplay.traffic.flow import StartFlow
from ccplay.traffic.ping import Ping, StartPing
from tests.lab.test_captures import captured, capturing, only_file
from tests.lab.trust import physical

pytestmark = pytest.mark.skipif(shutil.which("tcpdump") is None, reason="no tcpdump")

EF, CS1 = 46, 8


def count(file: Path, condition: str) -> int:
    """Return the number of packets in a capture that match a filter of pcap-filter(7)."""
    argv = ["tcpdump", "-nr", str(file), condition]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    return len(done.stdout.splitlines())


async def test_l4s_data_is_ect_1_and_other_data_is_not(tmp_path: Path) -> None:
    """The kernel's TCP sends ECT(0) once ECN is negotiated, and leaves the SYN unmarked."""
    async with capturing(tmp_path) as lab:
        lab.send(StartCapture())
        await captured(lab)
        lab.send(StartFlow(flow="l", cc="cubic", l4s=True, bytes=100_000))
        lab.send(StartFlow(flow="e", cc="cubic", ecn=True, bytes=100_000))
        await lab.until(lambda state: sum(f.ended is not None for f in state.flows.values()) == 2)
    file = only_file(tmp_path)
    for port, flow, ours, theirs in ((SERVERS[0], "l", 1, 2), (SERVERS[1], "e", 2, 1)):
        to = f"tcp dst port {port}"
        assert count(file, f"{to} and ip[1] & 3 = {ours}") > 50, flow
        assert count(file, f"{to} and ip[1] & 3 = {theirs}") == 0, flow
        assert count(file, f"{to} and tcp[tcpflags] & tcp-syn != 0 and ip[1] & 3 = 0") > 0, flow


@physical
async def test_code_points_are_on_the_wire_both_ways(tmp_path: Path) -> None:
    async with capturing(tmp_path) as lab:
        lab.send(StartCapture())
        await captured(lab)
        lab.send(StartPing(ping="i", dscp="EF", count=5, interval_s=0.05))
        lab.send(StartPing(ping="u", dscp="CS1", count=5, interval_s=0.05, protocol="udp"))
        lab.send(StartFlow(flow="f", cc="cubic", dscp="EF", bytes=100_000))
        await lab.until(lambda state: "f" in state.flows and state.flows["f"].ended is not None)
        await lab.until(
            lambda state: (
                len(state.of(Ping)) == 2
                and all(each.ended is not None for each in state.of(Ping).values())
            )
        )
        pings = lab.state.of(Ping)
    for ping in pings.values():
        assert (ping.sent, ping.lost) == (5, 0), ping.name
        # 5 ms each way, and what a busy machine adds.
        found = ping.series["rtt_us"].extremes(0, ping.series["rtt_us"].end)
        assert found is not None
        assert 10_000 < found[0] < 14_000, ping.name
    file = only_file(tmp_path)
    # The ping over UDP took the first.
    port = SERVERS[1]
    marked = f"ip[1] >> 2 = {EF}"
    assert count(file, f"icmp[icmptype] = icmp-echo and {marked}") == 5
    assert count(file, f"icmp[icmptype] = icmp-echoreply and {marked}") == 5
    assert count(file, f"udp and ip[1] >> 2 = {CS1}") == 10
    assert count(file, f"tcp dst port {port} and {marked}") > 50
    assert count(file, f"tcp src port {port} and {marked}") > 5

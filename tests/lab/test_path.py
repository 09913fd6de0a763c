"""What a path is made of, link by link: MTU, delay of each hop, loss that comes again."""

import os

import pytest

from ccplay.model.commands import Build, SetLink
from ccplay.model.network import Topology
from ccplay.model.values import LinkSetting, Qdisc
from ccplay.state.lab_state import LabState
from ccplay.traffic.flow import StartFlow
from ccplay.traffic.ping import Ping, PingEnded, PingSample, StartPing
from ccplay.traffic.udp import StartUdp, Udp
from tests.lab.conftest import Events, running
from tests.lab.test_traffic import end_of
from tests.lab.trust import physical

HEADERS = 20 + 20 + 12
"""Length in bytes of the headers of IPv4 and TCP with timestamps (RFC 7323), which Linux sends by
default."""


def linear(**links: LinkSetting) -> Build:
    named = {name.replace("_", "-"): setting for name, setting in links.items()}
    return Build(topology=Topology(kind="linear"), links=named)


@physical
async def test_segments_fit_the_mtu_and_it_is_reported() -> None:
    mtu = LinkSetting(mtu=400)
    async with running(linear(h1_r=mtu, bottleneck=mtu)) as lab:
        for link in ("h1->r", "r->h1", "r->h2", "h2->r"):
            changes = lab.state.links.get(link)
            if changes:
                assert changes[-1].setting.mtu == 400, link
        lab.send(StartFlow(bytes=50_000))
        await end_of(lab, "1")
        assert lab.state.flows["1"].mss == 400 - HEADERS
        # Datagrams that are longer go in fragments, and arrive whole.
        lab.send(StartUdp(packet_bytes=1024, duration_s=0.4))
        await lab.until(lambda state: "u1" in state.of(Udp) and state.of(Udp)["u1"].ended)
        udp = lab.state.of(Udp)["u1"]
        assert udp.sent == 49
        # iperf3 leaves unread what had come while it waited for its turn, as it hears of the end.
        assert 0.8 * udp.sent <= udp.received <= udp.sent


async def test_a_sender_learns_of_a_smaller_mtu_behind_a_router() -> None:
    """Path MTU discovery (RFC 1191): routers report it, and the connection continues with less."""
    topology = Topology(kind="dumbbell", pairs=1)
    async with running(Build(topology=topology, links={"r1-r2": LinkSetting(mtu=600)})) as lab:
        lab.send(StartFlow(bytes=100_000))
        await end_of(lab, "1")
        assert lab.state.flows["1"].error is None
        assert lab.state.flows["1"].mss == 600 - HEADERS


@physical
async def test_each_hop_adds_its_delay_both_ways() -> None:
    """Experiment 4: two hops of 45 ms each, so that the RTT is 180 ms without a queue."""
    hop = 45_000
    queue = Qdisc(kind="pfifo", options={"limit": 100})
    build = linear(
        h1_r=LinkSetting(rate=10_000_000, delay_us=hop, mtu=400),
        r_h2=LinkSetting(rate=2_000_000, delay_us=hop, mtu=400, qdisc=queue),
    )
    async with running(build) as lab:
        lab.send(StartPing(count=10, interval_s=0.1))
        await lab.until(lambda state: "p1" in state.of(Ping) and state.of(Ping)["p1"].ended)
        answers = lab.state.of(Ping)["p1"].series["rtt_us"]
        times = sorted(answers.values(answers.first, answers.end))
        assert len(times) == 10
        # Four hops; 98 bytes on the wire take 0.5 ms at 2 and 10 Mbit/s both ways. Never less;
        # a busy machine is late now and then, but not by 5 ms in half of the pings.
        assert 4 * hop <= times[0]
        assert times[len(times) // 2] <= 4 * hop + 940 + 5_000


@physical
async def test_a_reply_that_takes_much_longer_than_all_before_is_not_lost() -> None:
    """ping(8) with a limit would wait for the last one for 1 s, which is its interval."""
    async with running(linear(bottleneck=LinkSetting(delay_us=5_000))) as lab:
        lab.send(StartPing(count=2, interval_s=1))
        await lab.until(lambda state: "p1" in state.of(Ping) and state.of(Ping)["p1"].sent == 1)
        lab.send(SetLink(delay_us=1_500_000))
        await lab.until(lambda state: state.of(Ping)["p1"].ended)
        ping = lab.state.of(Ping)["p1"]
        assert (ping.sent, ping.lost) == (2, 0)
        assert (ping.series["rtt_us"].last or 0) > 1_500_000


async def lost_pings(seed: int) -> list[int]:
    """Return which of 100 pings are lost on a link with 20 % loss."""
    events = Events()
    build = Build(
        topology=Topology(kind="linear"),
        links={"r->h2": LinkSetting(loss=0.2, delay_us=2_000)},
        seed=seed,
    )
    async with running(build, events) as lab:
        if _engine(lab.state) == "netem" and kernel() < (6, 7):
            pytest.skip("netem of this kernel takes no seed")
        lab.send(StartPing(count=100, interval_s=0.01))
        await lab.until(lambda state: "p1" in state.of(Ping) and state.of(Ping)["p1"].ended)
    assert [each.sent for each in events.of(PingEnded)] == [100]
    return sorted(each.seq for each in events.of(PingSample) if each.rtt_us is None)


def kernel() -> tuple[int, ...]:
    return tuple(map(int, os.uname().release.split(".")[:2]))


def _engine(state: LabState) -> str:
    return state.links["r->h2"][-1].delay_engine


async def test_the_same_seed_loses_the_same_packets() -> None:
    """Packets are drawn in the order of arrival, so the n-th of a direction is lost or not."""
    first, again, other = [await lost_pings(seed) for seed in (3, 3, 4)]
    assert first == again
    assert first != other
    # 20 of 100, and five standard deviations.
    assert 1 <= len(first) <= 40

"""Cross traffic over a real network: at its rate, counted at both ends, in its own class."""

from pathlib import Path

import pytest

from ccplay.model.commands import Build, SetLink, StartCapture, StopCapture
from ccplay.model.network import Topology
from ccplay.model.values import LinkSetting, Qdisc, TrafficClass
from ccplay.state.lab_state import LabState
from ccplay.traffic.flow import StartFlow
from ccplay.traffic.udp import StartUdp, StopUdp, Udp
from tests.lab.conftest import running
from tests.lab.namespaced import call
from tests.lab.test_captures import capturing, needs_tcpdump, only_file, packets_in
from tests.lab.test_traffic import kill, says
from tests.lab.trust import physical

RATE = 2_000_000


def build(*classes: TrafficClass, limit: int = 50) -> Build:
    queue = Qdisc(kind="pfifo", options={"limit": limit})
    link = LinkSetting(rate=RATE, delay_us=5_000, qdisc=queue, classes=list(classes) or None)
    return Build(topology=Topology(kind="linear"), links={"bottleneck": link})


def over(state: LabState, *names: str) -> bool:
    return all(name in state.of(Udp) and state.of(Udp)[name].ended is not None for name in names)


@physical
async def test_it_sends_at_its_rate_and_all_of_it_arrives() -> None:
    async with running(build()) as lab:
        lab.send(StartUdp(packet_bytes=500, duration_s=1.0))
        await lab.until(lambda state: over(state, "u1"))
        udp = lab.state.of(Udp)["u1"]
        assert udp.error is None
        assert udp.sent == 250
        # iperf3 leaves unread what had come while it waited for its turn, as it hears of the end.
        assert 0.9 * udp.sent <= udp.received <= udp.sent
        assert udp.duration_s == pytest.approx(1.0, abs=0.1)
        # One direction alone carries it, all of it.
        await lab.swept()
        queue = lab.state.queues["r->h2"].series
        assert (queue["bytes"].last or 0) >= udp.sent * (500 + 42)
        assert queue["drops"].last == 0


@physical
async def test_more_than_the_link_carries_is_lost_and_a_stop_tells_it() -> None:
    async with running(build()) as lab:
        lab.send(StartUdp(udp="a", rate_bps=2 * RATE))

        def dropping(state: LabState) -> bool:
            queue = state.queues.get("r->h2")
            return queue is not None and (queue.series["drops"].last or 0) > 200

        await lab.until(dropping)
        lab.send(StopUdp(udp="a"))
        await lab.until(lambda state: over(state, "a"))
        udp = lab.state.of(Udp)["a"]
        assert udp.error is None
        assert udp.jitter_us is not None
        # Half is too much, and the headers; the queue takes some at first, and keeps some at last.
        assert 0.35 <= 1 - udp.received / udp.sent <= 0.7
        lab.send(StopUdp(udp="a"), StartFlow(flow="a"), StartUdp(rate_bps=0))
        await lab.until(lambda state: says(state, "rate: must be from"))
        assert says(lab.state, "UDP 'a' has ended")
        assert says(lab.state, "the name 'a' is taken")


@physical
async def test_the_end_of_a_session_waits_for_no_queue() -> None:
    """1000 packets take 4 s; those left in the queue are neither received nor lost."""
    async with running(build(limit=1000)) as lab:
        lab.send(StartUdp(rate_bps=2 * RATE))
        await lab.until(lambda state: (queued(state) or 0) > 500)
    udp = lab.state.of(Udp)["u1"]
    assert udp.error is None
    # Both ends are told at once. While the receiver takes a second to heed it, 235 arrive.
    assert udp.under_way > 200
    assert udp.sent == udp.received + udp.under_way
    assert udp.loss == 0


@physical
async def test_it_starts_and_ends_on_time_where_the_queue_is_full() -> None:
    """iperf3 negotiates with its receiver for five round trips first, here of 0.4 s each."""
    async with running(build()) as lab:
        lab.send(SetLink(delay_us=45_000), StartFlow(cc="cubic"))
        await lab.until(lambda state: (queued(state) or 0) > 45)
        lab.send(StartUdp(rate_bps=200_000, duration_s=1.0))
        await lab.until(lambda state: over(state, "u1"))
        udp, (*_, applied) = lab.state.of(Udp)["u1"], lab.state.applied
        asked = applied.t - applied.took_s
        # 30 ms for two programs to start; ten times that on a busy machine, but no round trip.
        assert udp.started - asked < 0.35
        assert udp.duration_s == pytest.approx(1.0, abs=0.1)


def queued(state: LabState, queue: str = "r->h2") -> float | None:
    return state.queues[queue].series["qlen"].last if queue in state.queues else None


@needs_tcpdump
@physical
async def test_how_it_agrees_with_its_receiver_is_not_seen_on_the_network(tmp_path: Path) -> None:
    async with capturing(tmp_path) as lab:
        lab.send(StartCapture(capture="c1"), StartUdp(duration_s=0.5, packet_bytes=500))
        await lab.until(lambda state: over(state, "u1"))
        lab.send(StopCapture(capture="c1"))
        await lab.until(lambda state: not state.captures)
    found = await packets_in(only_file(tmp_path))
    # From iperf3 3.16 on, the lab has 2 ms to stop it in.
    assert sum("UDP, length 500" in each for each in found) == lab.state.of(Udp)["u1"].sent == 125
    # No hello and no connection opened; what iperf3 says at the end comes behind the packets.
    assert not any(each.endswith("UDP, length 4") for each in found)
    assert not any("Flags [S" in each for each in found)
    assert any("Flags [" in each for each in found)
    assert lab.state.interfaces is not None
    assert lab.state.interfaces.interface == ["h1-eth0", "r-eth0", "r-eth1", "h2-eth0"]


@physical
async def test_classes_know_it() -> None:
    """A class of its own limits it to its share while a flow wants the rest."""
    cross = TrafficClass(name="cross", share=0.2, traffic=["udp"])
    rest = TrafficClass(name="rest", share=0.8)
    async with running(build(cross, rest)) as lab:
        lab.send(StartFlow())
        # What the flow leaves UDP may borrow.
        await lab.until(lambda state: (queued(state, "r->h2 rest") or 0) > 10)
        lab.send(StartUdp(rate_bps=RATE, duration_s=2.0))
        await lab.until(lambda state: over(state, "u1"))
        await lab.swept()
        udp = lab.state.of(Udp)["u1"]
        assert udp.duration_s is not None
        received_bps = udp.received * udp.packet_bytes * 8 / udp.duration_s
        # A fifth, and what waits in its queue at the end: 50 packets over 2 s.
        assert received_bps <= 0.2 * RATE + 50 * 1066 * 8 / 2
        drops = lab.state.queues["r->h2 cross"].series["drops"].last
        assert drops is not None
        assert drops > 50


async def test_it_reports_why_it_died() -> None:
    async with running(build()) as lab:
        lab.send(StartUdp())
        await lab.until(lambda state: "u1" in state.of(Udp))
        await kill(lab, "iperf3", "-u")
        await lab.until(lambda state: over(state, "u1"))
        assert lab.state.of(Udp)["u1"].error == "iperf3 was killed by SIGKILL"


@physical
def test_an_iperf3_that_does_not_stop_in_time_is_ended_by_the_labs_clock() -> None:
    """1 Mbit/s in packets of 500 bytes are 250 a second; 0.02 s are left to the machine."""
    told = call("tests.lab.traffic_cases:udp_of_a_newer_iperf3", 1.0)
    assert told.get("error") is None
    assert told["duration_s"] == pytest.approx(1.0, abs=0.02)
    assert told["sent"] == pytest.approx(250, abs=5)
    assert told["received"] >= 0.9 * told["sent"]
    assert told.get("under_way", 0) == 0

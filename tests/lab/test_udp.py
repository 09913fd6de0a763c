"""Cross traffic over a real network: at its rate, counted at both ends, in its own class."""

from __future__ import annotations

import pytest

from ccplay.model import (
    Build,
    LinkSetting,
    Qdisc,
    StartFlow,
    StartUdp,
    StopUdp,
    Topology,
    TrafficClass,
)
from ccplay.state import LabState
from tests.lab.conftest import running
from tests.lab.test_traffic import kill, says

RATE = 2_000_000


def build(*classes: TrafficClass) -> Build:
    queue = Qdisc(kind="pfifo", options={"limit": 50})
    link = LinkSetting(rate=RATE, delay_us=5_000, qdisc=queue, classes=list(classes) or None)
    return Build(topology=Topology(kind="linear"), links={"bottleneck": link})


def over(state: LabState, *names: str) -> bool:
    return all(name in state.udp and state.udp[name].ended is not None for name in names)


async def test_it_sends_at_its_rate_and_all_of_it_arrives() -> None:
    async with running(build()) as lab:
        lab.send(StartUdp(packet_bytes=500, duration_s=1.0))
        await lab.until(lambda state: over(state, "u1"))
        udp = lab.state.udp["u1"]
        assert udp.error is None
        assert udp.sent == 250
        # The receiver may hear of the end before it has read the last one.
        assert 248 <= udp.received <= 250
        assert udp.duration_s == pytest.approx(1.0, abs=0.1)
        # One direction alone carries it.
        carried = lab.state.queues["r->h2"].series["bytes"].last
        assert carried is not None
        assert carried >= udp.received * (500 + 42)


async def test_more_than_the_link_carries_is_lost_and_a_stop_tells_it() -> None:
    async with running(build()) as lab:
        lab.send(StartUdp(udp="a", rate_bps=2 * RATE))

        def dropping(state: LabState) -> bool:
            queue = state.queues.get("r->h2")
            return queue is not None and (queue.series["drops"].last or 0) > 200

        await lab.until(dropping)
        lab.send(StopUdp(udp="a"))
        await lab.until(lambda state: over(state, "a"))
        udp = lab.state.udp["a"]
        assert udp.error is None
        assert udp.jitter_us is not None
        # Half is too much, and the headers; the queue takes some at first, and keeps some at last.
        assert 0.35 <= 1 - udp.received / udp.sent <= 0.7
        lab.send(StopUdp(udp="a"), StartFlow(flow="a"), StartUdp(rate_bps=0))
        await lab.until(lambda state: says(state, "rate_bps goes from"))
        assert says(lab.state, "udp 'a' has ended")
        assert says(lab.state, "the name 'a' is taken")


async def test_classes_know_it() -> None:
    """A class of its own holds it to its share while a flow wants the rest."""
    cross = TrafficClass(name="cross", share=0.2, traffic=["udp"])
    rest = TrafficClass(name="rest", share=0.8)
    async with running(build(cross, rest)) as lab:
        lab.send(StartFlow())
        await lab.until(lambda state: "1" in state.flows)
        lab.send(StartUdp(rate_bps=RATE, duration_s=2.0))
        await lab.until(lambda state: over(state, "u1"), 30)
        udp = lab.state.udp["u1"]
        assert udp.duration_s is not None
        received_bps = udp.received * udp.packet_bytes * 8 / udp.duration_s
        # A fifth, and what waits in its queue at the end: 50 packets over 2 s.
        assert received_bps <= 0.2 * RATE + 50 * 1066 * 8 / 2
        drops = lab.state.queues["r->h2 cross"].series["drops"].last
        assert drops is not None
        assert drops > 50


async def test_it_says_why_it_died() -> None:
    async with running(build()) as lab:
        lab.send(StartUdp())
        await lab.until(lambda state: "u1" in state.udp)
        await kill(lab, "iperf3", "-u")
        await lab.until(lambda state: over(state, "u1"))
        assert lab.state.udp["u1"].error == "iperf3 was killed by SIGKILL"

"""BBR's own variables on a real path agree with what the path is."""

from __future__ import annotations

import pytest

from ccplay.model import (
    Build,
    LinkSetting,
    Qdisc,
    SetCongestionControl,
    StartFlow,
    Topology,
)
from tests.lab.conftest import running

BUILD = Build(
    topology=Topology(kind="linear"),
    links={
        "bottleneck": LinkSetting(
            rate=10_000_000, delay_us=10_000, qdisc=Qdisc(kind="pfifo", options={"limit": 100})
        )
    },
)


async def test_bbr_tells_the_bottleneck_and_stops_when_it_is_left() -> None:
    """Alone for 4 s: start-up is over after some ten round trips of 20 ms."""
    async with running(BUILD) as lab:
        hello = lab.state.hello
        assert hello is not None
        offered = hello.capabilities.congestion_controls
        if not any(each.name == "bbr" and each.available for each in offered):
            pytest.skip("this kernel has no bbr")
        lab.send(StartFlow(flow="1", cc="bbr"))
        await lab.until(lambda state: "1" in state.flows)
        await lab.run_for(4.0)
        flow = lab.state.flows["1"]
        last = {name: series.last for name, series in flow.own.items()}
        assert set(last) == {"bbr_bw_bps", "bbr_min_rtt_us", "bbr_pacing_gain", "bbr_cwnd_gain"}
        # Payload is 1448 of 1514 bytes: 9.56 Mbit/s. The filter takes the greatest of ten round
        # trips, and bursts of ACKs on a busy machine make it greater; never less than is sent.
        assert last["bbr_bw_bps"] == pytest.approx(10.5e6, rel=0.2)
        # The base RTT, of which serialisation has 1 to 2 ms; a busy machine holds packets longer.
        assert 20_000 <= (last["bbr_min_rtt_us"] or 0) < 30_000
        # Start-up has 2.89 = 739/256, draining 88/256, the cycle then 1.25, 0.75 and 1.
        gains = flow.own["bbr_pacing_gain"]
        assert set(gains.values(gains.first, gains.end)) <= {739, 88, 320, 192, 256}
        assert 739 in gains.values(gains.first, gains.end)
        assert last["bbr_cwnd_gain"] == 512

        lab.send(SetCongestionControl(flow="1", cc="reno"))
        await lab.until(lambda state: state.flows["1"].cc == "reno")
        end = gains.end
        await lab.run_for(0.5)
        assert gains.end == end

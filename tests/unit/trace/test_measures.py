"""What is measured of a link that moves: its use, the delay it causes, and its base RTT."""

from __future__ import annotations

import pytest

from ccplay.analysis.summary import queueing_delays_us, summarise, utilisation
from ccplay.model.events import LinkChanged
from ccplay.model.moving import Trace
from ccplay.model.network import Topology
from ccplay.model.series import Series
from ccplay.model.topologies import plan
from ccplay.model.values import LinkSetting
from ccplay.model.variables import CAPACITY, MOVED_DELAY
from ccplay.state.lab_state import LabState, base_rtt
from ccplay.traffic.flow import FlowStarted

LINK = "r1->r2"


def moved() -> LabState:
    """Return 10 s of a link of 10 Mbit/s that carries 4 of the 5 Mbit/s that a trace gives it."""
    state = LabState()
    setting = LinkSetting(rate=10_000_000, delay_us=10_000, trace=Trace(name="train"))
    state.apply(LinkChanged(t=0.0, link=LINK, setting=setting, offloads=False, delay_engine=""))
    state.apply(FlowStarted(t=0.0, flow="1", src="s1", dst="d1", cc="cubic", port=5201))
    queue = state.queue(LINK, "pfifo.py")
    for name in (CAPACITY.name, MOVED_DELAY.name):
        queue.own[name] = Series(state.sweeps)
    for name in ("bytes", "backlog"):
        queue.series[name] = Series(state.sweeps)
    for number in range(501):
        tick = state.sweeps.append(number / 50)
        queue.series["bytes"].put(tick, number * 10_000)
        queue.series["backlog"].put(tick, 12_500)
        queue.own[CAPACITY.name].put(tick, 5e6)
        queue.own[MOVED_DELAY.name].put(tick, 20_000 if number < 250 else 60_000)
    state.now = 10.0
    return state


def test_use_is_a_share_of_the_capacity_while_a_link_moves() -> None:
    state = moved()
    assert utilisation(state, state.queues[LINK]) == pytest.approx(0.8, rel=0.01)


def test_the_queueing_delay_is_that_of_the_capacity() -> None:
    state = moved()
    assert queueing_delays_us(state, state.queues[LINK])[10] == pytest.approx(20_000)


def test_the_base_rtt_follows_the_delay() -> None:
    state = moved()
    network = plan(Topology(kind="dumbbell"))
    changes = base_rtt(state, network, "s1", "d1")
    assert [(t, ms) for t, ms in changes if ms] == [(0.0, 20.0), (5.0, 60.0)]


def test_the_result_has_both() -> None:
    (queue,) = summarise(moved(), "run").queues
    assert queue.utilisation == pytest.approx(0.8, rel=0.01)
    # No packet's time was counted here.
    assert queue.self_inflicted_delay_ms is None

"""What is measured of a link that moves: its use, the delay it causes, and its base RTT."""

import pytest
from msgspec.structs import replace

from ccplay.analysis import explain
from ccplay.analysis.explain import Evidence, RoundTrip, Waiting
from ccplay.analysis.summary import queueing_delays_us, summarise, utilisation
from ccplay.lesson.course import RunSpan, measured
from ccplay.model.moving import Trace
from ccplay.model.network import Topology
from ccplay.model.series import Series
from ccplay.model.topologies import plan
from ccplay.model.variables import CAPACITY, MOVED_DELAY
from ccplay.plots import levels
from ccplay.plots.levels import utilisation as drawn
from ccplay.scenario.values import Measure
from ccplay.state.lab_state import LabState, base_rtt, capacity_at, drain_at, mean_capacity
from ccplay.traffic.flow import FlowStarted
from tests.events import HELLO, link_changed

LINK = "r1->r2"


def moved(trace: Trace | None = None, pauses: tuple[float, float] = (0.0, 0.0)) -> LabState:
    """Return 10 s of a link of 10 Mbit/s that carries 4 of the 5 Mbit/s that a trace gives it.

    Between ``pauses``, in seconds, the trace lets nothing pass.
    """
    state = LabState()
    trace = trace or Trace(name="train")
    state.apply(link_changed(0.0, LINK, rate=10_000_000, delay_us=10_000, trace=trace))
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
        pauses_now = pauses[0] < number / 50 <= pauses[1]
        queue.own[CAPACITY.name].put(tick, 0.0 if pauses_now else 5e6)
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


# --- what is said of a link that moves: by its capacity, or nothing -------------------------------


def test_every_share_of_a_link_is_of_its_capacity() -> None:
    """The link's own rate of 10 Mbit/s would make each of them 40 %."""
    state = moved()
    assert drawn(state, LINK, 1.0, 9.0) == pytest.approx(0.8, rel=0.01)
    assert levels.used(levels.Scope(state, LINK, t=9.0)) == pytest.approx(0.8, rel=0.02)
    share = Measure(metric=f"queues.{LINK}.utilisation", text="used", take="mean", unit="%")
    found = measured(state, {"share": share}, RunSpan(1.0, 9.0))
    assert found["share"] == pytest.approx(80, rel=0.01)


def test_the_delay_of_a_queue_lasts_until_its_capacity_has_carried_it() -> None:
    """An outage of a second is in it; at the capacity of the moment there would be no delay."""
    delays = queueing_delays_us(moved(pauses=(5.0, 6.0)), moved().queues[LINK])
    assert delays[4 * 50] == pytest.approx(20_000)
    assert delays[5 * 50] == pytest.approx(1_020_000)
    assert len(delays) == 500
    # A lesson asks for backlog over a rate that such a link does not have.
    asked = Measure(metric=f"queues.{LINK}.delay_ms", text="delay", take="mean", unit="ms")
    assert measured(moved(), {"delay": asked}, RunSpan(1.0, 9.0)) == {"delay": None}


def test_the_links_own_rate_is_not_drawn_while_a_trace_gives_another() -> None:
    state = moved()
    assert levels.rates(levels.Scope(state, LINK)) == ((0.0, None),)
    state.apply(link_changed(10.0, LINK, rate=10_000_000, delay_us=10_000, trace=Trace()))
    assert levels.rates(levels.Scope(state, LINK)) == ((0.0, None), (10.0, 1e7))
    # Half of the time at 5 Mbit/s, half of it at the link's own.
    assert mean_capacity(state, LINK, 9.0, 11.0) == pytest.approx(7.5e6, rel=0.01)


def test_a_mean_counts_the_time_that_a_missed_sweep_was_to_divide() -> None:
    """Each sweep has the capacity since the one before: 1 s at 5 Mbit/s, then 3 s at 1."""
    state = moved()
    state.queues[LINK].own[CAPACITY.name].put(state.sweeps.append(13.0), 1e6)
    assert mean_capacity(state, LINK, 9.0, 13.0) == pytest.approx(2e6)


def test_nothing_is_known_of_a_link_that_moves_before_its_first_sweep() -> None:
    state = moved()
    other = Trace(name="lte-still")
    state.apply(link_changed(10.5, LINK, rate=10_000_000, delay_us=10_000, trace=other))
    assert capacity_at(state, LINK, 9.0) == 5e6
    assert capacity_at(state, LINK, 10.5) is None


def test_a_policer_drops_by_its_rate_and_the_queue_drains_at_the_links() -> None:
    state = moved(Trace(model="policer", options={"rate": 5_000_000}))
    assert capacity_at(state, LINK, 9.0) == 5e6
    assert drain_at(state, LINK, 9.0) == 10_000_000
    assert queueing_delays_us(state, state.queues[LINK])[10] == pytest.approx(10_000)
    assert levels.rates(levels.Scope(state, LINK)) == ((0.0, 1e7),)


def evidence(**known: object) -> Evidence:
    least = {"flow": "1", "cc": "cubic", "cwnd": 50.0, "goodput_bps": 4e6}
    return Evidence(**least | known)  # type: ignore[arg-type]


def test_a_flows_share_is_of_what_could_pass() -> None:
    said = explain.gets(evidence(rate_bps=5e6, moves=True))
    assert "4 Mbit/s, 80% of the 5 Mbit/s that could pass, alone on that link." in said
    said = explain.gets(evidence(rate_bps=0.0, moves=True))
    assert said == "Over the last second a link on its path let nothing pass."


def test_a_queue_that_can_not_drain_now_has_no_delay() -> None:
    waiting = Waiting(link=LINK, packets=12.0, delay_us=None, moves=True)
    assert explain.queued(evidence(waiting=waiting)).endswith("lets nothing pass at this moment.")
    waiting = Waiting(link=LINK, packets=12.0, delay_us=48_000.0, moves=True)
    assert "48 ms at the capacity of this moment" in explain.queued(evidence(waiting=waiting))


def test_waiting_for_a_link_that_moves_is_not_called_queueing() -> None:
    """An empty queue would not give such a path the RTT of its delays."""
    known = RoundTrip(srtt_us=80_000.0, base_rtt_us=40_000.0, unsteady=True)
    said = explain.delayed(evidence(rtt=known))
    assert said == "Its RTT is 80 ms, 50% of it waiting: the links' delays are 40 ms."
    # The delay has just grown, and its smoothed RTT has not followed yet.
    assert explain.delayed(evidence(rtt=replace(known, srtt_us=30_000.0))) == ""


def test_what_is_known_of_a_flow_comes_from_the_capacity() -> None:
    """Its sentences at 9 s, from the state: the queue holds what 5 Mbit/s send in 20 ms."""
    state = moved()
    state.hello = HELLO
    for name, value in (("cwnd", 50.0), ("unacked", 40.0)):
        for tick in range(501):
            state.flows["1"].series[name].put(tick, value)
    found = explain.gather(state, "1", 9.0)
    assert found is not None
    assert found.rate_bps == pytest.approx(5e6)
    assert (found.moves, found.rtt.unsteady) == (True, True)
    assert found.waiting is not None
    assert found.waiting.delay_us == pytest.approx(20_000)

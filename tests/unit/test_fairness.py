"""Fairness, convergence, queueing delay, utilisation and loss of streams worked out by hand."""

import pytest

from ccplay.analysis.sharing import converged_s, fairness, jain
from ccplay.analysis.summary import loss, queueing_delays_us, utilisation
from ccplay.model.events import LinkChanged, Ready
from ccplay.model.samples import Sweep
from ccplay.state.lab_state import LabState
from ccplay.traffic.flow import FlowEnded, FlowStarted
from tests.events import folded, link_changed, qdisc, tcp


def link(t: float, rate: int) -> LinkChanged:
    return link_changed(t, "r->h2", rate=rate)


def flow(t: float, name: str) -> FlowStarted:
    return FlowStarted(t=t, flow=name, src="h1", dst="h2", cc="reno", port=1)


def sweep(t: float, acked: dict[str, float], *, backlog: int = 0, carried: float = 0) -> Sweep:
    counts = {"backlog": backlog, "bytes": round(carried), "drops": 3, "packets": 97}
    return Sweep(
        t=t,
        tcp=tcp(acked, bytes_acked=[round(size) for size in acked.values()]),
        qdisc=qdisc("r->h2", ecn_marks=None, **counts),
    )


def shared(late: float, fair_from: float) -> LabState:
    """Flow 1 runs from 0 to 20 s at 1 Mbit/s; flow 2 comes ``late`` and is slow until later."""
    state = folded(Ready(t=0.0), link(0.0, 1_000_000), flow(0.0, "1"))
    second = 0.0
    for step in range(401):
        t = step / 20
        if t == late:
            state.apply(flow(t, "2"))
        acked = {"1": t * 125_000}
        if t >= late:
            second += (125_000 if t > fair_from else 1_250) / 20
            acked["2"] = second
        state.apply(sweep(t, acked, carried=t * 62_500))
    return state


def test_the_index_by_hand() -> None:
    assert jain([1, 1, 1, 1]) == 1
    assert jain([1, 0]) == 0.5
    assert jain([2, 1]) == pytest.approx(0.9)
    assert jain([0, 0]) is None
    assert jain([1]) is None


def test_fairness_counts_only_the_time_that_all_flows_ran() -> None:
    """Flow 1 had five seconds alone; they are no one's unfairness."""
    assert fairness(shared(late=5.0, fair_from=5.0)) == pytest.approx(1.0, abs=0.001)


def test_a_flow_that_had_ended_before_is_a_part_of_its_own() -> None:
    """Flow 0 ran until flow 1 began; the other two share as they do without it."""
    state = folded(
        flow(0.0, "0"),
        FlowEnded(t=4.0, flow="0", bytes=9, duration_s=4.0, retransmits=0, sent=9, error=None),
        flow(5.0, "1"),
        flow(5.0, "2"),
    )
    for step in range(100, 201):
        t = step / 20
        state.apply(sweep(t, {"1": (t - 5) * 100_000, "2": (t - 5) * 50_000}))
    assert fairness(state) == pytest.approx(0.9, abs=0.001)
    # One that overlaps with all is one of them: nothing of it is counted here.
    state.apply(flow(10.0, "3"))
    assert fairness(state) is None


def test_convergence_is_reported_from_the_last_start() -> None:
    """Fair from 10 s on: the second that ends near 10.9 s is the first fair one."""
    assert converged_s(shared(late=5.0, fair_from=10.0)) == pytest.approx(5.6, abs=0.3)


def test_the_steps_in_which_convergence_is_looked_for_grow_with_time_and_flows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With 60 shares at most, the 15 s of two flows are looked at in steps of half a second."""
    monkeypatch.setattr("ccplay.analysis.sharing._MOST_SHARES", 60)
    assert converged_s(shared(late=5.0, fair_from=10.0)) == 6.0


def test_flows_that_never_share_never_converge() -> None:
    assert converged_s(shared(late=5.0, fair_from=99.0)) is None
    assert fairness(shared(late=5.0, fair_from=99.0)) == pytest.approx(0.51, abs=0.01)


def test_one_flow_shares_with_nobody() -> None:
    state = shared(late=99.0, fair_from=99.0)
    assert (fairness(state), converged_s(state)) == (None, None)


def test_utilisation_is_of_the_rate_that_held() -> None:
    """62,500 bytes a second are half of 1 Mbit/s."""
    state = shared(late=5.0, fair_from=5.0)
    assert utilisation(state, state.queues["r->h2"]) == pytest.approx(0.5, abs=0.001)


def test_utilisation_follows_a_change_of_the_rate() -> None:
    """At 1 Mbit/s for the first half and 3 for the second, half a Mbit/s is a quarter."""
    state = shared(late=99.0, fair_from=99.0)
    state.apply(link(10.0, 3_000_000))
    assert utilisation(state, state.queues["r->h2"]) == pytest.approx(0.25, abs=0.001)


def test_a_link_without_a_rate_has_no_utilisation_and_no_delay() -> None:
    state = shared(late=5.0, fair_from=5.0)
    state.links["r->h2"] = [link(0.0, 0)]
    queue = state.queues["r->h2"]
    assert (utilisation(state, queue), queueing_delays_us(state, queue)) == (None, [])


def test_delay_is_backlog_over_the_rate_of_that_moment() -> None:
    """15,140 bytes wait 121 ms at 1 Mbit/s, half of it at 2."""
    state = folded(
        *(link(0.0, 1_000_000), sweep(1.0, {}, backlog=15_140)),
        *(link(2.0, 2_000_000), sweep(3.0, {}, backlog=15_140)),
    )
    delays = queueing_delays_us(state, state.queues["r->h2"])
    assert delays == pytest.approx([121_120, 60_560])


def test_loss_is_the_share_of_what_came() -> None:
    """97 packets left, 3 were dropped."""
    state = folded(sweep(1.0, {}))
    assert loss(state.queues["r->h2"]) == 0.03

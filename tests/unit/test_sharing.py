"""Harm, starvation, settling, recovery, loss synchronisation and RPM of series made by hand."""

from collections.abc import Callable

import pytest

from ccplay.analysis.sharing import Reaction, loss_synchronisation, reactions, responsiveness
from ccplay.model.events import Ready
from ccplay.model.samples import Sweep
from ccplay.model.values import LinkSetting
from ccplay.state.lab_state import LabState
from ccplay.traffic.flow import FlowStarted
from ccplay.traffic.ping import PingSample, PingStarted
from tests.events import folded, link_changed, tcp

MBIT = 125_000
Rates = Callable[[str, float], float]
"""Goodput of a flow at a moment, in bytes per second."""


def session(
    starts: dict[str, float],
    rate: Rates,
    *,
    links: dict[float, LinkSetting] | None = None,
    srtt_us: Rates = lambda _, __: 40_000,
    retransmits: Callable[[str, float], int] = lambda _, __: 0,
    seconds: float = 20.0,
) -> LabState:
    """Play a session of flows sampled 20 times a second."""
    state = folded(Ready(t=0.0))
    changes = {0.0: LinkSetting(rate=10_000_000, delay_us=20_000), **(links or {})}
    acked = dict.fromkeys(starts, 0.0)
    for step in range(round(seconds * 20) + 1):
        t = step / 20
        if t in changes:
            state.apply(link_changed(t, "r->h2", changes[t]))
        for name, start in starts.items():
            if t == start:
                state.apply(FlowStarted(t=t, flow=name, src="h1", dst="h2", cc="reno", port=1))
        running = [name for name, start in starts.items() if t >= start]
        for name in running:
            acked[name] += rate(name, t) / 20
        samples = tcp(
            running,
            bytes_acked=[round(acked[name]) for name in running],
            srtt_us=[round(srtt_us(name, t)) for name in running],
            min_rtt_us=40_000,
            mss=1448,
            total_retrans=[retransmits(name, t) for name in running],
        )
        state.apply(Sweep(t=t, tcp=samples))
    return state


def reaction(state: LabState, name: str) -> Reaction:
    return next(each for each in reactions(state) if each.id == name)


def test_harm_compares_a_flow_alone_with_itself_beside_another() -> None:
    """Flow a has 8 Mbit/s alone and 2 beside b, which also doubles its RTT: x = 8, y = 2."""
    state = session(
        {"a": 0.0, "b": 10.0},
        lambda name, t: (8 if t < 10 else 2 if name == "a" else 6) * MBIT,
        srtt_us=lambda _, t: 40_000 if t < 10 else 80_000,
    )
    harmed = reaction(state, "a")
    assert harmed.harm_rate == pytest.approx(0.75, abs=0.01)
    assert harmed.harm_delay == pytest.approx(0.5, abs=0.01)
    assert harmed.harm_loss == 0
    assert reaction(state, "b").harm_rate is None, "it was never alone"


def test_harm_by_loss_is_the_share_that_the_other_caused() -> None:
    """One a second alone, 0.14 %, counts as 1 %; ten beside the other at a quarter of the rate."""
    state = session(
        {"a": 0.0, "b": 10.0},
        lambda name, t: (8 if t < 10 else 2 if name == "a" else 6) * MBIT,
        retransmits=lambda _, t: int(t) if t < 10 else 10 + int(10 * (t - 10)),
    )
    beside = 10 / (2 * MBIT / 1448 + 10)
    assert reaction(state, "a").harm_loss == pytest.approx(1 - 0.01 / beside, abs=0.03)


def test_flows_that_start_together_have_no_time_alone() -> None:
    state = session({"a": 0.0, "b": 0.0}, lambda _, __: MBIT)
    assert reaction(state, "a").harm_rate is None


def test_a_flow_starves_in_seconds_below_a_tenth_of_an_equal_share() -> None:
    """From 10 to 15 s flow a has 0.2 of 10 Mbit/s: an equal share is 5. They meet at 5 s."""
    state = session(
        {"a": 0.0, "b": 5.0},
        lambda name, t: ((0.2 if 10 < t <= 15 else 5) if name == "a" else 5) * MBIT,
    )
    assert reaction(state, "a").starved == pytest.approx(5 / 15, abs=1e-4)
    assert reaction(state, "b").starved == 0


def test_settling_is_the_time_until_goodput_and_delay_are_those_of_later() -> None:
    """The link changes at 5 s; goodput is at its new level from 8 s on, delay from 9 s on."""
    state = session(
        {"a": 0.0},
        lambda _, t: (2 if t < 8 else 8) * MBIT,
        links={5.0: LinkSetting(rate=20_000_000, delay_us=20_000)},
        srtt_us=lambda _, t: 40_000 if t < 5 else 90_000 if t < 9 else 45_000,
    )
    settled = reaction(state, "a").settling_s
    assert settled == pytest.approx(3.9, abs=0.4), "windows of half a second reach over the edge"
    assert reaction(state, "a").recovery_s is None, "nothing was silent"


def test_without_a_change_nothing_settles() -> None:
    assert reaction(session({"a": 0.0}, lambda _, __: MBIT), "a").settling_s is None


@pytest.mark.parametrize(("changes_at", "settles"), [(17.9, True), (18.1, False)])
def test_a_change_counts_if_four_windows_of_half_a_second_follow(
    changes_at: float, *, settles: bool
) -> None:
    links = {changes_at: LinkSetting(rate=20_000_000, delay_us=20_000)}
    state = session({"a": 0.0}, lambda _, __: MBIT, links=links)
    assert (reaction(state, "a").settling_s is not None) == settles


def silent(back_at: float) -> LabState:
    """All packets are lost from 5 to 10 s; the flow sends at its old rate from ``back_at`` on."""
    return session(
        {"a": 0.0},
        lambda _, t: 0 if 5 <= t < back_at else 8 * MBIT,
        links={
            5.0: LinkSetting(rate=10_000_000, delay_us=20_000, loss=1.0),
            10.0: LinkSetting(rate=10_000_000, delay_us=20_000, loss=0.0),
        },
        retransmits=lambda _, t: 0 if t < 5.2 else 1 if t < 6 else 2 if t < 9 else 3,
    )


def test_recovery_counts_from_the_end_of_a_silence() -> None:
    back = reaction(silent(12.0), "a")
    assert back.recovery_s == pytest.approx(1.8, abs=0.3), "half of the goodput over half a second"
    assert back.silent_retransmits == 3


def test_a_flow_that_never_comes_back_has_no_recovery_time() -> None:
    assert reaction(silent(99.0), "a").recovery_s is None


@pytest.mark.parametrize(("apart_s", "expected"), [(0.0, 1.0), (1.0, 0.5)])
def test_losses_are_synchronised_if_all_lose_within_a_round_trip(
    apart_s: float, expected: float
) -> None:
    """Both flows lose every two seconds, together or a second apart."""
    state = session(
        {"a": 0.0, "b": 0.0},
        lambda _, __: 5 * MBIT,
        retransmits=lambda name, t: int((t - (apart_s if name == "b" else 0.0) + 1) // 2),
    )
    assert loss_synchronisation(state) == pytest.approx(expected)


def test_without_a_loss_nothing_is_synchronised() -> None:
    assert loss_synchronisation(session({"a": 0.0, "b": 0.0}, lambda _, __: MBIT)) is None


def test_round_trips_a_minute_weigh_pings_and_srtt_alike() -> None:
    """Pings of 50 ms and srtt of 150 ms: 60 s over 100 ms."""
    state = session({"a": 0.0}, lambda _, __: MBIT, srtt_us=lambda _, __: 150_000, seconds=5.0)
    state.apply(PingStarted(t=1.0, ping="p1", src="h1", dst="h2", interval_s=0.1))
    for number in range(10):
        state.apply(PingSample(t=1.1 + number / 10, ping="p1", seq=number, rtt_us=50_000))
    assert responsiveness(state) == pytest.approx(600, rel=0.01)


def test_without_pings_there_is_no_responsiveness() -> None:
    assert responsiveness(session({"a": 0.0}, lambda _, __: MBIT, seconds=2.0)) is None

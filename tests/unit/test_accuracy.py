"""An RTT that is not the links' own speaks against a run; one that a queue explains does not."""

import pytest

from ccplay.analysis.trust import delay_off, judge
from ccplay.model.network import Link, Network, Node, Topology
from ccplay.model.values import LinkSetting
from ccplay.state.lab_state import LabState
from tests.events import folded, health, link_changed
from tests.unit.test_fairness import flow, sweep
from tests.unit.test_summary import HELLO

LINKS = ["h1->r", "r->h2", "h2->r", "r->h1"]


def run(
    least_us: int, *, backlog: int = 0, jitter_us: int = 0, reorder: float | None = None
) -> LabState:
    """Return a second of one flow over 10 ms each way, whose kernel saw ``least_us``."""
    from msgspec.structs import replace

    nodes = [Node(name=name, role="router", address="") for name in ("h1", "r", "h2")]
    links = [
        Link(name=name, src=name.split("->")[0], dst=name.split("->")[1], interface="x")
        for name in LINKS
    ]
    network = Network(
        topology=Topology(kind="linear"), nodes=nodes, links=links, bottlenecks=["r->h2"]
    )
    state = folded(replace(HELLO, network=network))
    for name in LINKS:
        delay = 10_000 if name in ("r->h2", "r->h1") else 0
        setting = LinkSetting(rate=1_000_000, delay_us=delay, jitter_us=jitter_us, reorder=reorder)
        state.apply(link_changed(0, name, setting))
    state.apply(flow(1.0, "1"))
    for t in (1.1, 2.0):
        event = sweep(t, {"1": 1000}, backlog=backlog)
        assert event.tcp is not None
        event.tcp.min_rtt_us[0] = least_us
        state.apply(event)
    state.apply(health(2.0))
    return state


@pytest.mark.parametrize("least_us", [19_500, 20_000, 23_000, 26_000])
def test_a_round_trip_near_the_links_own_is_right(least_us: int) -> None:
    """Four links of 1 Mbit/s take 3 ms for a small packet; a busy machine may add as much."""
    assert delay_off(run(least_us)) is None
    assert judge(run(least_us)).trustworthy


def test_a_round_trip_below_the_links_delay_can_not_be() -> None:
    assert judge(run(2_000)).reasons == ["flow 1 got down to 2.0 ms; the links alone give 20.0 ms"]


def test_a_round_trip_far_above_is_wrong() -> None:
    assert delay_off(run(60_000)) is not None


def test_a_queue_that_never_emptied_explains_it() -> None:
    """5,000 bytes at 1 Mbit/s are 40 ms."""
    assert delay_off(run(60_000, backlog=5_000)) is None


def test_a_queue_that_was_empty_before_the_flow_began_explains_nothing_away() -> None:
    """Another flow had filled it by then."""
    state = run(0)
    state.apply(flow(2.5, "2"))
    for t in (2.6, 3.0):
        event = sweep(t, {"1": 1000, "2": 1000}, backlog=5_000)
        assert event.tcp is not None
        event.tcp.min_rtt_us[:] = [0, 60_000]
        state.apply(event)
    assert delay_off(state) is None


def test_jitter_leaves_no_base_to_compare_with() -> None:
    assert delay_off(run(60_000, jitter_us=1_000)) is None


def test_packets_that_are_sent_ahead_skip_the_delay() -> None:
    assert delay_off(run(100, reorder=0.05)) is None


def test_a_window_that_no_path_holds_speaks_against_a_run() -> None:
    """What a kernel takes from its stack where it runs no BPF program in its first process."""
    state = run(20_000)
    event = sweep(2.1, {"1": 1000})
    assert event.tcp is not None
    event.tcp.min_rtt_us[0] = 20_000
    event.tcp.ssthresh[0] = 0x81104110
    state.apply(event)
    found = judge(state)
    assert found.impossible_windows == 1
    assert not found.trustworthy
    assert found.reasons[0].startswith("flow 1 had a window of 2,165,326,")

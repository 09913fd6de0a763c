"""No result above what a link's frames leave for payload is trusted; one below it is."""

import pytest
from msgspec.structs import replace

from ccplay.analysis.trust import above_framing, judge
from ccplay.model.events import LinkChanged
from ccplay.model.network import Link, Network, Node, Topology
from ccplay.state.lab_state import LabState
from ccplay.traffic.flow import FlowEnded
from tests.events import folded, health, link_changed
from tests.unit.test_fairness import flow, sweep
from tests.unit.test_summary import HELLO

GIGABIT = 1_000_000_000
"""956.4 Mbit/s of it are payload: 1448 bytes of each 1514."""


def link(t: float, rate: int, mtu: int | None = None, *, offloads: bool = False) -> LinkChanged:
    return replace(link_changed(t, "h1->h2", rate=rate, mtu=mtu), offloads=offloads)


def run(*links: LinkChanged, mss: int = 1448, **flows: tuple[float, float, float]) -> LabState:
    """Return a run of flows: of each when it began, its seconds and its bytes."""
    ends = [Node(name=name, role="", address="") for name in ("h1", "h2")]
    wire = Link(name="h1->h2", src="h1", dst="h2", interface="x")
    network = Network(topology=Topology(), nodes=ends, links=[wire], bottlenecks=["h1->h2"])
    state = folded(replace(HELLO, network=network), *links)
    for name, (begin, _, _) in flows.items():
        state.apply(flow(begin, name))
    event = sweep(9.0, {name: size for name, (_, _, size) in flows.items()})
    assert event.tcp is not None
    event.tcp.mss[:] = [mss] * len(flows)
    state.apply(event)
    for name, (_, seconds, size) in flows.items():
        end = FlowEnded(t=10, flow=name, bytes=round(size), duration_s=seconds, retransmits=0)
        state.apply(end)
    state.apply(health(10.0))
    return state


def test_what_a_wire_can_not_carry_is_not_trusted() -> None:
    """50 MB at 1 Gbit/s need 0.418 s, and somebody read 0.414."""
    state = run(link(0, GIGABIT, offloads=True), a=(1.0, 0.414, 50_000_000))
    (reason,) = judge(state).reasons
    assert reason == (
        "flow a had 966.18 Mbit/s of payload over h1->h2, where framing allows 956.41 Mbit/s"
    )


@pytest.mark.parametrize("seconds", [0.4183, 0.42, 1.0])
def test_what_a_wire_can_carry_is_trusted(seconds: float) -> None:
    state = run(link(0, GIGABIT, offloads=True), a=(1.0, seconds, 50_000_000))
    assert judge(state).trustworthy


@pytest.mark.parametrize(
    ("mtu", "mss", "share"),
    [
        (None, 1448, 1448 / 1514),
        # Without timestamps there are 12 bytes more for payload,
        (None, 1460, 1460 / 1514),
        # on a link of short packets less is,
        (576, 524, 524 / 590),
        # and short segments on one of long packets have 54 bytes of headers at the least.
        (None, 536, 536 / 590),
    ],
)
def test_headers_count(mtu: int | None, mss: int, share: float) -> None:
    rate, seconds = 10_000_000, 5.0
    for factor, trusted in ((0.999, True), (1.002, False)):
        size = rate / 8 * seconds * share * factor
        state = run(link(0, rate, mtu), mss=mss, a=(1.0, seconds, size))
        assert (above_framing(state) is None) is trusted


def test_the_rate_counts_as_it_was_over_time() -> None:
    """Two seconds of 10 Mbit/s and two of 2; what framing allows of them is 2.87 MB."""
    changes = (link(0, 10_000_000), link(3, 2_000_000))
    allowed = (2 * 10e6 + 2 * 2e6) / 8 * 1448 / 1514
    assert above_framing(run(*changes, a=(1.0, 4.0, allowed * 0.999))) is None
    assert above_framing(run(*changes, a=(1.0, 4.0, allowed * 1.005))) is not None


def test_a_faster_rate_holds_a_little_before_it_is_reported() -> None:
    changes = (link(0, 1_000_000), link(3, 100_000_000))
    allowed = (1.95 * 1e6 + 1.05 * 100e6) / 8 * 1448 / 1514
    assert above_framing(run(*changes, a=(1.0, 3.0, allowed))) is None
    assert above_framing(run(*changes, a=(1.0, 3.0, allowed * 1.1))) is not None


def test_a_link_without_a_rate_carries_anything() -> None:
    assert above_framing(run(link(0, 0), a=(1.0, 1.0, 1e12))) is None
    assert above_framing(run(a=(1.0, 1.0, 1e12))) is None


def test_flows_share_what_a_link_carries() -> None:
    """Each alone is well below it; one after the other they may both have all of it."""
    most = 10_000_000 / 8 * 1448 / 1514
    found = above_framing(
        run(link(0, 10_000_000), a=(1.0, 2.0, 1.2 * most), b=(1.5, 2.0, 1.4 * most))
    )
    assert found is not None
    assert found.startswith("2 flows together had 9.9466 Mbit/s")
    fair = run(link(0, 10_000_000), a=(1.0, 2.0, 1.2 * most), b=(1.5, 2.0, 1.2 * most))
    assert above_framing(fair) is None
    apart = run(link(0, 10_000_000), a=(1.0, 2.0, 2.0 * most), b=(3.5, 2.0, 2.0 * most))
    assert above_framing(apart) is None

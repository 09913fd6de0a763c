"""What is counted beside the sweeps: ECN agreed on, payload sent, packets of each interface."""

import pytest

from ccplay.model.commands import Build
from ccplay.model.events import InterfaceCounters
from ccplay.model.network import Topology
from ccplay.model.values import LinkSetting, Qdisc
from ccplay.traffic.flow import StartFlow
from tests.lab.conftest import running
from tests.lab.test_traffic import end_of, flow_is_open


def build(**bottleneck: float) -> Build:
    queue = Qdisc(kind="pfifo", options={"limit": 30})
    link = LinkSetting(rate=10_000_000, delay_us=5_000, qdisc=queue, loss=bottleneck.get("loss"))
    return Build(topology=Topology(kind="linear"), links={"r->h2": link})


async def test_a_flow_asks_for_ecn_and_others_to_the_same_host_do_not() -> None:
    async with running(build()) as lab:
        # It comes first: Linux asks without ECN again where a full queue has dropped its SYN.
        lab.send(StartFlow(flow="marked", ecn=True, streams=2))
        await lab.until(lambda state: flow_is_open(state, "marked/2"))
        lab.send(StartFlow(flow="plain"))
        names = ("plain", "marked", "marked/2")
        await lab.until(lambda state: all(flow_is_open(state, name) for name in names))
        flows = lab.state.flows
        assert [flows[name].ecn for name in names] == [False, True, True]
        # Its route goes with it: a port that comes again must not bring ECN along.
        lab.send(StartFlow(flow="third", bytes=20_000))
        await end_of(lab, "third")
        assert not flows["third"].ecn


async def test_packets_are_counted_where_they_pass_are_dropped_and_are_lost() -> None:
    async with running(build(loss=0.05)) as lab:
        lab.send(StartFlow(bytes=2_000_000, cc="cubic"))
        await end_of(lab, "1")
        # What stands in the queue, 36 ms of it, and is under way comes to its end.
        await lab.run_for(0.5)
    state = lab.state
    found = state.interfaces
    assert found is not None
    rows = {link: row for row, link in enumerate(found.link)}
    assert set(rows) == {"h1->r", "r->h1", "r->h2", "h2->r"}

    def count(link: str, name: str) -> int:
        return int(getattr(found, name)[rows[link]])

    # A cable loses nothing.
    assert count("h1->r", "sent") == count("r->h1", "received")
    assert count("r->h2", "sent") == count("h2->r", "received")
    # What came to the router has left it or was dropped.
    assert count("h1->r", "sent") == count("r->h2", "sent") + count("r->h2", "dropped")
    assert count("r->h2", "dropped") == state.queues["r->h2"].series["drops"].last
    # 5 % of 1400 or more packets are 70, and six standard deviations are 49.
    assert count("r->h2", "lost") == pytest.approx(count("r->h2", "sent") * 0.05, abs=50)
    assert count("h1->r", "lost") == 0
    flow = state.flows["1"]
    assert flow.sent >= flow.bytes
    # Every segment that was sent again is payload that was sent again.
    assert flow.sent - flow.bytes <= (flow.retransmits + 200) * 1448


async def test_nothing_is_counted_while_the_lab_runs() -> None:
    """Interfaces are read once, at the end, so that they cost nothing per sweep."""
    async with running(build()) as lab:
        lab.send(StartFlow(duration_s=0.3))
        await end_of(lab, "1")
        assert lab.state.interfaces is None
    assert isinstance(lab.state.interfaces, InterfaceCounters)

"""Flows over several paths: goodput, subflows by name, paths that go and come, refusals."""

import pytest

from ccplay.bpf.support import lack as bpf_lack
from ccplay.lab.traffic import path_manager
from ccplay.model.commands import Build, SetCongestionControl, SetLink
from ccplay.model.network import Topology
from ccplay.model.values import LinkSetting, Qdisc
from ccplay.state.lab_state import LabState
from ccplay.traffic.connections import Flow
from ccplay.traffic.flow import StartFlow, StopFlow
from tests.lab.conftest import RunningLab, running
from tests.lab.namespaced import call
from tests.lab.trust import physical

CASES = "tests.lab.mptcp_cases"

ONE_BPS = 10e6 * 1428 / 1514
"""Payload of a link of 10 Mbit/s in bits per second: 1428 bytes per frame, because MPTCP's option
has 20."""

QUEUE = Qdisc(kind="pfifo", options={"limit": 50})
CORE = LinkSetting(rate=10_000_000, delay_us=2_000, qdisc=QUEUE)
EDGE = LinkSetting(rate=100_000_000, delay_us=500)
FABRIC = Build(
    topology=Topology(kind="leaf-spine", parameters={"leaves": 2, "spines": 2, "hosts": 1}),
    links={"core": CORE, "edge": EDGE},
)
MULTIHOMED = Build(topology=Topology(kind="multihomed"), links={"bottleneck": CORE})


@pytest.fixture(autouse=True)
def _needs_mptcp() -> None:
    feature = path_manager.connections()
    if not feature.available:
        pytest.skip(f"{feature.reason}: {feature.remedy}")


def goodput_bps(state: LabState, flow: Flow, start: float, end: float) -> float:
    """Return the payload acknowledged between two moments, in bits per second."""
    acked, sweeps = flow.series["bytes_acked"], state.sweeps
    first, last = sweeps.before_or_at(start), sweeps.before_or_at(end)
    grown = (acked.latest(last) or 0) - (acked.latest(first) or 0)
    return grown * 8 / (sweeps.time(last) - sweeps.time(first))


async def open_subflows(lab: RunningLab, flow: StartFlow, count: int = 2) -> list[Flow]:
    lab.send(flow)
    name = flow.flow or "1"
    await lab.until(lambda state: name in state.flows and len(state.flows[name].subflows) == count)
    return lab.state.flows[name].subflows


@physical
@pytest.mark.parametrize("manager", ["ndiffports", "fullmesh"])
async def test_two_disjoint_paths_carry_twice_the_payload_of_one(manager: str) -> None:
    """90 % of twice what framing leaves of one, because of losses and data sent twice."""
    build = FABRIC if manager == "ndiffports" else MULTIHOMED
    flow = StartFlow(flow="m", mptcp=True, path_manager=manager, cc="reno")
    async with running(build) as lab:
        one, other = await open_subflows(lab, flow)
        assert [each.name for each in (one, other)] == ["m/1", "m/2"]
        await lab.until(lambda _: (one.cc, other.cc) == ("reno", "reno"))
        await lab.until(lambda _: bool(one.via and other.via))
        assert not set(one.via[1:-1]) & set(other.via[1:-1]) - {"leaf1", "leaf2"}
        await lab.run_for(3)
        start = lab.state.now
        await lab.run_for(5)
        end, state = lab.state.now, lab.state
        whole = goodput_bps(state, state.flows["m"], start, end)
        assert 1.8 * ONE_BPS <= whole <= 2.03 * ONE_BPS
        for each in (one, other):
            assert 0.85 * ONE_BPS <= goodput_bps(state, each, start, end) <= 1.03 * ONE_BPS
        # The connection has what its subflows have, read in the same sweep.
        tick = state.sweeps.end - 1
        parts = [each.series["cwnd"].at(tick) or 0 for each in (one, other)]
        assert state.flows["m"].series["cwnd"].at(tick) == sum(parts)


@physical
@pytest.mark.skipif(bpf_lack() is not None, reason=f"{bpf_lack()}")
async def test_lia_takes_no_more_than_tcp_of_a_bottleneck_that_its_subflows_share() -> None:
    """RFC 6356, section 2: half of it. Four uncoupled subflows would have four fifths.

    The share is over half a minute, in which either may have lost more: from 1/4 to 5/8. It was
    0.48 to 0.58, and 0.76 to 0.81 uncoupled. PIE drops at random; a full pfifo drops from whoever
    has sent a burst, and there it was 0.25 to 0.6.
    """
    queue = Qdisc(kind="pie", options={"target": 30_000})
    core = LinkSetting(rate=20_000_000, delay_us=0, qdisc=queue)
    edge = LinkSetting(rate=100_000_000, delay_us=0)
    shape = {"leaves": 2, "spines": 1, "hosts": 2}
    build = Build(
        topology=Topology(kind="leaf-spine", parameters=shape), links={"core": core, "edge": edge}
    )
    coupled = StartFlow(flow="m", src="h1", dst="h3", mptcp=True, subflows=4, cc="lia.bpf")
    async with running(build) as lab:
        # First, so that its handshake is not lost to the slow start of the other.
        subflows = await open_subflows(lab, coupled, 4)
        await lab.until(lambda _: all(each.cc == "lia.bpf" for each in subflows))
        lab.send(StartFlow(flow="tcp", src="h2", dst="h4", cc="reno"))
        await lab.run_for(3)
        start = lab.state.now
        await lab.run_for(30)
        end, state = lab.state.now, lab.state
        mine, other = (goodput_bps(state, state.flows[name], start, end) for name in ("m", "tcp"))
    assert mine + other > 0.85 * 2 * ONE_BPS
    assert 1 / 4 < mine / (mine + other) < 5 / 8


@pytest.mark.parametrize(
    ("manager", "ends"),
    [("kernel-signal", [("h1-eth1", "h2-eth1")]), ("kernel-subflow", [("h1-eth1", "h2-eth0")])],
)
async def test_the_kernels_path_manager_uses_the_endpoints_of_one_end(
    manager: str, ends: list[tuple[str, str]]
) -> None:
    """The receiver's other address, once announced, is reached over the sender's link to it."""
    flow = StartFlow(flow="m", mptcp=True, path_manager=manager, subflows=8, cc="reno")
    async with running(MULTIHOMED) as lab:
        one, other = await open_subflows(lab, flow)
        assert [each.name for each in (one, other)] == ["m/1", "m/2"]
        await lab.until(lambda _: other.acked > 500_000 and other.cc == "reno")
        assert lab.state.hello is not None
        network = lab.state.hello.network
        interfaces = {link.address: link.interface for link in network.links}
        assert [tuple(interfaces[each] for each in other.ends)] == ends
    assert not [each for each in lab.state.log if each.kind in ("error", "warning")]


async def test_the_kernels_path_manager_needs_a_second_address() -> None:
    async with running(FABRIC) as lab:
        flow = StartFlow(flow="m", mptcp=True, path_manager="kernel-signal")
        await open_subflows(lab, flow, 1)
        (warning,) = [each.text for each in lab.state.log if each.kind == "warning"]
        assert warning.startswith("flow m gets no further subflow: h2 has one address")


async def test_a_connection_outlives_a_path_and_uses_it_again() -> None:
    """The kernel sends over the other path at once, and returns at a retransmission timeout."""
    async with running(MULTIHOMED) as lab:
        flow = StartFlow(flow="1", mptcp=True, path_manager="fullmesh", cc="reno")
        one, other = await open_subflows(lab, flow)
        await lab.until(lambda _: other.acked > 500_000)
        lab.send(SetLink(link="r2-h2", down=True))
        await lab.until(lambda _: len(other.paths) == 2)
        assert not other.paths[-1].links
        assert one.via == ("h1", "r1", "h2")
        before, whole = one.acked, lab.state.flows["1"]
        sent = whole.acked
        await lab.until(lambda _: one.acked > before + 1_000_000)
        # It also carries again what was under way on the other one, some 450 kB, for which the
        # receiver waits: the connection is behind by that, and by as much again at the very most.
        await lab.until(lambda _: whole.acked > sent + 500_000)
        assert one.acked < before + 500_000 + 1_000_000
        stood = other.acked
        lab.send(SetLink(link="r2-h2", down=False))
        await lab.until(lambda _: other.acked > stood + 500_000)
        assert other.via == ("h1", "r2", "h2")
        assert whole.running
        assert other.running, "the kernel kept the subflow"
    assert not [each for each in lab.state.log if each.kind == "error"]


async def test_hosts_send_and_receive_at_once_and_flows_are_switched_and_end() -> None:
    """A host whose paths the lab manages still accepts subflows."""
    async with running(FABRIC) as lab:
        await open_subflows(lab, StartFlow(flow="there", src="h1", dst="h2", mptcp=True))
        back = StartFlow(flow="back", src="h2", dst="h1", mptcp=True, bytes=4_000_000)
        await open_subflows(lab, back)
        lab.send(SetCongestionControl(flow="there", cc="reno"))
        there = lab.state.flows["there"]
        await lab.until(lambda _: all(each.cc == "reno" for each in (there, *there.subflows)))
        await lab.until(lambda state: state.flows["back"].ended is not None)
        assert lab.state.flows["back"].bytes == 4_000_000
        assert all(not each.running for each in lab.state.flows["back"].subflows)
        lab.send(StopFlow(flow="there"))
        await lab.until(lambda _: not there.running)
    assert not [each for each in lab.state.log if each.kind in ("error", "warning")]


async def test_a_flow_that_fell_back_to_tcp_is_reported_and_counted_as_tcp() -> None:
    """RFC 8684, section 3.7. One in three does where half is lost, and none of 24 once in 10^4.

    One that does so when its SYN is lost never had a subflow.
    """
    lossy = LinkSetting(rate=10_000_000, delay_us=1_000, loss=0.5)
    build = Build(topology=Topology(kind="multihomed"), links={"bottleneck": lossy})

    def fallen(state: LabState) -> list[Flow]:
        texts = [each.text.split() for each in state.log if "fell back to TCP" in each.text]
        return [flow for _, name, *_ in texts if (flow := state.flows[name]).subflows]

    async with running(build) as lab:
        lab.send(*(StartFlow(flow=f"m{number}", mptcp=True) for number in range(24)))
        await lab.until(fallen)
        flow = fallen(lab.state)[0]
        (only,) = flow.subflows
        await lab.swept()
        tick = lab.state.sweeps.end - 1
        acked, alone = (each.series["bytes_acked"].at(tick) for each in (flow, only))
        assert acked is not None
        assert acked == alone


@pytest.mark.parametrize("rootless", [False, True], ids=["root", "rootless"])
def test_where_it_is_switched_off_the_lab_reports_it_and_refuses(rootless: bool) -> None:
    feature, refusal = call(f"{CASES}:switched_off", rootless=rootless)
    assert (feature["available"], feature["reason"]) == (False, "MPTCP is disabled")
    assert feature["remedy"] == "sysctl net.mptcp.enabled=1"
    assert refusal == "flow 1: no mptcp: MPTCP is disabled; sysctl net.mptcp.enabled=1"


def test_a_scheduler_that_the_kernel_lacks_is_refused_with_those_it_has() -> None:
    assert "scheduler 'nobody' is not in this kernel (has: default" in call(
        f"{CASES}:unknown_scheduler"
    )

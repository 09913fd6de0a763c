"""Flows over several paths: which subflows, what they have together, and what is kept of them."""

import re
import struct
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace

from ccplay.analysis.metrics import metric_problem, metrics_of
from ccplay.analysis.summary import summarise
from ccplay.analysis.trust import above_framing, delay_off
from ccplay.errors import ScenarioError, UnsupportedError
from ccplay.lab.connection import (
    INFO_SIZE,
    OPTION_ECN,
    OPTIONS,
    PLACES,
    UNKNOWN_RTT,
    Connection,
    Joint,
)
from ccplay.lab.traffic.path_manager import Ends, choose
from ccplay.model.base import Event
from ccplay.model.events import FlowPath
from ccplay.model.network import Topology
from ccplay.model.topologies import plan
from ccplay.model.values import INFINITE_SSTHRESH, Feature
from ccplay.report.data.naming import words
from ccplay.report.data.scene import scene
from ccplay.scenario.reading import parse
from ccplay.scenario.rules import check_against
from ccplay.scenario.values import Scenario
from ccplay.state.lab_state import LabState
from ccplay.stream import wire
from ccplay.traffic.flow import FlowEnded, FlowStarted, SubflowEnded, SubflowStarted
from tests.events import folded, health, link_changed
from tests.unit.test_fairness import sweep
from tests.unit.test_summary import HELLO

NETWORK = plan(Topology(kind="leaf-spine", parameters={"leaves": 2, "spines": 2, "hosts": 1}))
STARTED = FlowStarted(t=1.0, flow="1", src="h1", dst="h2", cc="reno", port=5201, mptcp=True)


def opened(t: float, number: int) -> SubflowStarted:
    return SubflowStarted(
        t=t, flow="1", subflow=f"1/{number}", src="10.0.0.1", dst="10.0.2.1", sport=10_000 + number
    )


def way(t: float, flow: str, spine: str) -> FlowPath:
    nodes = ["h1", "leaf1", spine, "leaf2", "h2"]
    links = [f"{src}->{dst}" for src, dst in pairwise(nodes)]
    return FlowPath(t=t, flow=flow, links=links)


def session(*more: Event) -> LabState:
    """Return a connection of 2 MB whose subflows had 1.2 MB each: some data went twice."""
    state = LabState()
    hello = replace(HELLO, network=NETWORK)
    first: list[Event] = [hello, STARTED, opened(1.0, 1), opened(1.2, 2)]
    for event in first:
        state.apply(event)
    state.apply(way(1.0, "1/1", "spine1"))
    state.apply(way(1.2, "1/2", "spine2"))
    state.apply(sweep(2.0, {"1": 1_000_001, "1/1": 600_001, "1/2": 600_001}))
    state.apply(sweep(9.0, {"1": 2_000_001, "1/1": 1_200_001, "1/2": 1_200_001}))
    for each in more:
        state.apply(each)
    return state


# --- which subflows -----------------------------------------------------------------------------


def test_source_ports_are_those_whose_paths_share_least() -> None:
    """Ports 10 to 13 hash to spine 1, the next to spine 2; what both share counts for neither."""

    def path(ends: Ends) -> list[str]:
        return ["h1->leaf1", f"leaf1->spine{1 if ends.sport < 14 else 2}"]

    found = choose("ndiffports", (["a"], ["b"]), (range(10, 20), 5201), 3, path)
    assert found[:2] == [Ends("a", 10, "b", 5201), Ends("a", 14, "b", 5201)]
    assert len(set(found)) == 3


def test_a_full_mesh_has_a_subflow_for_each_pair_of_addresses_disjoint_ones_first() -> None:
    def path(ends: Ends) -> list[str]:
        return [ends.src, ends.dst]

    found = choose("fullmesh", (["a", "b"], ["c", "d"]), (range(10, 20), 5201), 8, path)
    pairs = [(each.src, each.dst) for each in found]
    assert pairs[:2] == [("a", "c"), ("b", "d")]
    assert sorted(pairs) == [("a", "c"), ("a", "d"), ("b", "c"), ("b", "d")]
    assert len({each.sport for each in found}) == 4
    assert len(choose("fullmesh", (["a"], ["c"]), (range(9), 1), 8, path)) == 1


# --- what they have together --------------------------------------------------------------------


def member(name: str, *, options: int = 0, **fields: int) -> Connection:
    connection = Connection(name, 1, 2)
    info = bytearray(INFO_SIZE)
    known = {"ssthresh": INFINITE_SSTHRESH, "min_rtt_us": UNKNOWN_RTT, **fields}
    for field, value in known.items():
        code, offset = PLACES[field]
        struct.pack_into(f"={code}", info, offset, value)
    info[OPTIONS] = options
    connection.lone_info, connection.cc = bytes(info), b"reno"
    return connection


def test_a_joint_has_the_sums_and_means_of_its_members() -> None:
    joint = Joint("1", lambda: None)
    assert joint.info == b""
    joint.add(Connection("1/3", 1, 3))
    joint.read()
    assert joint.info == b"", "nothing is known before a member was read"
    joint.add(member("1/1", cwnd=10, srtt_us=20_000, bytes_acked=1001, ca_state=3, mss=1448))
    joint.add(
        member("1/2", cwnd=30, srtt_us=40_000, bytes_acked=501, mss=1400, ssthresh=7, min_rtt_us=9)
    )
    joint.read()
    assert {
        name: joint.field(name)
        for name in ("cwnd", "srtt_us", "bytes_acked", "ca_state", "mss", "ssthresh", "min_rtt_us")
    } == {
        "cwnd": 40,
        "srtt_us": 30_000,
        "bytes_acked": 1501,
        "ca_state": 3,
        "mss": 1448,
        "ssthresh": 7,
        "min_rtt_us": 9,
    }
    assert joint.algorithm == "reno"


def test_a_joint_keeps_what_a_member_had_that_has_ended() -> None:
    joint = Joint("1", lambda: None)
    gone = member("1/1", cwnd=10, bytes_acked=1001, bytes_sent=1500, total_retrans=3)
    joint.add(gone)
    joint.add(member("1/2", cwnd=20, bytes_acked=11, bytes_sent=10, options=OPTION_ECN))
    joint.remove(gone)
    joint.read()
    assert joint.field("cwnd") == 20
    assert joint.field("bytes_acked") == 1011
    assert joint.field("bytes_sent") == 1510
    assert joint.field("total_retrans") == 3
    assert joint.info[OPTIONS] & OPTION_ECN


def test_the_connection_s_own_count_comes_before_that_of_its_subflows() -> None:
    joint = Joint("1", lambda: 700)
    joint.add(member("1/1", bytes_acked=501))
    joint.add(member("1/2", bytes_acked=501))
    joint.read()
    assert joint.field("bytes_acked") == 701


# --- what is kept -------------------------------------------------------------------------------


def test_events_of_a_numbered_connection_cross_the_wire() -> None:
    for event in (
        way(1.0, "1/2", "spine2"),
        opened(1.0, 2),
        SubflowEnded(t=2, flow="1", subflow="1/2"),
    ):
        assert wire.decode_event(wire.encode(event)) == event


def test_the_connection_is_one_and_its_subflows_stand_beside_it() -> None:
    state = session(FlowEnded(t=11.0, flow="1", bytes=2_000_000, duration_s=8.0, retransmits=4))
    assert list(state.flows) == ["1", "1/1", "1/2"]
    assert list(state.traffic) == ["1"]
    assert list(state.streams["1"]) == ["1"]
    assert state.flows["1/2"].via == ("h1", "leaf1", "spine2", "leaf2", "h2")
    state.apply(health(11.0))
    (flow,) = summarise(state, "x").flows
    assert (flow.mptcp, flow.streams, flow.goodput_bps) == (True, 1, 2_000_000.0)
    assert [(each.id, each.bytes) for each in flow.subflows] == [
        ("1/1", 1_200_000),
        ("1/2", 1_200_000),
    ]
    assert [each.duration_s for each in flow.subflows] == [8.0, 7.8]
    assert not any(each.ended for each in flow.subflows)
    assert flow.subflows[1].path == "h1 → leaf1 → spine2 → leaf2 → h2"
    assert [route.stream for route in flow.routes] == ["1/1", "1/2"]
    assert [entry.text for entry in state.log[:4]] == [
        "subflow 1/1 opens: 10.0.0.1 → 10.0.2.1",
        "subflow 1/2 opens: 10.0.0.1 → 10.0.2.1",
        "subflow 1/1 takes h1 → leaf1 → spine1 → leaf2 → h2",
        "subflow 1/2 takes h1 → leaf1 → spine2 → leaf2 → h2",
    ]


def test_a_subflow_that_is_gone_has_ended_and_the_next_one_is_another() -> None:
    state = session(SubflowEnded(t=9.0, flow="1", subflow="1/2"), opened(9.5, 3))
    assert state.flows["1/2"].ended == 9.0
    assert state.flows["1"].running
    (flow,) = summarise(state, "x").flows
    assert [(each.id, each.ended) for each in flow.subflows] == [
        ("1/1", False),
        ("1/2", True),
        ("1/3", False),
    ]


def test_a_subflow_of_nothing_or_of_a_tcp_flow_is_no_subflow() -> None:
    """A stranger's recording may say anything."""
    state = folded(
        opened(0.0, 1),
        replace(STARTED, mptcp=False),
        opened(2.0, 1),
        SubflowEnded(t=3.0, flow="1", subflow="1"),
    )
    assert list(state.flows) == ["1"]
    assert state.flows["1"].running


def test_a_metric_of_a_subflow_has_a_path_and_words() -> None:
    state = session()
    state.apply(health(11.0))
    path = "flows.1.subflows.1/2.goodput_bps"
    assert path in metrics_of(summarise(state, "x"))
    assert words(path).text == "goodput of subflow 1/2"
    assert words("flows.1.goodput_bps").text == "goodput of flow 1"


def test_a_report_draws_subflows_behind_their_flow() -> None:
    groups = scene(session()).flows
    assert [[each.name for each in group] for group in groups] == [["1"], ["1/1"], ["1/2"]]


def test_two_links_carry_more_than_one_and_neither_more_than_its_rate() -> None:
    """1.2 MB in 8 s are 1.2 Mbit/s of payload; the connection has 2."""
    state = session(FlowEnded(t=9.0, flow="1", bytes=2_000_000, duration_s=8.0, retransmits=0))
    for spine in ("spine1", "spine2"):
        state.apply(link_changed(0.0, f"leaf1->{spine}", rate=1_400_000))
    assert above_framing(state) is None
    state.links["leaf1->spine2"] = [link_changed(0.0, "leaf1->spine2", rate=1_000_000)]
    assert (above_framing(state) or "").startswith("flow 1/2 had 1.2")


def test_each_subflow_s_least_rtt_is_compared_with_the_path_that_it_took() -> None:
    """Over spine 1 it takes 8 ms there and back, over spine 2 there 104 ms; back by either."""
    state = session()
    for each in NETWORK.links:
        delay_us = 50_000 if each.dst == "spine2" or each.src == "spine2" else 1_000
        state.links[each.name] = [link_changed(0.0, each.name, rate=10**8, delay_us=delay_us)]
    now = sweep(9.5, {"1": 1, "1/1": 1, "1/2": 1})
    assert now.tcp is not None
    now.tcp.min_rtt_us[:] = [57_000, 8_000, 106_000]
    state.apply(now)
    assert delay_off(state) is None
    now.tcp.min_rtt_us[:] = [57_000, 8_000, 60_000]
    state.apply(replace(now, t=9.6))
    assert (delay_off(state) or "").startswith("subflow 1/2 got down to 60.0 ms")


# --- scenarios and kernels ----------------------------------------------------------------------

FILE = """duration = "1 s"
links.bottleneck.rate = "1 Mbit/s"
timeline = [{{ at = "0 s", do = "start-flow", {} }}]
"""


def read(fields: str) -> Scenario:
    return parse(FILE.format(fields), Path("x.toml"))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ("subflows = 3", "timeline[0].subflows: only a flow with mptcp = true has it"),
        ('path-manager = "fullmesh"', "timeline[0].path-manager: only a flow with mptcp"),
        ("mptcp = true, streams = 2", "timeline[0].streams: a flow over mptcp has one stream"),
        ("mptcp = true, monitor = true", "timeline[0].monitor: packets of a flow over mptcp"),
        ("mptcp = true, subflows = 9", "timeline[0].subflows: must be from 1 to 8, not 9"),
        (
            'mptcp = true, path-manager = "full"',
            'unknown path manager "full"; did you mean "fullmesh"?',
        ),
    ],
)
def test_what_does_not_go_together_is_reported_with_its_place(fields: str, said: str) -> None:
    with pytest.raises(ScenarioError, match=re.escape(said)):
        read(fields)


def test_a_kernel_without_reports_it_with_reason_and_remedy() -> None:
    scenario = read('mptcp = true, scheduler = "burst"')
    kernel = HELLO.capabilities
    has = Feature(name="mptcp", available=True)
    lacks = Feature(name="mptcp", available=False, reason="no CONFIG_MPTCP", remedy="build it")
    default = Feature(name="default", available=True)
    with pytest.raises(UnsupportedError) as refused:
        check_against(scenario, replace(kernel, mptcp=[lacks], schedulers=[]))
    assert "can't be used here: no CONFIG_MPTCP; build it" in str(refused.value)
    with pytest.raises(UnsupportedError) as refused:
        check_against(scenario, replace(kernel, mptcp=[has], schedulers=[default]))
    assert 'MPTCP scheduler "burst" is not in this kernel (has: default)' in str(refused.value)
    check_against(read("mptcp = true"), replace(kernel, mptcp=[has], schedulers=[default]))


def test_metrics_of_subflows_can_be_named_in_a_scenario() -> None:
    (case,) = read("flow = 'a', mptcp = true, subflows = 3").cases
    assert not metric_problem("flows.a.subflows.a/3.goodput_bps", case)
    assert metric_problem("flows.a.subflows.a/4.goodput_bps", case)

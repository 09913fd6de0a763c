"""Networks of several paths: all hosts reach each other, flows spread, cables go down and up."""

import pytest

from ccplay.analysis.summary import summarise
from ccplay.model.commands import Build, SetLink, SetPath
from ccplay.model.network import Topology
from ccplay.model.values import LinkSetting, Qdisc
from ccplay.traffic.connections import Flow
from ccplay.traffic.download import StartDownload
from ccplay.traffic.flow import StartFlow
from ccplay.traffic.routes import back_of, nodes_of
from ccplay.traffic.short_flows import StartShortFlows
from ccplay.traffic.udp import StartUdp, Udp
from tests.lab.conftest import running
from tests.lab.namespaced import call

CASES = "tests.lab.fabric_cases"

KINDS = [
    ("linear", {"routers": 3}),
    ("star", {"hosts": 3}),
    ("leaf-spine", {"leaves": 2, "spines": 2, "hosts": 2}),
    ("super-spine", {"hosts": 1}),
    ("fat-tree", {"k": 4}),
    ("loopless", {"hosts": 1}),
]


@pytest.mark.parametrize("rootless", [False, True], ids=["root", "rootless"])
@pytest.mark.parametrize(("kind", "parameters"), KINDS, ids=[kind for kind, _ in KINDS])
def test_all_hosts_reach_each_other(kind: str, parameters: dict[str, int], rootless: bool) -> None:
    assert call(f"{CASES}:stands", kind, parameters, rootless=rootless) >= 2


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("cable", ["h1 does not reach h2 (and 1 other pair of hosts)", "leaf1 does not forward"]),
        ("forwarding", ["h1 does not reach h2", "spine1 does not forward"]),
        ("nothing", []),
    ],
)
def test_a_pair_that_can_t_talk_is_named_with_the_hop(what: str, words: list[str]) -> None:
    said = call(f"{CASES}:broken", what)
    assert bool(said) == bool(words)
    for each in words:
        assert each in said


def test_64_flows_spread_over_two_spines_the_same_way_each_time() -> None:
    """Three standard deviations of a fair coin: 64 · ½ ± 12."""
    first = call(f"{CASES}:spread", 1)
    assert first["surprises"] == []
    assert set(first["taken"]) == {"spine1", "spine2"}
    assert all(20 <= count <= 44 for count in first["taken"].values())
    assert call(f"{CASES}:spread", 1) == first


def test_routes_follow_cables_that_go_down_and_up() -> None:
    seen = call(f"{CASES}:detour")["seen"]
    assert [each[1] for each in seen] == [
        ["spine2"],
        ["spine1", "spine2"],
        ["spine1"],
        [""],
        ["spine2"],
        ["spine1", "spine2"],
        [""],
        ["spine1", "spine2"],
    ], seen
    assert [each[2] == "all" for each in seen] == [
        *(True, True, True, False),
        *(True, True, False, True),
    ]


async def test_a_flow_moves_to_another_path_and_back_and_its_queue_is_kept() -> None:
    build = Build(
        topology=Topology(kind="leaf-spine", parameters={"leaves": 2, "spines": 2, "hosts": 1}),
        links={"bottleneck": LinkSetting(rate=10_000_000, delay_us=1_000)},
    )
    async with running(build) as lab:
        lab.send(StartFlow(flow="1", src="h1", dst="h2"))
        await lab.until(lambda state: "1" in state.flows and bool(state.flows["1"].via))
        flow = lab.state.flows["1"]
        first = flow.via
        up, queue = f"{first[1]}->{first[2]}", lab.state.queues
        await lab.until(lambda _: flow.acked > 500_000)

        lab.send(SetLink(link=up, down=True))
        await lab.until(lambda _: len(flow.paths) == 2)
        assert flow.via[2] in {"spine1", "spine2"} - {first[2]}
        # The sweep before it may have come just before the cable went down.
        await lab.swept()
        before, carried = flow.acked, queue[up].series["bytes"].newest
        await lab.until(lambda _: flow.acked > before + 500_000)
        now = lab.state.link_at(up, lab.state.now)
        assert now is not None
        assert (now.setting.down, now.setting.rate) == (True, 10_000_000)
        assert queue[up].series["bytes"].newest == carried

        lab.send(SetLink(link=up, down=False))
        await lab.until(lambda _: len(flow.paths) == 3)
        assert flow.via == first
        more = (carried or 0) + 100_000
        await lab.until(lambda _: (queue[up].series["bytes"].newest or 0) > more)

        # Its own cable: there is no other path, and it goes on when the cable is up again.
        lab.send(SetLink(link="h1-leaf1", down=True))
        await lab.until(lambda _: len(flow.paths) == 4)
        assert flow.via == ()
        lab.send(SetLink(link="h1-leaf1", down=False))
        before = flow.acked
        await lab.until(lambda _: flow.acked > before + 100_000)
        assert flow.running
        assert flow.via == first
    assert not [each for each in lab.state.log if each.kind == "error"]


async def test_drops_are_counted_by_interface() -> None:
    """Each interface of a router has its own count; those without drops have zero."""
    queue = Qdisc(kind="pfifo", options={"limit": 10})
    build = Build(
        topology=Topology(kind="star", parameters={"hosts": 3}),
        links={"bottleneck": LinkSetting(rate=2_000_000, qdisc=queue)},
    )
    async with running(build) as lab:
        lab.send(StartFlow(flow="1", src="h1", dst="h2"))
        await lab.swept()
        queues = lab.state.queues
        await lab.until(lambda _: (queues["r->h2"].series["drops"].newest or 0) > 3)
    counted = lab.state.interfaces
    assert counted is not None
    dropped = dict(zip(counted.link, counted.dropped, strict=True))
    # More may have been dropped after the last sweep.
    assert dropped.pop("r->h2") >= (queues["r->h2"].series["drops"].newest or 0) > 3
    assert set(dropped.values()) == {0}


FABRIC = Build(
    topology=Topology(kind="leaf-spine", parameters={"leaves": 2, "spines": 2, "hosts": 2}),
    links={"bottleneck": LinkSetting(rate=10_000_000, delay_us=1_000)},
)


async def test_traffic_takes_the_path_that_a_command_chooses() -> None:
    """The links' counters agree with the kernel's routes."""
    async with running(FABRIC) as lab:
        lab.send(StartFlow(flow="1", src="h1", dst="h3", via=["spine2"], streams=3))
        lab.send(StartUdp(udp="u1", src="h2", dst="h4", via=["spine2"], rate_bps=1_000_000))
        await lab.until(lambda s: "u1" in s.traffic and "1/3" in s.flows)
        udp, flow = lab.state.of(Udp)["u1"], lab.state.flows["1"]
        await lab.until(lambda s: bool(udp.paths) and all(f.paths for f in s.flows.values()))
        routed: list[Udp | Flow] = [udp, *lab.state.flows.values()]
        for each in routed:
            assert each.paths[-1].pinned
            assert nodes_of(each.paths[-1])[2] == "spine2"
        queues = lab.state.queues
        await lab.until(lambda _: flow.acked > 500_000)
        # ACKs of two segments each come back where the kernel is said to lead them.
        acks = back_of(flow.paths[0])
        assert (acks[0], acks[1], acks[3], acks[4]) == ("h3", "leaf2", "leaf1", "h1")
        await lab.until(lambda _: (queues[f"leaf2->{acks[2]}"].series["bytes"].newest or 0) > 3_000)
        assert not udp.paths[0].back
        # At most the answers of those that came back this way.
        assert (queues["leaf1->spine1"].series["bytes"].newest or 0) < 50_000

        lab.send(SetPath(traffic="1"))
        done = SetPath(traffic="1", via=["leaf1", "spine1", "leaf2"])
        await lab.until(lambda s: len(flow.paths) == 2 and s.applied[-1].command == done)
        assert nodes_of(flow.paths[-1])[2] == "spine1"
        before = queues["leaf1->spine1"].series["bytes"].newest or 0
        await lab.until(
            lambda _: (queues["leaf1->spine1"].series["bytes"].newest or 0) > before + 500_000
        )

        # A path that is down is left to the hash, and taken again.
        lab.send(SetLink(link="spine1-leaf2", down=True))
        await lab.until(lambda _: len(flow.paths) == 3)
        assert (nodes_of(flow.paths[-1])[2], flow.paths[-1].pinned) == ("spine2", False)
        lab.send(SetLink(link="spine1-leaf2", down=False))
        await lab.until(lambda _: len(flow.paths) == 4)
        assert (nodes_of(flow.paths[-1])[2], flow.paths[-1].pinned) == ("spine1", True)

        lab.send(SetPath(traffic="1", via=[]))
        await lab.until(lambda _: not flow.paths[-1].pinned)
        assert not [each for each in lab.state.log if each.kind == "error"]
        lab.source.send(SetPath(traffic="1", via=["leaf2", "spine1"]))
        await lab.until(lambda s: any(each.kind == "error" for each in s.log))
        assert lab.state.log[-1].text == (
            "no shortest path from h1 to h3 leads through leaf2, spine1; "
            "they lead through: leaf1, spine1, leaf2, spine2"
        )


async def test_the_paths_of_downloads_and_short_flows_are_known() -> None:
    async with running(FABRIC) as lab:
        lab.send(StartDownload(download="w", src="h1", dst="h3", bytes=20_000, via=["spine1"]))
        lab.send(
            StartShortFlows(
                short_flows="x", src="h2", dst="h4", bytes=2_000, sizes="fixed", count=24
            )
        )
        await lab.until(lambda s: len(s.traffic) == 2 and all(t.ended for t in s.traffic.values()))
        (path,) = lab.state.flows["w"].paths
        assert (nodes_of(path)[2], path.pinned) == ("spine1", True)
        result = summarise(lab.state, "paths").short_flows[0]
        assert {each.nodes[2] for each in result.routes} == {"spine1", "spine2"}
        # 24 flips of a coin: one side never shows up once in eight million times.
        assert sum(each.transfers or 0 for each in result.routes) == result.finished == 24

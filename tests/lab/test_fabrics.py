"""Networks of several paths: all hosts reach each other, flows spread, cables go down and up."""

from __future__ import annotations

import pytest

from ccplay.model.commands import Build, SetLink
from ccplay.model.network import Topology
from ccplay.model.traffic_commands import StartFlow
from ccplay.model.values import LinkSetting, Qdisc
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
    """A router has several: each has its own count, and those that dropped nothing have none."""
    queue = Qdisc(kind="pfifo", options={"limit": 10})
    build = Build(
        topology=Topology(kind="star", parameters={"hosts": 3}),
        links={"bottleneck": LinkSetting(rate=2_000_000, qdisc=queue)},
    )
    async with running(build) as lab:
        lab.send(StartFlow(flow="1", src="h1", dst="h2"))
        queues = lab.state.queues
        await lab.until(lambda _: (queues["r->h2"].series["drops"].newest or 0) > 3)
    counted = lab.state.interfaces
    assert counted is not None
    dropped = dict(zip(counted.link, counted.dropped, strict=True))
    # More may have been dropped after the last sweep.
    assert dropped.pop("r->h2") >= (queues["r->h2"].series["drops"].newest or 0) > 3
    assert set(dropped.values()) == {0}

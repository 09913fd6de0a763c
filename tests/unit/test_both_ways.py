"""Starts that stand for several: both directions at once, several senders; and their scenario."""

from pathlib import Path

import pytest

from ccplay.errors import CommandError, ScenarioError
from ccplay.model.network import Topology
from ccplay.model.topologies import plan
from ccplay.scenario.reading import parse
from ccplay.traffic import split_starts
from ccplay.traffic.flow import StartFlow
from ccplay.traffic.ping import StartPing
from ccplay.traffic.udp import StartUdp

LINEAR = plan(Topology(kind="linear"))
STAR = plan(Topology(kind="star", parameters={"hosts": 4}))
LEAVES = plan(Topology(kind="leaf-spine"))


def test_both_ways_is_a_second_start_the_other_way_round() -> None:
    there, back = split_starts(StartFlow(flow="1", cc="reno", streams=2, bidir=True), LINEAR)
    assert there == StartFlow(flow="1", src="h1", dst="h2", cc="reno", streams=2)
    assert back == StartFlow(flow="1-back", src="h2", dst="h1", cc="reno", streams=2)
    udp = split_starts(StartUdp(udp="u1", src="h2", via=["spine1"], bidir=True), LEAVES)
    peer = LEAVES.peer("h2")
    assert [(each.udp, each.src, each.dst, each.via) for each in udp] == [
        ("u1", "h2", peer, ["spine1"]),
        ("u1-back", peer, "h2", ["spine1"]),
    ]


def test_what_is_not_named_gets_no_name() -> None:
    assert [each.flow for each in split_starts(StartFlow(bidir=True, senders=2), STAR)] == [
        None
    ] * 4


def test_what_asks_for_nothing_of_it_is_left_alone() -> None:
    for command in (StartFlow(), StartPing(), StartUdp(udp="u")):
        assert split_starts(command, LINEAR) == (command,)


def test_several_senders_are_the_hosts_from_the_first_on_without_the_receiver() -> None:
    found = split_starts(StartFlow(flow="a", src="h3", dst="h4", senders=3), STAR)
    assert [(each.flow, each.src, each.dst) for each in found] == [
        ("a", "h3", "h4"),
        ("a-2", "h1", "h4"),
        ("a-3", "h2", "h4"),
    ]
    with pytest.raises(CommandError, match="the network has 3 other hosts"):
        split_starts(StartFlow(dst="h4", senders=4), STAR)


def scenario(steps: str) -> str:
    return f"""
title = "x"
duration = "9 s"
topology = {{ kind = "star", hosts = 4 }}
timeline = [{steps}]
"""


def test_a_scenario_has_a_step_for_each_and_numbers_them() -> None:
    text = scenario(
        '{ at = "0 s", do = "start-flow", dst = "h4", bytes = "1 MB", senders = 3 },'
        '{ at = "1 s", do = "start-udp", bidir = true, duration = "1 s" },'
        '{ after = "u1-back", do = "stop-flow", flow = "3" },'
    )
    (case,) = parse(text, Path("x.toml")).cases
    names = [each.command.name for each in case.timeline]  # type: ignore[attr-defined]
    assert names == ["1", "2", "3", "u1", "u1-back", "3"]


TAKEN = """
{ at = "0 s", do = "start-flow", flow = "1", bidir = true },
{ at = "0 s", do = "start-flow", flow = "1-back" },
"""


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (
            '{ at = "0 s", do = "start-flow", dst = "h4", senders = 9 }',
            "9 senders to h4: the network has 3 other hosts",
        ),
        (TAKEN, 'the name "1-back" is taken'),
        ('{ at = "0 s", do = "start-flow", via = ["spine1"] }', 'no router "spine1"'),
        ('{ at = "0 s", do = "start-flow", via = "r" }', "must be a list of names"),
        (
            '{ at = "0 s", do = "start-ping" }, { at = "1 s", do = "set-path", traffic = "p1" }',
            'no traffic "p1" with a path is ever started',
        ),
        (
            '{ at = "2 s", do = "start-udp" }, { at = "1 s", do = "set-path", traffic = "u1" }',
            "too early",
        ),
    ],
)
def test_mistakes_are_reported(steps: str, said: str) -> None:
    with pytest.raises(ScenarioError) as found:
        parse(scenario(steps), Path("x.toml"))
    assert said in str(found.value)

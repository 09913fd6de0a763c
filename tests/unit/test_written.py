"""Networks written out in a scenario have the given nodes and links; mistakes have their lines."""

from pathlib import Path

import pytest

from ccplay.errors import CommandError, ScenarioError
from ccplay.model.network import Topology, WrittenNetwork
from ccplay.model.topologies import describe_topology, plan
from ccplay.scenario.reading import parse
from ccplay.scenario.values import Case
from ccplay.scenario.writing import network as written_again

PATH = Path("own.toml")
HEAD = 'duration = "9 s"\ntopology.kind = "written"\n'


def case(text: str) -> Case:
    return parse(HEAD + text, PATH).case()


def refusal(text: str) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        case(text)
    return list(caught.value.lines)


TRIANGLE = """
topology.hosts = ["a", "b"]
topology.routers = ["x", "y", "z-1"]
topology.links = [
  { ends = ["a", "x"] },
  { ends = ["x", "y"], rate = "5 Mbit/s", delay = "3 ms" },
  { ends = ["y", "z-1"], loss = "1 %" },
  { ends = ["x", "z-1"] },
  { ends = ["y", "b"], queue = { kind = "pfifo", limit = 9 } },
]
"""


def test_nodes_links_and_their_settings_are_those_of_the_file() -> None:
    build = case(TRIANGLE).build
    network = plan(build.topology)
    assert network.hosts == ["a", "b"]
    assert network.routers == ["x", "y", "z-1"]
    assert [f"{there.src} {there.dst}" for there, _ in network.cables] == [
        *("a x", "x y", "y z-1", "x z-1", "y b")
    ]
    assert network.observed == ["x->y", "y->x"], "where routers send and there is a rate"
    assert [link.name for link in network.path("a", "b")] == ["a->x", "x->y", "y->b"]
    assert network.peer("a") == "b"
    setting = build.links["x-y"]
    assert (setting.rate, setting.delay_us) == (5_000_000, 3_000)
    assert build.links["y-z-1"].delay_us == 0, "a delay that is not written is none"
    assert "a-x" not in build.links
    assert [link.name for link in network.resolve("z-1-x")] == ["z-1->x", "x->z-1"]


def test_without_any_rate_every_router_s_egress_is_observed_what_traffic_crosses_first() -> None:
    network = plan(
        Topology(
            kind="written",
            written=WrittenNetwork(
                hosts=["a", "b"], routers=["x", "y"], cables=[("b", "y"), ("x", "y"), ("a", "x")]
            ),
        )
    )
    assert network.observed == ["x->y", "y->b", "y->x", "x->a"]


def test_links_of_the_scenario_override_those_of_the_topology() -> None:
    build = case(TRIANGLE + 'links.y-x.rate = "1 Mbit/s"\nlinks.x-y.delay = "9 ms"\n').build
    assert list(build.links)[-2:] == ["y-x", "x-y"]
    assert build.links["x-y"].delay_us == 9_000
    assert build.links["x-y"].rate == 5_000_000, "what it does not override stays"


def test_all_mistakes_are_reported_at_once_with_their_lines() -> None:
    lines = refusal("""
topology.hosts = ["h1", "h2", 5, "h1", "-x"]
topology.routers = ["r1"]
topology.links = [
  { ends = ["h1", "r9"] },
  { ends = ["h1", "r1"], rate = "5 Mbt/s" },
  { ends = ["r1", "h1"] },
  { ends = ["r1", "r1"] },
  { ends = ["r1"] },
  { rate = "1 Mbit/s", dealy = "1 ms" },
]
""")
    assert [line.partition(": ")[0] for line in lines[1:]] == [
        *(["own.toml:4"] * 3),
        *(f"own.toml:{number}" for number in (7, 8, 9, 10, 11, 12, 12)),
    ]
    for words in (
        'in quotes, such as "h1", not 5',
        'a node "h1" already',
        '"-x" is not a name of a node',
        'links[0].ends[1]: there is no node "r9"',
        '"5 Mbt/s" is not a rate',
        "a link r1-h1 already",
        'joins "r1" with itself',
        "two names of nodes",
        "ends is missing",
        'unknown key; did you mean "delay"?',
    ):
        assert sum(words in line for line in lines) == 1, (words, lines)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "hosts is missing"),
        ('topology.hosts = ["a"]\ntopology.links = []\n', "two hosts or more"),
        ("topology.hosts = 4\n", "must be a list of names"),
        ("topology.spines = 2\n", 'only a "leaf-spine" or "super-spine" has spines'),
        (TRIANGLE.replace('"b"]', '"b", "c"]', 1), "no path from a to c: it has no link"),
        (
            """topology.hosts = ["a", "b", "c"]
topology.links = [{ ends = ["a", "b"] }, { ends = ["b", "c"] }]""",
            "from a to c: hosts do not forward",
        ),
        (TRIANGLE.replace('"z-1"]', '"z-1", "r"]', 1), "from a to r: it has no link"),
        (TRIANGLE + 'topology.observed = ["x-y"]', 'no link "x-y" in one direction'),
        (TRIANGLE + 'links.x-b.rate = "1 Mbit/s"\n', 'there is no link "x-b"'),
    ],
)
def test_what_can_t_be_a_network_is_refused(text: str, words: str) -> None:
    assert any(words in line for line in refusal(text))


def test_a_star_s_hosts_are_a_number() -> None:
    with pytest.raises(ScenarioError, match="hosts: must be a whole number"):
        parse('duration = "9 s"\ntopology = { kind = "star", hosts = ["a", "b"] }\n', PATH)


def test_a_written_network_from_elsewhere_is_checked_too() -> None:
    with pytest.raises(CommandError, match=r"topology.links\[0\]"):
        plan(
            Topology(kind="written", written=WrittenNetwork(hosts=["a", "b"], cables=[("a", "a")]))
        )
    with pytest.raises(CommandError, match="two hosts"):
        plan(Topology(kind="written"))


def test_it_is_written_as_it_is_read() -> None:
    text = TRIANGLE + 'topology.name = "triangle"\ntopology.remarks = ["h1: ip has no effect"]\n'
    build = case(text).build
    again = 'duration = "9 s"\n' + "\n".join(written_again(build))
    assert parse(again, PATH).case().build == build
    assert describe_topology(build.topology) == "triangle"
    assert describe_topology(case(TRIANGLE).build.topology) == "written, 2 hosts, 3 routers"


def test_peers_are_far_apart() -> None:
    network = plan(
        Topology(
            kind="written",
            written=WrittenNetwork(
                hosts=["a1", "b1", "c1", "a2", "b2", "c2"],
                routers=["a", "b", "c"],
                cables=[
                    *((f"{name}{n}", name) for name in "abc" for n in (1, 2)),
                    *(("a", "b"), ("b", "c")),
                ],
            ),
        )
    )
    assert {host: network.peer(host) for host in network.senders} == {
        "a1": "c2",
        "b1": "a2",
        "c1": "b2",
    }


def test_observed_queues_are_chosen_in_any_topology() -> None:
    head = 'duration = "9 s"\ntopology = { kind = "linear", observed = ["h2->r", "r->h2"] }\n'
    build = parse(head, PATH).case().build
    assert plan(build.topology).observed == ["h2->r", "r->h2"]
    again = parse('duration = "9 s"\n' + "\n".join(written_again(build)), PATH).case().build
    assert again.topology == build.topology
    over = parse(head, PATH, ['topology.observed=["h1->r"]']).case().build
    assert plan(over.topology).observed == ["h1->r"]


def test_an_observed_queue_that_does_not_exist_is_refused_where_it_is_named() -> None:
    with pytest.raises(ScenarioError) as caught:
        parse('duration = "9 s"\ntopology = { kind = "linear", observed = ["h2-r"] }\n', PATH)
    (line,) = caught.value.lines
    assert line.startswith("own.toml:2: topology.observed[0]: there is no link")
    assert 'did you mean "h2->r"?' in line

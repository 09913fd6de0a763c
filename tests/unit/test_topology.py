"""The plan of a network: names, addresses, links, what is under study."""

from __future__ import annotations

import pytest

from ccplay.errors import CommandError
from ccplay.model.network import Topology
from ccplay.model.topologies import plan
from ccplay.model.topologies.dumbbell import PAIRS


def test_linear_has_three_nodes_and_router_queues_under_study() -> None:
    network = plan(Topology(kind="linear"))
    assert {each.name: each.role for each in network.nodes} == {
        "h1": "sender",
        "r": "router",
        "h2": "receiver",
    }
    assert network.bottlenecks == ["r->h2", "r->h1"]


@pytest.mark.parametrize("pairs", range(PAIRS.low, PAIRS.high + 1))
def test_dumbbell_is_consistent(pairs: int) -> None:
    network = plan(Topology(kind="dumbbell", pairs=pairs))
    names = [each.name for each in network.nodes]
    assert len(names) == len(set(names)) == 2 * pairs + 2
    assert len({each.address for each in network.nodes}) == len(names)
    assert len({(each.src, each.interface) for each in network.links}) == len(network.links)
    assert network.bottlenecks == ["r1->r2", "r2->r1"]
    links = {each.name: each for each in network.links}
    for there in network.links:
        back = network.opposite(there)
        assert links[f"{there.dst}->{there.src}"] is back
        assert ((there, back) in network.cables) != ((back, there) in network.cables)
        assert there.address.rpartition(".")[0] == back.address.rpartition(".")[0]
        assert there.address != back.address


@pytest.mark.parametrize(
    ("topology", "words"),
    [
        (Topology(kind="ring"), "linear, dumbbell"),
        (Topology(kind="dumbbell", pairs=0), "1 to 8"),
        (Topology(kind="dumbbell", pairs=9), "1 to 8"),
    ],
)
def test_impossible_plans_are_refused(topology: Topology, words: str) -> None:
    with pytest.raises(CommandError, match=words):
        plan(topology)

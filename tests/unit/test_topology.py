"""The plan of a network: names, addresses, links, what is under study."""

from __future__ import annotations

import pytest

from ccplay.errors import CommandError
from ccplay.lab.network.building import MAX_PAIRS, opposite, plan
from ccplay.model.values import Topology


def test_linear_has_three_nodes_and_router_queues_under_study() -> None:
    network = plan(Topology(kind="linear"))
    assert {each.name: each.role for each in network.nodes} == {
        "h1": "sender",
        "r": "router",
        "h2": "receiver",
    }
    assert network.bottlenecks == ["r->h2", "r->h1"]


@pytest.mark.parametrize("pairs", range(1, MAX_PAIRS + 1))
def test_dumbbell_is_consistent(pairs: int) -> None:
    network = plan(Topology(kind="dumbbell", pairs=pairs))
    names = [each.name for each in network.nodes]
    assert len(names) == len(set(names)) == 2 * pairs + 2
    assert len({each.address for each in network.nodes}) == len(names)
    assert len({(each.src, each.interface) for each in network.links}) == len(network.links)
    assert network.bottlenecks == ["r1->r2", "r2->r1"]
    links = {each.name: each for each in network.links}
    for there in network.links:
        back = opposite(network, there)
        assert links[f"{there.dst}->{there.src}"] is back
        # Both directions stand together, so that every second link names a cable.
        assert network.links.index(there) // 2 == network.links.index(back) // 2


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

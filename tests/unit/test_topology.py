"""A network's plan has its names, addresses, links, paths and observed queues."""

import socket
from collections import Counter
from typing import cast

import pytest
from msgspec.structs import replace

from ccplay.errors import CommandError, LabError
from ccplay.lab.network import Routing
from ccplay.lab.paths import Packets, PathFinder
from ccplay.lab.shaping import planned
from ccplay.model.network import Link, Network, Topology, assemble
from ccplay.model.topologies import PAIRS, describe_topology, plan
from ccplay.model.values import LinkSetting


def test_linear_has_three_nodes_and_router_queues_under_study() -> None:
    network = plan(Topology(kind="linear"))
    assert {each.name: each.role for each in network.nodes} == {
        "h1": "sender",
        "r": "router",
        "h2": "receiver",
    }
    assert network.bottlenecks == ["r->h2", "r->h1"]


@pytest.mark.parametrize("kind", ["linear", "dumbbell", "fat-tree", "star"])
def test_any_direction_can_be_observed(kind: str) -> None:
    usual = plan(Topology(kind=kind))
    chosen = [usual.links[0].name, usual.observed[-1]]
    network = plan(Topology(kind=kind, observed=[*chosen, chosen[0]]))
    assert network.observed == list(dict.fromkeys(chosen))
    assert [each.name for each in network.resolve("bottleneck")] == network.observed
    with pytest.raises(CommandError, match='no link "h2-r" in one direction'):
        plan(Topology(kind=kind, observed=["h2-r"]))


def test_only_links_observed_by_default_have_a_default_delay() -> None:
    """What is named as observed is studied, so it has a rate and a queue, but no hidden delay."""
    wanted = {"h1->r": LinkSetting(delay_us=5000)}
    before = dict(planned(plan(Topology(kind="linear")), wanted))
    assert {link.name: each.delay_us for link, each in before.items()} == {
        "r->h2": 10_000,
        "r->h1": 10_000,
        "h1->r": 5000,
    }
    chosen = planned(plan(Topology(kind="linear", observed=["h2->r", "h1->r"])), wanted)
    assert {link.name: each.delay_us for link, each in chosen} == {"h2->r": 0, "h1->r": 5000}
    assert all(each.rate == 10_000_000 for _, each in chosen)


@pytest.mark.parametrize("pairs", range(int(PAIRS.low or 0), int(PAIRS.high or 0) + 1))
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
        (Topology(kind="fat-tree", parameters={"k": 3}), "k is even, not 3"),
        (Topology(kind="fat-tree", parameters={"k": 10}), "2 to 8"),
    ],
)
def test_impossible_plans_are_refused(topology: Topology, words: str) -> None:
    with pytest.raises(CommandError, match=words):
        plan(topology)


@pytest.mark.parametrize("hops", [2, 3, 8])
def test_a_parking_lot_crosses_each_hop_once_and_the_chain_as_a_whole(hops: int) -> None:
    network = plan(Topology(kind="parking-lot", parameters={"hops": hops}))
    forward = network.observed[:hops]
    assert [link.name for link in network.path("h1", "h2")][1:-1] == forward
    assert network.peer("h1") == "h2"
    for number, hop in enumerate(forward, start=1):
        host = f"s{number}"
        assert network.peer(host) == f"d{number}"
        assert [link.name for link in network.path(host, f"d{number}")][1:-1] == [hop]


@pytest.mark.parametrize(
    "topology",
    [
        Topology(kind="linear"),
        Topology(pairs=8),
        Topology(kind="parking-lot", parameters={"hops": 8}),
        Topology(kind="linear", parameters={"routers": 16}),
        Topology(kind="star", parameters={"hosts": 3}),
        Topology(kind="leaf-spine"),
        Topology(kind="super-spine"),
        Topology(kind="fat-tree"),
        Topology(kind="loopless"),
    ],
)
def test_every_host_has_a_path_to_every_other_through_routers_only(topology: Topology) -> None:
    network = plan(topology)
    for src in network.hosts:
        for dst in network.hosts:
            if src != dst:
                path = network.path(src, dst)
                assert (path[0].src, path[-1].dst) == (src, dst)
                assert {link.dst for link in path[:-1]} <= set(network.routers)


def test_base_rtt_is_the_sum_of_the_delays_there_and_back() -> None:
    network = plan(Topology(kind="parking-lot", parameters={"hops": 3}))
    delays = dict.fromkeys(network.observed, 10.0)
    assert network.base_rtt("h1", "h2", lambda link: delays.get(link, 0.0)) == 60
    assert network.base_rtt("s2", "d2", lambda link: delays.get(link, 0.0)) == 20


def test_equal_cost_paths_are_all_known() -> None:
    """Both paths are found if two routers lie between the same two, like spines between leaves."""
    roles = {"h1": "sender", "a": "router", "b": "router", "c": "router", "d": "router"}
    cables = [("h1", "a"), ("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("d", "h2")]
    network = assemble(Topology(), roles | {"h2": "receiver"}, cables, [], [("h1", "h2")])
    assert [link.name for link in network.next_hops("a", "h2")] == ["a->b", "a->c"]
    assert [[link.dst for link in path] for path in network.paths("h1", "h2")] == [
        ["a", "b", "d", "h2"],
        ["a", "c", "d", "h2"],
    ]


def test_an_old_recording_s_network_without_peers_pairs_hosts_in_their_order() -> None:
    network = plan(Topology(pairs=2))
    old = [replace(node, peer="") for node in network.nodes]
    network = replace(network, nodes=old)
    assert [network.peer(host) for host in ("s1", "s2", "d1", "d2")] == ["d1", "d2", "s1", "s2"]


@pytest.mark.parametrize(
    ("topology", "counts", "paths", "hops"),
    [
        # Hosts, routers, cables; then paths and links between h1 and its peer.
        (Topology(kind="linear", parameters={"routers": 3}), (2, 3, 4), 1, 4),
        (Topology(kind="star"), (8, 1, 8), 1, 2),
        (Topology(kind="leaf-spine"), (16, 6, 24), 2, 4),
        (Topology(kind="super-spine"), (16, 10, 32), 8, 6),
        (Topology(kind="fat-tree"), (16, 20, 48), 4, 6),
        (Topology(kind="fat-tree", parameters={"k": 6}), (54, 45, 162), 9, 6),
        (Topology(kind="fat-tree", parameters={"k": 8}), (128, 80, 384), 16, 6),
        (Topology(kind="loopless"), (16, 7, 22), 1, 6),
    ],
    ids=lambda value: value.kind if isinstance(value, Topology) else None,
)
def test_a_topology_has_its_nodes_cables_and_paths(
    topology: Topology, counts: tuple[int, int, int], paths: int, hops: int
) -> None:
    network = plan(topology)
    assert (len(network.hosts), len(network.routers), len(network.cables)) == counts
    found = network.paths("h1", network.peer("h1"))
    assert len(found) == len({tuple(link.name for link in path) for path in found}) == paths
    assert {len(path) for path in found} == {hops}
    assert network.base_rtt("h1", network.peer("h1"), lambda _: 5.0) == 2 * 5.0 * hops
    # A queue forms wherever a router sends.
    assert set(network.observed) == {
        link.name for link in network.links if link.src in network.routers
    }


@pytest.mark.parametrize("kind", ["star", "leaf-spine", "super-spine", "fat-tree", "loopless"])
def test_every_cable_of_a_fabric_is_of_one_tier(kind: str) -> None:
    network = plan(Topology(kind=kind))
    tiers = [link.name for tier in network.groups for link in network.resolve(tier)]
    assert sorted(tiers) == sorted(link.name for link in network.links)
    edge = network.resolve("edge")
    assert {link.src for link in edge} | {link.dst for link in edge} >= set(network.hosts)
    assert set(network.groups) <= set(network.link_names)


def test_a_fat_tree_s_router_has_no_more_cables_than_ports() -> None:
    network = plan(Topology(kind="fat-tree", parameters={"k": 6}))
    ports = Counter(link.src for link in network.links)
    assert {ports[router] for router in network.routers} == {6}


@pytest.mark.parametrize("kind", ["star", "leaf-spine", "super-spine", "fat-tree", "loopless"])
def test_peers_of_a_fabric_are_a_permutation(kind: str) -> None:
    network = plan(Topology(kind=kind))
    assert sorted(map(network.peer, network.hosts)) == sorted(network.hosts)
    assert all(network.peer(network.peer(host)) == host for host in network.hosts)


def test_topologies_in_words() -> None:
    said = [describe_topology(Topology(kind=kind)) for kind in ("linear", "leaf-spine", "fat-tree")]
    assert said == ["linear", "leaf-spine, 4 leaves, 2 spines, 4 hosts", "fat-tree, k = 4"]


class Refusing:
    """Routing whose kernel refuses a rule once ``left`` others are set; it has the rules."""

    def __init__(self, network: Network) -> None:
        self.network = self.remaining = network
        self.left, self.rules = 99, set[str]()

    def steer(self, link: Link, *_: object, on: bool) -> None:
        if on and not self.left:
            raise LabError("refused")
        self.left -= on
        (self.rules.add if on else self.rules.remove)(link.name)


def test_a_path_that_the_kernel_refuses_halfway_leaves_the_one_in_force() -> None:
    network = plan(Topology(kind="fat-tree"))
    routing = Refusing(network)
    ends = network.hosts[0], network.hosts[-1]
    finder = PathFinder(cast("Routing", routing), network, lambda _: None, lambda: 0.0)
    finder.expect("1", Packets(ends, socket.IPPROTO_TCP, range(9, 10), 5201), None)
    first, *_, last = network.paths(*ends)
    finder.move("1", [link.dst for link in first[:-1]])
    rules = set(routing.rules)
    assert len(rules) > 1
    steer = routing.steer
    for allowed in range(len(rules)):
        routing.left = allowed

        def once(link: Link, *others: object, on: bool) -> None:
            try:
                steer(link, *others, on=on)
            except LabError:
                # Only one rule is refused, so the earlier path can be put back.
                routing.left = 99
                raise

        routing.steer = once  # type: ignore[method-assign]
        with pytest.raises(LabError, match="refused"):
            finder.move("1", [link.dst for link in last[:-1]])
        assert routing.rules == rules

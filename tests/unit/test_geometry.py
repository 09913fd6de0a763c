"""Drawings of networks: every node and cable has a place, in every topology that fits."""

import pytest
from msgspec.structs import replace

from ccplay.model.layout import chained, layout
from ccplay.model.network import Network, Topology, WrittenNetwork
from ccplay.model.topologies import generated, plan
from ccplay.ui.network_map import Geometry, geometry

FABRICS = ("leaf-spine", "super-spine", "fat-tree", "loopless")


def drawn(network: Network, width: int, height: int) -> Geometry:
    found = geometry(network, width, height)
    assert found is not None
    return found


def ring(count: int) -> Topology:
    """Return a number of routers in a ring, each with a host."""
    hosts, routers = ([f"{kind}{number + 1}" for number in range(count)] for kind in "hs")
    cables = [*zip(hosts, routers, strict=True), *zip(routers, (*routers[1:], "s1"), strict=True)]
    return Topology(
        kind="written", written=WrittenNetwork(hosts=hosts, routers=routers, cables=cables)
    )


@pytest.mark.parametrize("size", [(80, 15), (120, 20), (250, 60)])
@pytest.mark.parametrize("count", [3, 4, 7, 16])
def test_a_ring_is_two_rows_with_hosts_outside(count: int, size: tuple[int, int]) -> None:
    network = plan(ring(count))
    made = drawn(network, *size)
    rows = [made.names[f"s{number + 1}"][1] for number in range(count)]
    top, bottom = min(rows), max(rows)
    assert rows == [top] * ((count + 1) // 2) + [bottom] * (count // 2)
    for number, row in enumerate(rows, start=1):
        assert (made.names[f"h{number}"][1] < row) == (row == top)
    ports = {port.link: (port.x, port.y) for port in made.ports}
    assert set(ports) == {link.name for link in network.links if link.src in network.routers}
    assert len(set(ports.values())) == len(ports)
    letters = {(x + at, y) for name, (x, y) in made.names.items() for at in range(len(name))}
    for strand in made.strands:
        assert strand.thin
        assert not letters.intersection((*strand.thin, *strand.thick, *ports.values()))
    assert {made.glyphs[host] for host in network.hosts} == {0, made.names[f"h{count}"][1] + 1}
    assert max(made.glyphs.values()) < size[1]


@pytest.mark.parametrize("kind", FABRICS)
@pytest.mark.parametrize("size", [(80, 15), (120, 20), (250, 60)])
def test_sixteen_hosts_fit_into_eighty_columns(kind: str, size: tuple[int, int]) -> None:
    network = plan(Topology(kind=kind))
    assert len(network.hosts) == 16
    made = drawn(network, *size)
    assert set(made.names) == {node.name for node in network.nodes}
    letters = [(x + at, y) for name, (x, y) in made.names.items() for at in range(len(name) + 1)]
    assert len(set(letters)) == len(letters), "names stand apart"
    ports = {port.link: (port.x, port.y) for port in made.ports}
    assert set(ports) == {link.name for link in network.links if link.src in network.routers}
    assert len(set(ports.values())) == len(ports)
    assert not set(ports.values()) & set(letters)
    cables = {frozenset(each.name for each in both) for both in network.cables}
    assert {frozenset(each.links) for each in made.strands} == cables
    for strand in made.strands:
        assert strand.thin
        for x, y in (*strand.thin, *strand.thick, *strand.sparse):
            assert 0 <= x < size[0]
            assert 0 <= y < size[1]
            assert (x, y) not in letters
        # A heavier line covers a lighter one of the same cable.
        assert sum(map(int.bit_count, strand.sparse.values())) < sum(
            map(int.bit_count, strand.thin.values())
        )
        assert all(strand.thick[cell] & bits == bits for cell, bits in strand.thin.items())


def test_lines_join_the_ports_of_their_ends() -> None:
    network = plan(Topology(kind="fat-tree"))
    made = drawn(network, 80, 15)
    ports = {port.link: (port.x, port.y) for port in made.ports}
    for strand in made.strands:
        for link in strand.links:
            if link not in ports:
                continue
            x, y = ports[link]
            assert any(abs(cell[0] - x) <= 1 and abs(cell[1] - y) == 1 for cell in strand.thin)


@pytest.mark.parametrize("kind", [kind.name for kind in generated()])
def test_hosts_are_in_the_lowest_tier(kind: str) -> None:
    network = plan(Topology(kind=kind))
    tiers = layout(network).tiers
    assert sorted(tiers[-1]) == sorted(network.hosts)
    assert sorted(name for row in tiers[:-1] for name in row) == sorted(network.routers)


@pytest.mark.parametrize(
    ("topology", "size"),
    [
        (Topology(kind="fat-tree"), (79, 10)),
        (Topology(kind="fat-tree"), (60, 20)),
        (Topology(kind="star", parameters={"hosts": 64}), (80, 20)),
        (
            Topology(
                kind="written",
                written=WrittenNetwork(
                    hosts=["a", "b", "c", "d"],
                    routers=["w", "x", "y", "z"],
                    cables=[
                        *(("a", "w"), ("b", "x"), ("c", "y"), ("d", "z")),
                        *(("w", "x"), ("x", "y"), ("y", "z"), ("z", "w"), ("w", "y")),
                    ],
                ),
            ),
            (80, 20),
        ),
        (ring(16), (80, 12)),
        (ring(34), (80, 20)),
    ],
    ids=["low", "narrow", "wide", "chord", "low ring", "wide ring"],
)
def test_what_can_t_be_drawn_well_is_not_drawn(topology: Topology, size: tuple[int, int]) -> None:
    assert geometry(plan(topology), *size) is None


def test_neighbours_of_a_row_are_joined_in_it() -> None:
    network = plan(Topology(kind="dumbbell"))
    made = drawn(network, 80, 12)
    (level,) = [each for each in made.strands if each.level]
    assert set(level.links) == {"r1->r2", "r2->r1"}
    assert made.names["r1"][1] == made.names["r2"][1] == next(iter(level.thin))[1]


def test_a_stranger_s_links_that_end_nowhere_are_not_drawn() -> None:
    network = plan(Topology(kind="leaf-spine"))
    less = replace(network, nodes=[node for node in network.nodes if node.name != "leaf2"])
    assert geometry(less, 120, 30) is None
    assert not chained(less)
    assert geometry(replace(network, nodes=[]), 120, 30) is None
    assert geometry(replace(network, links=[]), 120, 30) is None


def test_hosts_of_one_router_stand_side_by_side() -> None:
    hosts, routers = ["a1", "b1", "a2", "b2"], ["a", "b"]
    cables = [("a", "b"), *((host, host[0]) for host in hosts)]
    written = WrittenNetwork(hosts=hosts, routers=routers, cables=cables)
    assert layout(plan(Topology(kind="written", written=written))).tiers[-1] == [
        *("a1", "a2", "b1", "b2")
    ]

"""Any network can be drawn: each node has a place of its own, and names are plain text."""

from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ccplay.model.events import LinkChanged
from ccplay.model.network import Link, Network, Node, Topology
from ccplay.model.topologies import plan
from ccplay.model.values import Qdisc
from ccplay.report.figures.network_drawing import MOST_NODES, Graph, draw, graph
from ccplay.report.page import page
from ccplay.session.archive import read_recording
from tests.events import PLAYGROUND, link_changed
from tests.unit.reports import HOSTILE

_SVG = "{http://www.w3.org/2000/svg}"


def network(
    roles: dict[str, str], pairs: list[tuple[str, str]], observed: tuple[str, ...] = ()
) -> Network:
    ways = [way for a, b in pairs for way in ((a, b), (b, a))]
    return Network(
        topology=Topology(),
        nodes=[Node(name=name, role=role, address="") for name, role in roles.items()],
        links=[Link(name=f"{a}->{b}", src=a, dst=b, interface="") for a, b in ways],
        bottlenecks=list(observed),
    )


def settings(net: Network, **other: int) -> dict[str, LinkChanged]:
    """Return each direction's settings: 10 Mbit/s or ``other`` rate, bottlenecks with a queue."""
    queue = Qdisc(kind="pfifo", options={"limit": 50})
    return {
        way.name: link_changed(
            0.0,
            way.name,
            rate=other.get(way.name, 10_000_000),
            qdisc=queue if way.name in net.bottlenecks else None,
        )
        for way in net.links
    }


def fabric() -> Network:
    """Return a network of two spines and three leaves with two hosts each."""
    roles = {f"h{n}": "sender" if n < 4 else "receiver" for n in range(1, 7)}
    roles |= dict.fromkeys(("l1", "l2", "l3", "s1", "s2"), "router")
    pairs = [(f"h{n}", f"l{(n + 1) // 2}") for n in range(1, 7)]
    pairs += [(leaf, spine) for leaf in ("l1", "l2", "l3") for spine in ("s1", "s2")]
    return network(roles, pairs, ("l1->s1",))


def found(net: Network, **other: int) -> Graph:
    made = graph(net, settings(net, **other))
    assert made is not None
    return made


def texts(svg: str) -> list[str]:
    return [each.text or "" for each in ET.fromstring(svg).iter(f"{_SVG}text")]


def test_the_table_of_links_marks_every_observed_one_as_a_bottleneck() -> None:
    state = read_recording(PLAYGROUND)
    assert state.hello is not None
    net = plan(Topology(kind="parking-lot", parameters={"hops": 2}))
    rows = page.network("", replace(state.hello, network=net), settings(net))
    assert rows is not None
    marked = {row[0] for row in rows.rows if "bottleneck" in row[0]}
    routers = (("r1", "r2"), ("r2", "r1"), ("r2", "r3"), ("r3", "r2"))
    assert marked == {f"{src} → {dst} (bottleneck)" for src, dst in routers}


def test_a_dumbbell_runs_from_senders_to_receivers() -> None:
    state = read_recording(PLAYGROUND)
    assert state.hello is not None
    changes = {name: state.link_at(name, state.ready_at or 0.0) for name in state.links}
    links = {name: change for name, change in changes.items() if change is not None}
    made = graph(state.hello.network, links)
    assert made is not None
    at = {each.name: each.x for each in made.vertices}
    assert at["s1"] == at["s2"] < at["r1"] < at["r2"] < at["d1"] == at["d2"]
    middle = next(each for each in made.edges if {each.a, each.b} == {"r1", "r2"})
    assert middle.labels == ("10 Mbit/s, 10 ms",)
    assert middle.queues == {"r1": "pfifo 100 pkt", "r2": "pfifo 100 pkt"}
    svg = draw(made)
    assert {"s1", "r1", "10 Mbit/s, 10 ms", "pfifo 100 pkt"} <= set(texts(svg))
    drawn = {each.text: float(each.attrib["x"]) for each in ET.fromstring(svg).iter(f"{_SVG}text")}
    assert drawn["r1"] < drawn["10 Mbit/s, 10 ms"] < drawn["r2"]


def test_a_fabric_stands_above_its_hosts() -> None:
    at = {each.name: each.y for each in found(fabric()).vertices}
    assert at["s1"] == at["s2"] < at["l1"] == at["l2"] == at["l3"] < at["h1"] == at["h6"]


def test_what_most_links_do_is_reported_once() -> None:
    made = found(fabric(), **{"l3->s2": 1_000_000})
    assert made.notes == ("All links without a label: 10 Mbit/s",)
    said = {(each.a, each.b): each.labels for each in made.edges if each.labels}
    assert list(said.values()) == [("l3 → s2: 1 Mbit/s", "s2 → l3: 10 Mbit/s")]
    assert "All links without a label: 10 Mbit/s" in texts(draw(made))


def test_directions_that_differ_are_distinguished() -> None:
    net = network({"h1": "sender", "r": "router", "h2": "receiver"}, [("h1", "r"), ("r", "h2")])
    first, second = found(net, **{"h1->r": 80_000_000}).edges
    assert first.labels == ("→ 80 Mbit/s", "← 10 Mbit/s")
    assert second.labels == ("10 Mbit/s",)


def test_only_observed_queues_are_marked() -> None:
    marked = [(each.a, each.b) for each in found(fabric()).edges if each.queues]
    assert [set(ends) for ends in marked] == [{"l1", "s1"}]
    assert texts(draw(found(fabric()))).count("pfifo 50 pkt") == 1


@given(st.data())
def test_every_node_has_a_place_of_its_own(data: st.DataObject) -> None:
    """Nodes of any graph have distinct places within the drawing, even if it is not connected."""
    routers = [f"r{n}" for n in range(data.draw(st.integers(0, 7)))]
    hosts = [f"h{n}" for n in range(data.draw(st.integers(0 if routers else 1, 9)))]
    roles = dict.fromkeys(routers, "router")
    roles |= {name: data.draw(st.sampled_from(["sender", "receiver"])) for name in hosts}
    names = list(roles)
    pairs = [(b, a) for a, b in pairwise(routers)] if data.draw(st.booleans()) else []
    ends = st.tuples(st.sampled_from(names), st.sampled_from(names)).filter(lambda e: e[0] != e[1])
    pairs += data.draw(st.lists(ends, max_size=12)) if len(names) > 1 else []
    net = network(roles, list(dict.fromkeys(pairs)))
    made = found(net)
    places = [(each.x, each.y) for each in made.vertices]
    assert len(set(places)) == len(places) == len(names)
    svg = ET.fromstring(draw(made))
    assert len(svg.findall(f"{_SVG}line")) == len({frozenset(pair) for pair in pairs})
    check_margins(svg)


def test_a_label_wider_than_the_nodes_is_within_the_drawing() -> None:
    """Hypothesis found this network; the label of its only column was cut on the left."""
    roles = dict.fromkeys(["r0", "r1", "r2", "r3"], "router") | {"h0": "sender"}
    net = network(roles, [("r0", "r1"), ("r0", "h0"), ("r2", "h0")])
    check_margins(ET.fromstring(draw(found(net))))


def check_margins(svg: ET.Element) -> None:
    """Fail if a box of a drawing lies outside it."""
    width, height = float(svg.attrib["width"]), float(svg.attrib["height"])
    for box in svg.findall(f"{_SVG}rect"):
        left, top = float(box.attrib["x"]), float(box.attrib["y"])
        assert left >= 0
        assert top >= 0
        assert left + float(box.attrib["width"]) <= width
        assert top + float(box.attrib["height"]) <= height


def test_a_strangers_names_are_text() -> None:
    svg = draw(found(network({HOSTILE: "sender", "r": "router"}, [(HOSTILE, "r")])))
    assert "<script" not in svg
    assert HOSTILE in texts(svg)


@pytest.mark.parametrize("count", [0, MOST_NODES + 1])
def test_what_nobody_could_read_is_not_drawn(count: int) -> None:
    assert graph(network({f"h{n}": "sender" for n in range(count)}, []), {}) is None

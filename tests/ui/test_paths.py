"""A key routes traffic over the next path, and the palette offers each path."""

from ccplay.model.commands import SetPath
from ccplay.model.events import FlowPath
from ccplay.model.network import Topology
from ccplay.model.topologies import plan
from ccplay.state.lab_state import LabState
from ccplay.traffic.flow import FlowStarted
from ccplay.traffic.ping import PingStarted
from ccplay.traffic.routes import routes
from ccplay.traffic.udp import UdpStarted
from ccplay.ui import lab_actions
from tests.events import folded

LEAVES = plan(Topology(kind="leaf-spine"))
LINEAR = plan(Topology(kind="linear"))


def session(*, pinned: bool) -> LabState:
    state = folded(FlowStarted(t=1.0, flow="1", src="h1", dst="h9", cc="reno", port=5201))
    links = [link.name for link in LEAVES.paths("h1", "h9")[0]]
    state.apply(FlowPath(t=1.0, flow="1", links=links, pinned=pinned))
    return state


def test_the_palette_offers_every_path_but_the_one_that_is_pinned() -> None:
    state = session(pinned=False)
    assert dict(lab_actions.offers(state, state.traffic["1"], LEAVES)) == {
        "via spine1": SetPath(traffic="1", via=["spine1"]),
        "via spine2": SetPath(traffic="1", via=["spine2"]),
    }
    state = session(pinned=True)
    assert dict(lab_actions.offers(state, state.traffic["1"], LEAVES)) == {
        "via spine2": SetPath(traffic="1", via=["spine2"]),
        "by hash": SetPath(traffic="1", via=[]),
    }


def test_nothing_is_offered_where_there_is_one_path_or_none_to_choose() -> None:
    state = session(pinned=False)
    udp = UdpStarted(t=1.0, udp="u", src="h1", dst="h2", rate_bps=1, packet_bytes=99, port=1)
    state.apply(udp)
    state.apply(PingStarted(t=1.0, ping="p", src="h1", dst="h9", interval_s=1.0))
    assert not lab_actions.can_choose(state.traffic["u"], LINEAR)
    assert not lab_actions.can_choose(state.traffic["u"], LEAVES)
    assert not lab_actions.can_choose(state.traffic["p"], LEAVES)
    assert lab_actions.can_choose(state.traffic["1"], LEAVES)


def test_the_log_distinguishes_a_pinned_path_from_one_by_hash() -> None:
    state = session(pinned=True)
    links = state.flows["1"].paths[0].links
    state.apply(FlowPath(t=2.0, flow="1", links=links))
    assert [each.text for each in state.log] == [
        "flow 1 takes h1 → leaf1 → spine1 → leaf3 → h9 (pinned)",
        "flow 1 now takes h1 → leaf1 → spine1 → leaf3 → h9 (by hash)",
    ]


def test_the_path_of_acks_is_reported_where_it_is_another() -> None:
    state = session(pinned=False)
    ways = [[link.name for link in path] for path in LEAVES.paths("h9", "h1")]
    for t, back in enumerate(ways, start=2):
        links = state.flows["1"].paths[0].links
        state.apply(FlowPath(t=t, flow="1", links=links, back=back))
    way = "flow 1 now takes h1 → leaf1 → spine1 → leaf3 → h9"
    assert [each.text for each in state.log][1:] == [
        way,
        f"{way}; ACKs h9 → leaf3 → spine2 → leaf1 → h1",
    ]
    assert [each.acks for each in routes(state.flows["1"].paths)] == [
        "",
        "the same",
        "h9 → leaf3 → spine2 → leaf1 → h1",
    ]

"""Requests that build a network equal those of pyroute2's encoder, byte by byte."""

from typing import Any

import pyroute2  # noqa: F401 - as a whole, which its parts need where the lab has imported a few
import pytest
from pyroute2.netlink import nlmsg
from pyroute2.netlink import rtnl as theirs
from pyroute2.netlink.rtnl.ifaddrmsg import ifaddrmsg
from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg
from pyroute2.netlink.rtnl.ndmsg import ndmsg
from pyroute2.netlink.rtnl.rtmsg import rtmsg
from pyroute2.netlink.rtnl.tcmsg import tcmsg

from ccplay.lab import qdiscs, rtnl
from ccplay.lab.netlink import CREATE, EXCLUSIVE
from ccplay.lab.rtnl import message

NEW = CREATE | EXCLUSIVE
MAC = "02:00:0a:00:01:02"
GATEWAYS = [("10.0.1.1", 2), ("10.0.2.1", 3)]


def _ends(name: str, pid: int) -> list[tuple[str, Any]]:
    return [("IFLA_IFNAME", name), ("IFLA_ADDRESS", MAC), ("IFLA_NET_NS_PID", pid)]


def _cable() -> nlmsg:
    peer = {"attrs": [list(each) for each in _ends("r1-eth10", 70_000)]}
    data = {"attrs": [["VETH_INFO_PEER", peer]]}
    info = {"attrs": [["IFLA_INFO_KIND", "veth"], ["IFLA_INFO_DATA", data]]}
    return message(ifinfmsg, 16, NEW, [*_ends("h1-r1", 7), ("IFLA_LINKINFO", info)])


def _ifb() -> nlmsg:
    info = {"attrs": [["IFLA_INFO_KIND", "ifb"]]}
    return message(ifinfmsg, 16, NEW, [("IFLA_IFNAME", "ifb7"), ("IFLA_LINKINFO", info)])


def _address() -> nlmsg:
    own = (("IFA_LOCAL", "10.0.1.2"), ("IFA_ADDRESS", "10.0.1.2"))
    return message(ifaddrmsg, 20, NEW, own, family=2, prefixlen=24, index=5)


def _neighbour() -> nlmsg:
    known = (("NDA_DST", "10.0.1.1"), ("NDA_LLADDR", MAC))
    return message(ndmsg, 28, CREATE, known, family=2, ifindex=5, state=0x80)


def _route(subnet: str | None, hops: list[tuple[str, int]]) -> nlmsg:
    several = [{"hops": 0, "oif": at, "attrs": [["RTA_GATEWAY", via]]} for via, at in hops]
    way: tuple[str, Any] = ("RTA_GATEWAY", hops[0][0])
    if len(hops) > 1:
        way = ("RTA_MULTIPATH", several)
    there = [] if subnet is None else [("RTA_DST", subnet)]
    fields = {"family": 2, "table": 254, "proto": 4, "scope": 0, "type": 1}
    length = 0 if subnet is None else 24
    return message(rtmsg, 24, NEW, [*there, way], dst_len=length, **fields)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (rtnl.cable(("h1-r1", MAC, 7), ("r1-eth10", MAC, 70_000)), _cable()),
        (rtnl.ifb("ifb7"), _ifb()),
        (rtnl.remove(5), message(ifinfmsg, 17, index=5)),
        (rtnl.up(5), message(ifinfmsg, 16, index=5, flags=1, change=1)),
        (rtnl.address(5, "10.0.1.2"), _address()),
        (rtnl.neighbour(5, "10.0.1.1", MAC), _neighbour()),
        (rtnl.route(None, GATEWAYS[:1]), _route(None, GATEWAYS[:1])),
        (rtnl.route("10.0.7.0", GATEWAYS[1:]), _route("10.0.7.0", GATEWAYS[1:])),
        (rtnl.route("10.0.7.0", GATEWAYS), _route("10.0.7.0", GATEWAYS)),
    ],
    ids=[
        "cable",
        "ifb",
        "removal",
        "up",
        "address",
        "neighbour",
        "default route",
        "route",
        "several hops",
    ],
)
def test_a_request_is_what_pyroute2_encodes(ours: bytes, theirs: nlmsg) -> None:
    theirs.encode()
    assert ours == bytes(theirs.data)


def test_a_question_for_a_route_is_what_pyroute2_encodes() -> None:
    asked = (("RTA_DST", "10.0.1.1"), ("RTA_SRC", "10.0.0.1"), ("RTA_IIF", 7))
    theirs = message(rtmsg, 26, 0, asked, family=2, dst_len=32, src_len=32)
    theirs["header"]["flags"] = 1
    theirs.encode()
    ends = "10.0.0.1", "10.0.1.1"
    assert rtnl.lookup(ends, 7) == bytes(theirs.data)
    # RTA_IP_PROTO, RTA_SPORT and RTA_DPORT, which pyroute2 lacks; ports in network byte order.
    ports = bytes.fromhex("05001b0006000000 06001c0027100000 06001d0014510000")
    assert rtnl.lookup(ends, 7, 6, 10_000, 5201)[4:] == bytes(theirs.data)[4:] + ports


def test_the_interface_of_an_answer_is_found() -> None:
    answer = message(rtmsg, 24, 0, (("RTA_DST", "10.0.1.1"), ("RTA_OIF", 3)), family=2)
    answer.encode()
    assert rtnl.interface_of(bytes(answer.data)) == 3
    none = message(rtmsg, 24, 0, (("RTA_DST", "10.0.1.1"),), family=2)
    none.encode()
    assert rtnl.interface_of(bytes(none.data)) == 0


def test_types_of_messages_are_those_of_the_kernel() -> None:
    ours = {name: value for name, value in vars(rtnl).items() if name.startswith("RTM_")}
    assert len(ours) == 18
    assert ours == {name: getattr(theirs, name) for name in ours}
    assert rtnl.TC_H_ROOT == theirs.TC_H_ROOT


class _Answers:
    """Answers to a dump of queue disciplines."""

    def dumped(self, request: bytes) -> list[bytes]:
        assert request[4:8] == bytes([rtnl.RTM_GETQDISC, 0, 1, 3])
        return [_queue(2, 0x10000, 0xFFFFFFFF, "htb", 7), _queue(2, 0x100000, 0x10001, "codel", 9)]


def _queue(interface: int, handle: int, parent: int, kind: str, drop: int) -> bytes:
    counted = {"bytes": 1 << 40, "packets": 5, "drop": drop, "overlimits": 6, "qlen": 1}
    attributes = (("TCA_KIND", kind), ("TCA_STATS", {**counted, "backlog": 1000 + drop}))
    fields = {"index": interface, "handle": handle, "parent": parent}
    answer = message(tcmsg, rtnl.RTM_NEWQDISC, 0, attributes, **fields)
    answer.encode()
    return bytes(answer.data)


def test_queues_are_read_from_a_dump() -> None:
    routes: Any = _Answers()
    assert rtnl.dropped(routes) == {2: 7}
    assert qdiscs.find_qdisc(routes, 2, 0x10001) == ("codel", b"")
    assert qdiscs.handle_of(routes, 2, 0x10001) == 0x100000
    assert qdiscs.backlog(routes, 2, 0x10001) == 1009
    assert qdiscs.find_qdisc(routes, 3, 0x10001) == (None, b"")
    assert qdiscs.handle_of(routes, 2, 0x10002) == qdiscs.backlog(routes, 3, 0x10001) == 0

"""rtnetlink(7): requests for a network, in batches with one round trip to the kernel.

pyroute2's own sockets are asyncio objects that wait for one reply at a time; building a network
takes a hundred requests that need not wait for each other. Only pyroute2's encoders and decoders
are used: the whole package takes four times as long to import as these few modules. Message types
that labs never use (classifiers other than u32) are left out, too.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeAlias

from ccplay.lab.import_stubs import bare_package, in_place_of, stand_ins
from ccplay.lab.netlink import (
    ACK,
    CREATE,
    DONE,
    DUMP_REQUEST,
    ERROR,
    EXCLUSIVE,
    HEADER,
    REPLACE,
    REQUEST,
    U32,
    attribute,
    failure,
    messages,
    split,
)
from ccplay.lab.netns import Namespace

_RTNL = "pyroute2.netlink.rtnl"

_ACTIONS = ("bpf", "connmark", "skbedit", "vlan")
_CLASSIFIERS = ("basic", "flow", "fw", "matchall")
_DISCIPLINES = ("bpf", "drr", "hfsc", "plug")
_UNUSED = [
    *(f"{_RTNL}.tcmsg.act_{name}" for name in _ACTIONS),
    *(f"{_RTNL}.tcmsg.cls_{name}" for name in _CLASSIFIERS),
    *(f"{_RTNL}.tcmsg.sched_{name}" for name in _DISCIPLINES),
]

# pyroute2's configuration lists these, but only its servers use them.
_PROCESSES = stand_ins(["multiprocessing"], Pipe=None, Process=None, Queue=None)

with (
    in_place_of(bare_package("pyroute2")),
    in_place_of(stand_ins(_UNUSED)),
    in_place_of(_PROCESSES),
):
    from pyroute2.netlink import nlmsg
    from pyroute2.netlink.rtnl.fibmsg import fibmsg
    from pyroute2.netlink.rtnl.rtmsg import rtmsg
    from pyroute2.netlink.rtnl.tcmsg import cls_u32, sched_htb, tcmsg
    from pyroute2.netlink.rtnl.tcmsg.common import (
        red_eval_ewma,
        red_eval_idle_damping,
        red_eval_P,
        tick_in_usec,
    )

__all__ = [
    "fibmsg",
    "red_eval_P",
    "red_eval_ewma",
    "red_eval_idle_damping",
    "rtmsg",
    "sched_htb",
    "tick_in_usec",
]

# Types of messages, include/uapi/linux/rtnetlink.h.
RTM_NEWLINK, RTM_DELLINK = 16, 17
RTM_NEWADDR = 20
RTM_NEWROUTE, RTM_DELROUTE, RTM_GETROUTE = 24, 25, 26
RTM_NEWNEIGH = 28
RTM_NEWRULE, RTM_DELRULE = 32, 33
RTM_NEWQDISC, RTM_DELQDISC, RTM_GETQDISC = 36, 37, 38
RTM_NEWTCLASS, RTM_DELTCLASS, RTM_GETTCLASS = 40, 41, 42
RTM_NEWTFILTER, RTM_DELTFILTER, RTM_GETTFILTER = 44, 45, 46

TC_H_ROOT = 0xFFFFFFFF
"""Parent of a queue discipline that is an interface's root."""

# --- rtnetlink(7) in batches: many requests in one round trip to the kernel -----------------------

_RECEIVE_BUFFER = 1 << 20
_SOL_NETLINK, _ADD_MEMBERSHIP = 270, 1


class NetlinkError(OSError):
    """Raised if the kernel refuses a request; ``errno`` and ``strerror`` are the reason."""


class NetlinkSocket:
    """A netlink socket in a namespace (None: the caller's own). Not for concurrent use."""

    def __init__(
        self, namespace: Namespace | None = None, protocol: int = socket.NETLINK_ROUTE
    ) -> None:
        open_socket = socket.socket if namespace is None else namespace.socket
        self._socket = open_socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        self._socket.bind((0, 0))
        self._sequence = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def request(self, messages: Iterable[nlmsg | bytes], what: str) -> None:
        """Carry out ``messages`` in order, all of them even if one fails.

        Bytes are a message from ``requests``, complete except for its sequence number. Raises
        ``NetlinkError`` for the first message that the kernel refused; ``what`` describes the work
        in its text.
        """
        encoded: list[bytes] = []
        first = self._sequence + 1
        for message in messages:
            self._sequence += 1
            encoded.append(_numbered(message, self._sequence))
        if not encoded:
            return
        self._socket.send(b"".join(encoded))
        failure = 0
        for _ in encoded:
            failure = failure or self._acknowledgement(first)
        if failure:
            raise NetlinkError(failure, f"{what}: {os.strerror(failure)}")

    def ask(self, request: bytes) -> bytes:
        """Return the only answer to a request from ``requests``, which may be an acknowledgement.

        Raises ``NetlinkError`` if the kernel reports an error instead.
        """
        self._sequence += 1
        self._socket.send(_numbered(request, self._sequence))
        while True:
            data = self._socket.recv(1 << 16)
            _, kind, _, sequence, _ = HEADER.unpack_from(data)
            if sequence != self._sequence:
                continue
            if kind == ERROR and (number := failure(data)):
                raise NetlinkError(number, os.strerror(number))
            return data

    def join(self, group: int) -> None:
        """Receive what the kernel sends to a multicast group, too."""
        self._socket.setsockopt(_SOL_NETLINK, _ADD_MEMBERSHIP, group)

    def dump(self, message: nlmsg) -> list[Any]:
        """Return the replies to a dump request, decoded as the request's own class."""
        message["header"]["flags"] = DUMP_REQUEST
        answers: list[Any] = []
        for data in self.dumped(message):
            answer = type(message)(data)
            answer.decode()
            answers.append(answer)
        return answers

    def dumped(self, message: nlmsg | bytes) -> list[bytes]:
        """Return the replies to a dump request undecoded, each with its header."""
        self._sequence += 1
        self._socket.send(_numbered(message, self._sequence))
        answers: list[bytes] = []
        while True:
            data = self._socket.recv(1 << 17)
            for kind, start, end in messages(data):
                if kind == DONE:
                    return answers
                if kind == ERROR:
                    number = failure(data, start)
                    raise NetlinkError(number, f"dump: {os.strerror(number)}")
                answers.append(data[start:end])

    def _acknowledgement(self, first: int) -> int:
        """Wait for an acknowledgement of request ``first`` or a later one; return its errno."""
        while True:
            data = self._socket.recv(1 << 16)
            _, kind, _, sequence, _ = HEADER.unpack_from(data)
            if kind == ERROR and sequence >= first:
                return failure(data)


def _numbered(message: nlmsg | bytes, sequence: int) -> bytes:
    """Return a message encoded with this sequence number, the third word of its header."""
    if isinstance(message, bytes):
        return message[:8] + struct.pack("=I", sequence) + message[12:]
    message["header"]["sequence_number"] = sequence
    message.encode()
    return bytes(message.data)


def message(
    template: type[nlmsg],
    kind: int,
    flags: int = 0,
    attributes: Sequence[tuple[str, Any]] = (),
    /,
    **fields: Any,
) -> nlmsg:
    """Build a request of type ``kind`` that asks for an acknowledgement."""
    built = template()
    built["header"]["type"] = kind
    built["header"]["flags"] = REQUEST | ACK | flags
    for name, value in fields.items():
        built[name] = value
    built["attrs"] = [list(each) for each in attributes]
    return built


def traffic_control(
    kind: int, flags: int, index: int, attributes: Sequence[tuple[str, Any]], /, **fields: Any
) -> nlmsg:
    """Build a request about a queue discipline, class or filter of interface ``index``."""
    return message(tcmsg, kind, flags, attributes, index=index, **fields)


def u32_filter(index: int, options: Mapping[str, Any], /, *, parent: int, info: int) -> nlmsg:
    """Build a request for a filter, tc-u32(8); ``info`` is its priority and protocol."""
    attributes = (("TCA_KIND", "u32"), ("TCA_OPTIONS", cls_u32.get_parameters(options)))
    flags = CREATE | EXCLUSIVE
    return traffic_control(RTM_NEWTFILTER, flags, index, attributes, parent=parent, info=info)


# --- requests of rtnetlink(7) for a network: links, addresses, neighbours, routes and rules -------
# A network needs several of them per link, and pyroute2's general encoder takes a tenth of a
# millisecond for each. ``NetlinkSocket.request`` fills in their sequence numbers.

_LINK = struct.Struct("=BxHiII")
"""``struct ifinfomsg``: family, type, index, flags, and the mask of the flags to change."""
_ADDRESS = struct.Struct("=BBBBi")
"""``struct ifaddrmsg``: family, prefix length, flags, scope, index."""
_NEIGHBOUR = struct.Struct("=BxxxiHBB")
"""``struct ndmsg``: family, index, state, flags, type."""
_ROUTE = struct.Struct("=BBBBBBBBI")
"""``struct rtmsg``: family, prefix lengths of destination and source, type of service, table,
protocol, scope, type, flags."""
_HOP = struct.Struct("=HBBi")
"""``struct rtnexthop``: length, flags, hops, index."""

_NEW = CREATE | EXCLUSIVE

_UP = 1
_RTA_DST, _RTA_SRC, _RTA_IIF, _RTA_OIF = 1, 2, 3, 4
_RTA_TABLE, _RTA_IP_PROTO, _RTA_SPORT, _RTA_DPORT = 15, 27, 28, 29
_FRA_DST, _FRA_SRC, _FRA_PRIORITY, _FRA_TABLE = 1, 2, 6, 15
_FRA_IP_PROTO, _FRA_SPORTS, _FRA_DPORTS = 22, 23, 24
_TO_TABLE, _BEFORE_MAIN = 1, 1000
"""Rule action ``FR_ACT_TO_TBL``, and a rule priority before that of the main table."""
_PERMANENT = 0x80
_MAIN, _STATIC, _UNICAST = 254, 4, 1


def cable(here: tuple[str, str, int], there: tuple[str, str, int]) -> bytes:
    """Return the request for a veth(4) pair.

    Each end is its name, its MAC address, and the PID of a process in its namespace.
    """
    peer = attribute(1, _LINK.pack(0, 0, 0, 0, 0) + _end(*there))
    info = attribute(1, b"veth\0") + attribute(2, peer)
    return _request(RTM_NEWLINK, _NEW, _LINK.pack(0, 0, 0, 0, 0), _end(*here), attribute(18, info))


def ifb(name: str) -> bytes:
    """Return the request for an ifb device, which sends on what is redirected to it."""
    parts = attribute(3, name.encode() + b"\0"), attribute(18, attribute(1, b"ifb\0"))
    return _request(RTM_NEWLINK, _NEW, _LINK.pack(0, 0, 0, 0, 0), *parts)


def remove(index: int) -> bytes:
    """Return the request that removes an interface."""
    return _request(RTM_DELLINK, 0, _LINK.pack(0, 0, index, 0, 0))


def up(index: int) -> bytes:
    """Return the request that brings an interface up."""
    return _request(RTM_NEWLINK, 0, _LINK.pack(0, 0, index, _UP, _UP))


def down(index: int) -> bytes:
    """Return the request that takes an interface down."""
    return _request(RTM_NEWLINK, 0, _LINK.pack(0, 0, index, 0, _UP))


def address(index: int, own: str) -> bytes:
    """Return the request that assigns an IPv4 address of a /24 subnet to an interface."""
    packed = socket.inet_aton(own)
    head = _ADDRESS.pack(socket.AF_INET, 24, 0, 0, index)
    return _request(RTM_NEWADDR, _NEW, head, attribute(2, packed), attribute(1, packed))


def neighbour(index: int, there: str, mac: str) -> bytes:
    """Return the request for a permanent neighbour entry of the address at a link's far end."""
    head = _NEIGHBOUR.pack(socket.AF_INET, index, _PERMANENT, 0, 0)
    known = attribute(1, socket.inet_aton(there)), attribute(2, _octets(mac))
    return _request(RTM_NEWNEIGH, CREATE, head, *known)


def route(subnet: str | None, hops: list[tuple[str, int]]) -> bytes:
    """Return the request for a route to a /24 subnet; None stands for the default route.

    ``hops`` are gateways, each with the index of its interface; flows are spread over several.
    """
    length = 0 if subnet is None else 24
    head = _ROUTE.pack(socket.AF_INET, length, 0, 0, _MAIN, _STATIC, 0, _UNICAST, 0)
    there = b"" if subnet is None else attribute(1, socket.inet_aton(subnet))
    if len(hops) == 1:
        way = _gateway(hops[0][0])
    else:
        way = attribute(9, b"".join(_HOP.pack(16, 0, 0, at) + _gateway(via) for via, at in hops))
    return _request(RTM_NEWROUTE, _NEW, head, there, way)


CLSACT = 0xFFFFFFF1
"""Parent handle of the qdisc clsact; an interface has at most one clsact."""


def clsact(index: int) -> bytes:
    """Return the request that prepares an interface for redirections; it may be repeated.

    If the interface is up, packets that it sends meanwhile are lost: see ``qdisc_graft`` of
    net/sched/sch_api.c.
    """
    head = TCMSG.pack(index, 0xFFFF0000, CLSACT, 0)
    return _request(RTM_NEWQDISC, CREATE, head, attribute(1, b"clsact\0"))


def reroute(request: bytes) -> bytes:
    """Return a request of ``route`` changed so that it replaces any other route to its subnet."""
    length, kind, _, sequence, sender = HEADER.unpack_from(request)
    flags = REQUEST | ACK | CREATE | REPLACE
    return HEADER.pack(length, kind, flags, sequence, sender) + request[HEADER.size :]


def unroute(subnet: str | None) -> bytes:
    """Return the request that removes the route to a /24 subnet; None is the default route."""
    length = 0 if subnet is None else 24
    # Scope 255 (RT_SCOPE_NOWHERE) matches a route of any scope.
    head = _ROUTE.pack(socket.AF_INET, length, 0, 0, _MAIN, 0, 255, 0, 0)
    there = b"" if subnet is None else attribute(_RTA_DST, socket.inet_aton(subnet))
    return _request(RTM_DELROUTE, 0, head, there)


def only_route(table: int, via: str) -> bytes:
    """Return the request that makes a gateway the only route of a routing table."""
    head = _ROUTE.pack(socket.AF_INET, 0, 0, 0, 0, _STATIC, 0, _UNICAST, 0)
    where = attribute(_RTA_TABLE, struct.pack("=I", table))
    return _request(RTM_NEWROUTE, CREATE | REPLACE, head, where, _gateway(via))


def rule(
    table: int,
    ends: tuple[str, str],
    protocol: int,
    ports: tuple[range | None, int | None],
    *,
    remove: bool = False,
) -> bytes:
    """Return the request that adds or removes a rule, ip-rule(8): some packets use this table.

    ``ends`` are their source and destination addresses, ``ports`` their range of source ports and
    their destination port of ``protocol``; None matches any port.
    """
    src, dst = map(socket.inet_aton, ends)
    sports, dport = ports
    parts = [
        attribute(_FRA_DST, dst),
        attribute(_FRA_SRC, src),
        attribute(_FRA_PRIORITY, struct.pack("=I", _BEFORE_MAIN)),
        attribute(_FRA_TABLE, struct.pack("=I", table)),
        attribute(_FRA_IP_PROTO, bytes([protocol])),
    ]
    if sports is not None:
        parts.append(attribute(_FRA_SPORTS, struct.pack("=HH", sports[0], sports[-1])))
    if dport is not None:
        parts.append(attribute(_FRA_DPORTS, struct.pack("=HH", dport, dport)))
    head = _ROUTE.pack(socket.AF_INET, 32, 32, 0, 0, 0, 0, _TO_TABLE, 0)
    kind, flags = (RTM_DELRULE, 0) if remove else (RTM_NEWRULE, _NEW)
    return _request(kind, flags, head, *parts)


def lookup(
    ends: tuple[str, str], arrival: int, protocol: int = 0, sport: int = 0, dport: int = 0
) -> bytes:
    """Return the request for the route of a packet; ``interface_of`` reads the answer.

    ``ends`` are the packet's source and destination addresses, ``arrival`` the index of the
    interface on which it arrives, 0 for the node's own packets. Ports are those of ``protocol``.
    """
    src, dst = map(socket.inet_aton, ends)
    head = _ROUTE.pack(socket.AF_INET, 32, 32 if arrival else 0, 0, 0, 0, 0, 0, 0)
    parts = [attribute(_RTA_DST, dst)]
    if arrival:
        parts += [attribute(_RTA_SRC, src), attribute(_RTA_IIF, struct.pack("=I", arrival))]
    if protocol:
        parts.append(attribute(_RTA_IP_PROTO, bytes([protocol])))
        parts += [attribute(_RTA_SPORT, _port(sport)), attribute(_RTA_DPORT, _port(dport))]
    body = b"".join([head, *parts])
    return HEADER.pack(HEADER.size + len(body), RTM_GETROUTE, REQUEST, 0, 0) + body


def interface_of(answer: bytes) -> int:
    """Return the index of the outgoing interface in an answer to ``lookup``; 0 if it has none."""
    index = split(answer[HEADER.size + _ROUTE.size :]).get(_RTA_OIF)
    return 0 if index is None else int(U32.unpack(index)[0])


def _port(number: int) -> bytes:
    return struct.pack("!H", number)


def _gateway(via: str) -> bytes:
    return attribute(5, socket.inet_aton(via))


def _end(name: str, mac: str, pid: int) -> bytes:
    """Return the attributes IFLA_IFNAME, IFLA_ADDRESS and IFLA_NET_NS_PID of one end."""
    words = (3, name.encode() + b"\0"), (1, _octets(mac)), (19, struct.pack("=I", pid))
    return b"".join(attribute(*each) for each in words)


def _octets(mac: str) -> bytes:
    return bytes.fromhex(mac.replace(":", ""))


def _request(kind: int, flags: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return HEADER.pack(HEADER.size + len(body), kind, REQUEST | ACK | flags, 0, 0) + body


# --- reads whether interfaces are up, their counters, and the drops of their queues ---------------

Carried: TypeAlias = dict[str, tuple[int, int, int, int]]
"""Packets sent, bytes sent, packets received and bytes received, by interface."""

_SIOCGIFFLAGS, _IFF_UP = 0x8913, 1

TCMSG = struct.Struct("=4xiIII")
"""Format of ``struct tcmsg``: index of the interface, handle, parent, info."""

_TCA_STATS = 3
_STATISTICS = struct.Struct("=12xI16xI")
"""Drops and backlog in ``struct tc_stats``."""
_NO_STATISTICS = bytes(_STATISTICS.size)


def is_up(namespace: Namespace, interface: str) -> bool:
    """Return whether an interface is up. Raises ``OSError`` if there is none."""
    with namespace.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        answer = fcntl.ioctl(asked, _SIOCGIFFLAGS, struct.pack("16sh14x", interface.encode(), 0))
    return bool(struct.unpack_from("=16xh", answer)[0] & _IFF_UP)


def carried(namespace: Namespace) -> Carried:
    """Return the packets and bytes sent and received by each interface; net/dev in proc(5).

    Raises ``OSError`` if the node is gone.
    """
    lines = Path(f"/proc/{namespace.pid}/net/dev").read_text(encoding="ascii").splitlines()
    found = {}
    for line in lines[2:]:
        name, _, counts = line.partition(":")
        numbers = [int(each) for each in counts.split()]
        found[name.strip()] = (numbers[9], numbers[8], numbers[1], numbers[0])
    return found


class HeldQueue(NamedTuple):
    """A queue discipline as the kernel has it."""

    interface: int
    """Index of its interface."""
    handle: int
    parent: int
    drops: int
    """Number of packets that it and all disciplines below it have dropped."""
    backlog: int
    """Number of bytes that wait in it."""
    attributes: dict[int, bytes]


def held_queues(routes: NetlinkSocket) -> Iterator[HeldQueue]:
    """Yield all queue disciplines of a namespace.

    One dump without a decoder serves all interfaces of a node, because a network may have a
    hundred.
    """
    head = HEADER.size + TCMSG.size
    request = HEADER.pack(head, RTM_GETQDISC, DUMP_REQUEST, 0, 0) + TCMSG.pack(0, 0, 0, 0)
    for answer in routes.dumped(request):
        index, handle, parent, _ = TCMSG.unpack_from(answer, HEADER.size)
        found = split(answer[head:])
        drops, backlog = _STATISTICS.unpack_from(found.get(_TCA_STATS, _NO_STATISTICS))
        yield HeldQueue(index, handle, parent, drops, backlog, found)


def dropped(routes: NetlinkSocket) -> dict[int, int]:
    """Return the packets dropped by each interface's root queue and all below it, by its index."""
    return {each.interface: each.drops for each in held_queues(routes) if each.parent == TC_H_ROOT}

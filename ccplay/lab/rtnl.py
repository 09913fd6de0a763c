"""rtnetlink(7): requests for a network, in batches with one round trip to the kernel.

pyroute2's own sockets are asyncio objects that wait for one reply at a time; building a network
takes a hundred requests that need not wait for each other. Only pyroute2's encoders and decoders
are used: the whole package takes four times as long to import as these few modules. Message types
that labs never use (bonds, tunnels, classifiers other than u32) are left out, too.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self, TypeAlias

from ccplay.lab.import_stubs import bare_package, in_place_of, stand_ins
from ccplay.lab.netns import Namespace

_RTNL = "pyroute2.netlink.rtnl"

_ACTIONS = ("bpf", "connmark", "skbedit", "vlan")
_CLASSIFIERS = ("basic", "flow", "fw", "matchall")
_DISCIPLINES = ("bpf", "drr", "hfsc", "plug")
_LINKS = (
    *("bond", "can", "geneve", "gtp", "ipoib", "ipvlan", "team", "tun", "tuntap"),
    *("vlan", "vrf", "vti", "vti6", "vxlan", "xfrm"),
)
_UNUSED = [
    *(f"{_RTNL}.tcmsg.act_{name}" for name in _ACTIONS),
    *(f"{_RTNL}.tcmsg.cls_{name}" for name in _CLASSIFIERS),
    *(f"{_RTNL}.tcmsg.sched_{name}" for name in _DISCIPLINES),
]

with in_place_of(bare_package("pyroute2")), in_place_of(stand_ins(_UNUSED)):
    from pyroute2.netlink import NLA_F_NESTED, nla, nlmsg

    # pyroute2's tables list these, but only its servers and interfaces use them.
    _processes = stand_ins(["multiprocessing"], Pipe=None, Process=None, Queue=None)
    _links = stand_ins(
        (f"{_RTNL}.ifinfmsg.plugins.{name}" for name in _LINKS), **dict.fromkeys(_LINKS, nla)
    )
    with in_place_of(_processes), in_place_of(_links):
        from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg
    from pyroute2.netlink.rtnl import (
        RTM_DELLINK,
        RTM_DELQDISC,
        RTM_DELRULE,
        RTM_DELTCLASS,
        RTM_DELTFILTER,
        RTM_GETQDISC,
        RTM_GETROUTE,
        RTM_GETTCLASS,
        RTM_GETTFILTER,
        RTM_NEWLINK,
        RTM_NEWQDISC,
        RTM_NEWROUTE,
        RTM_NEWRULE,
        RTM_NEWTCLASS,
        RTM_NEWTFILTER,
        TC_H_ROOT,
    )
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
    "NLA_F_NESTED",
    "RTM_DELLINK",
    "RTM_DELQDISC",
    "RTM_DELRULE",
    "RTM_DELTCLASS",
    "RTM_DELTFILTER",
    "RTM_GETQDISC",
    "RTM_GETROUTE",
    "RTM_GETTCLASS",
    "RTM_GETTFILTER",
    "RTM_NEWLINK",
    "RTM_NEWQDISC",
    "RTM_NEWROUTE",
    "RTM_NEWRULE",
    "RTM_NEWTCLASS",
    "RTM_NEWTFILTER",
    "TC_H_ROOT",
    "cls_u32",
    "fibmsg",
    "ifinfmsg",
    "nlmsg",
    "red_eval_P",
    "red_eval_ewma",
    "red_eval_idle_damping",
    "rtmsg",
    "sched_htb",
    "tcmsg",
    "tick_in_usec",
]


# --- parts of netlink dumps that are read without a decoder: request, timeout, end; netlink(7) ----

DUMP_REQUEST = 0x301
"""Flags ``NLM_F_REQUEST | NLM_F_DUMP``."""

_ERROR, _DONE = 2, 3
_ERRNO = struct.Struct("=i")
_END = struct.Struct("=IH10xi")

_TIMEOUT = struct.pack("=qq", 2, 0)
"""Timeout of 2 s as ``struct timeval``; the kernel answers a dump within the call."""


def set_timeout(reader: socket.socket) -> None:
    """Set a timeout for reads from a socket."""
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _TIMEOUT)


def continues(data: bytes, position: int, kind: int, protocol: str) -> bool:
    """Return whether a dump continues after a message that is not a reply.

    Raises ``OSError`` if the message reports an error.
    """
    if kind in (_ERROR, _DONE):
        (error,) = _ERRNO.unpack_from(data, position + 16)
        if error:
            raise OSError(-error, f"{protocol}: {os.strerror(-error)}")
    return kind != _DONE


def ends(data: bytes) -> bool:
    """Return whether a datagram contains only the end of a dump, without an error."""
    if len(data) != _END.size:
        return False
    _, kind, error = _END.unpack(data)
    return (kind, error) == (_DONE, 0)


# --- rtnetlink(7) in batches: many requests in one round trip to the kernel -----------------------

REQUEST, ACK, DUMP = 0x1, 0x4, 0x300
CREATE, EXCLUSIVE, REPLACE = 0x400, 0x200, 0x100

_HEADER = struct.Struct("=IHHII")
_RECEIVE_BUFFER = 1 << 20


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
        """Return the only answer to a request from ``requests``.

        Raises ``NetlinkError`` if the kernel reports an error instead.
        """
        self._sequence += 1
        self._socket.send(_numbered(request, self._sequence))
        while True:
            data = self._socket.recv(1 << 16)
            _, kind, _, sequence, _ = _HEADER.unpack_from(data)
            if sequence != self._sequence:
                continue
            if kind == _ERROR:
                number = -int(struct.unpack_from("=i", data, 16)[0])
                raise NetlinkError(number, os.strerror(number))
            return data

    def dump(self, message: nlmsg) -> list[Any]:
        """Return the replies to a dump request, decoded as the request's own class."""
        message["header"]["flags"] = REQUEST | DUMP
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
            for kind, start, end in _split(data):
                if kind == _DONE:
                    return answers
                if kind == _ERROR:
                    number = -struct.unpack_from("=i", data, start + 16)[0]
                    raise NetlinkError(number, f"dump: {os.strerror(number)}")
                answers.append(data[start:end])

    def _acknowledgement(self, first: int) -> int:
        """Wait for an acknowledgement of request ``first`` or a later one; return its errno."""
        while True:
            data = self._socket.recv(1 << 16)
            _, kind, _, sequence, _ = _HEADER.unpack_from(data)
            if kind == _ERROR and sequence >= first:
                return -int(struct.unpack_from("=i", data, 16)[0])


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


def _split(data: bytes) -> Iterable[tuple[int, int, int]]:
    """Yield type, start and end of every message in the result of one read."""
    start = 0
    while start + _HEADER.size <= len(data):
        length, kind, _, _, _ = _HEADER.unpack_from(data, start)
        yield kind, start, start + length
        start += (length + 3) & ~3


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

_NEWLINK, _NEWADDR, _NEWROUTE, _DELROUTE, _GETROUTE, _NEWNEIGH = 16, 20, 24, 25, 26, 28
_NEWRULE, _DELRULE = 32, 33
_ASK, _CREATE, _NEW = 0x1 | 0x4, 0x400, 0x400 | 0x200
"""Request flags: acknowledge; create the object; create it, and fail if it exists."""
_QUESTION, _REPLACE = 0x1, 0x400 | 0x100
"""Request flags: reply without an acknowledgement; create or replace the object."""

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
    peer = _attribute(1, _LINK.pack(0, 0, 0, 0, 0) + _end(*there))
    info = _attribute(1, b"veth\0") + _attribute(2, peer)
    return _request(_NEWLINK, _NEW, _LINK.pack(0, 0, 0, 0, 0), _end(*here), _attribute(18, info))


def up(index: int) -> bytes:
    """Return the request that brings an interface up."""
    return _request(_NEWLINK, 0, _LINK.pack(0, 0, index, _UP, _UP))


def down(index: int) -> bytes:
    """Return the request that takes an interface down."""
    return _request(_NEWLINK, 0, _LINK.pack(0, 0, index, 0, _UP))


def address(index: int, own: str) -> bytes:
    """Return the request that assigns an IPv4 address of a /24 subnet to an interface."""
    packed = socket.inet_aton(own)
    head = _ADDRESS.pack(socket.AF_INET, 24, 0, 0, index)
    return _request(_NEWADDR, _NEW, head, _attribute(2, packed), _attribute(1, packed))


def neighbour(index: int, there: str, mac: str) -> bytes:
    """Return the request for a permanent neighbour entry of the address at a link's far end."""
    head = _NEIGHBOUR.pack(socket.AF_INET, index, _PERMANENT, 0, 0)
    known = _attribute(1, socket.inet_aton(there)), _attribute(2, _octets(mac))
    return _request(_NEWNEIGH, _CREATE, head, *known)


def route(subnet: str | None, hops: list[tuple[str, int]]) -> bytes:
    """Return the request for a route to a /24 subnet; None stands for the default route.

    ``hops`` are gateways, each with the index of its interface; flows are spread over several.
    """
    length = 0 if subnet is None else 24
    head = _ROUTE.pack(socket.AF_INET, length, 0, 0, _MAIN, _STATIC, 0, _UNICAST, 0)
    there = b"" if subnet is None else _attribute(1, socket.inet_aton(subnet))
    if len(hops) == 1:
        way = _gateway(hops[0][0])
    else:
        way = _attribute(9, b"".join(_HOP.pack(16, 0, 0, at) + _gateway(via) for via, at in hops))
    return _request(_NEWROUTE, _NEW, head, there, way)


def reroute(request: bytes) -> bytes:
    """Return a request of ``route`` changed so that it replaces any other route to its subnet."""
    length, kind, _, sequence, sender = _HEADER.unpack_from(request)
    return _HEADER.pack(length, kind, _ASK | _REPLACE, sequence, sender) + request[_HEADER.size :]


def unroute(subnet: str | None) -> bytes:
    """Return the request that removes the route to a /24 subnet; None is the default route."""
    length = 0 if subnet is None else 24
    # Scope 255 (RT_SCOPE_NOWHERE) matches a route of any scope.
    head = _ROUTE.pack(socket.AF_INET, length, 0, 0, _MAIN, 0, 255, 0, 0)
    there = b"" if subnet is None else _attribute(_RTA_DST, socket.inet_aton(subnet))
    return _request(_DELROUTE, 0, head, there)


def only_route(table: int, via: str) -> bytes:
    """Return the request that makes a gateway the only route of a routing table."""
    head = _ROUTE.pack(socket.AF_INET, 0, 0, 0, 0, _STATIC, 0, _UNICAST, 0)
    where = _attribute(_RTA_TABLE, struct.pack("=I", table))
    return _request(_NEWROUTE, _REPLACE, head, where, _gateway(via))


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
        _attribute(_FRA_DST, dst),
        _attribute(_FRA_SRC, src),
        _attribute(_FRA_PRIORITY, struct.pack("=I", _BEFORE_MAIN)),
        _attribute(_FRA_TABLE, struct.pack("=I", table)),
        _attribute(_FRA_IP_PROTO, bytes([protocol])),
    ]
    if sports is not None:
        parts.append(_attribute(_FRA_SPORTS, struct.pack("=HH", sports[0], sports[-1])))
    if dport is not None:
        parts.append(_attribute(_FRA_DPORTS, struct.pack("=HH", dport, dport)))
    head = _ROUTE.pack(socket.AF_INET, 32, 32, 0, 0, 0, 0, _TO_TABLE, 0)
    kind, flags = (_DELRULE, 0) if remove else (_NEWRULE, _NEW)
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
    parts = [_attribute(_RTA_DST, dst)]
    if arrival:
        parts += [_attribute(_RTA_SRC, src), _attribute(_RTA_IIF, struct.pack("=I", arrival))]
    if protocol:
        parts.append(_attribute(_RTA_IP_PROTO, bytes([protocol])))
        parts += [_attribute(_RTA_SPORT, _port(sport)), _attribute(_RTA_DPORT, _port(dport))]
    body = b"".join([head, *parts])
    return _HEADER.pack(_HEADER.size + len(body), _GETROUTE, _QUESTION, 0, 0) + body


def interface_of(answer: bytes) -> int:
    """Return the index of the outgoing interface in an answer to ``lookup``; 0 if it has none."""
    at = _HEADER.size + _ROUTE.size
    while at + 4 <= len(answer):
        length, kind = struct.unpack_from("=HH", answer, at)
        if kind == _RTA_OIF:
            return int(struct.unpack_from("=I", answer, at + 4)[0])
        at += max((length + 3) & ~3, 4)
    return 0


def _port(number: int) -> bytes:
    return struct.pack("!H", number)


def _gateway(via: str) -> bytes:
    return _attribute(5, socket.inet_aton(via))


def _end(name: str, mac: str, pid: int) -> bytes:
    """Return the attributes IFLA_IFNAME, IFLA_ADDRESS and IFLA_NET_NS_PID of one end."""
    words = (3, name.encode() + b"\0"), (1, _octets(mac)), (19, struct.pack("=I", pid))
    return b"".join(_attribute(*each) for each in words)


def _octets(mac: str) -> bytes:
    return bytes.fromhex(mac.replace(":", ""))


def _attribute(kind: int, value: bytes) -> bytes:
    """Return ``struct rtattr`` and its value, padded to a multiple of four bytes."""
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def _request(kind: int, flags: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return _HEADER.pack(_HEADER.size + len(body), kind, _ASK | flags, 0, 0) + body


# --- reads whether interfaces are up, their counters, and the drops of their queues ---------------

Carried: TypeAlias = dict[str, tuple[int, int, int, int]]
"""Packets sent, bytes sent, packets received and bytes received, by interface."""

_SIOCGIFFLAGS, _IFF_UP = 0x8913, 1

_INTERFACES_HEADER = 16
"""Length of ``struct nlmsghdr`` in bytes."""
_TCMSG = struct.Struct("=4xi4xI4x")
"""Index and parent in ``struct tcmsg``, as a ``struct`` format."""
_ATTRIBUTE = struct.Struct("=HH")
_TCA_STATS = 3
_DROPS = struct.Struct("=12xI")
"""``drops`` in ``struct tc_stats``, after bytes and packets."""
_QDISCS = struct.pack("=IHHII20x", _INTERFACES_HEADER + 20, RTM_GETQDISC, DUMP_REQUEST, 0, 0)
"""Request for all queue disciplines of a namespace."""


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


def dropped(routes: NetlinkSocket) -> dict[int, int]:
    """Return the packets dropped by each interface's root queue and all below it.

    The keys are interface indices. One dump without a decoder serves all interfaces of a node,
    because a network may have a hundred.
    """
    found = {}
    for answer in routes.dumped(_QDISCS):
        index, parent = _TCMSG.unpack_from(answer, _INTERFACES_HEADER)
        if parent == TC_H_ROOT:
            found[index] = _drops(answer)
    return found


def _drops(answer: bytes) -> int:
    """Return the packets dropped by a queue discipline, from ``struct tc_stats`` in its message."""
    start = _INTERFACES_HEADER + _TCMSG.size
    while start + _ATTRIBUTE.size <= len(answer):
        length, kind = _ATTRIBUTE.unpack_from(answer, start)
        if kind == _TCA_STATS:
            (drops,) = _DROPS.unpack_from(answer, start + _ATTRIBUTE.size)
            return int(drops)
        start += max((length + 3) & ~3, _ATTRIBUTE.size)
    return 0

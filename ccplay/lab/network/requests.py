"""Requests of rtnetlink(7) for a network: links, addresses, neighbours, routes and rules.

A network needs several of them per link, and pyroute2's general encoder takes a tenth of a
millisecond for each. ``RouteSocket.request`` fills in their sequence numbers.
"""

from __future__ import annotations

import socket
import struct

_HEADER = struct.Struct("=IHHII")
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

"""Reads whether interfaces are up, their counters, and the drops of their queues."""

from __future__ import annotations

import fcntl
import socket
import struct
from pathlib import Path
from typing import TypeAlias

from ccplay.lab.network.dumps import REQUEST
from ccplay.lab.network.netlink import RTM_GETQDISC, TC_H_ROOT
from ccplay.lab.network.netns import Namespace
from ccplay.lab.network.rtnl import RouteSocket

Carried: TypeAlias = dict[str, tuple[int, int, int, int]]
"""Packets sent, bytes sent, packets received and bytes received, by interface."""

_SIOCGIFFLAGS, _IFF_UP = 0x8913, 1

_HEADER = 16
"""Length of ``struct nlmsghdr`` in bytes."""
_TCMSG = struct.Struct("=4xi4xI4x")
"""Index and parent in ``struct tcmsg``, as a ``struct`` format."""
_ATTRIBUTE = struct.Struct("=HH")
_TCA_STATS = 3
_DROPS = struct.Struct("=12xI")
"""``drops`` in ``struct tc_stats``, after bytes and packets."""
_QDISCS = struct.pack("=IHHII20x", _HEADER + 20, RTM_GETQDISC, REQUEST, 0, 0)
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


def dropped(routes: RouteSocket) -> dict[int, int]:
    """Return the packets dropped by each interface's root queue and all below it.

    The keys are interface indices. One dump without a decoder serves all interfaces of a node,
    because a network may have a hundred.
    """
    found = {}
    for answer in routes.dumped(_QDISCS):
        index, parent = _TCMSG.unpack_from(answer, _HEADER)
        if parent == TC_H_ROOT:
            found[index] = _drops(answer)
    return found


def _drops(answer: bytes) -> int:
    """Return the packets dropped by a queue discipline, from ``struct tc_stats`` in its message."""
    start = _HEADER + _TCMSG.size
    while start + _ATTRIBUTE.size <= len(answer):
        length, kind = _ATTRIBUTE.unpack_from(answer, start)
        if kind == _TCA_STATS:
            (drops,) = _DROPS.unpack_from(answer, start + _ATTRIBUTE.size)
            return int(drops)
        start += max((length + 3) & ~3, _ATTRIBUTE.size)
    return 0

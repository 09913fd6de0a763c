"""An interface's counters and drops of its queue, read once at the end; whether it is up."""

from __future__ import annotations

import fcntl
import socket
import struct
from pathlib import Path
from typing import Any, TypeAlias

from ccplay.lab.network.netlink import RTM_GETQDISC, TC_H_ROOT
from ccplay.lab.network.netns import Namespace
from ccplay.lab.network.rtnl import RouteSocket, traffic_control

Carried: TypeAlias = dict[str, tuple[int, int, int, int]]
"""By interface the packets and bytes that it sent and received."""

_SIOCGIFFLAGS, _IFF_UP = 0x8913, 1


def is_up(namespace: Namespace, interface: str) -> bool:
    """Return whether an interface is up. Raises ``OSError`` if there is none."""
    with namespace.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        answer = fcntl.ioctl(asked, _SIOCGIFFLAGS, struct.pack("16sh14x", interface.encode(), 0))
    return bool(struct.unpack_from("=16xh", answer)[0] & _IFF_UP)


def carried(namespace: Namespace) -> Carried:
    """Return packets and bytes sent and received, by interface; proc(5), net/dev.

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
    """Return the packets dropped by an interface's root queue and all below it, by index."""
    found = {}
    for answer in routes.dump(traffic_control(RTM_GETQDISC, 0, 0, ())):
        if answer["parent"] == TC_H_ROOT:
            found[int(answer["index"])] = _drops(answer)
    return found


def _drops(answer: Any) -> int:
    counted = answer.get_attr("TCA_STATS")
    return 0 if counted is None else int(counted["drop"])

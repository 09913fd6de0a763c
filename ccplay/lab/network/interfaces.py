"""Counters of every interface and drops of its queue, read once at the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ccplay.lab.network.netlink import RTM_GETQDISC, TC_H_ROOT
from ccplay.lab.network.netns import Namespace
from ccplay.lab.network.rtnl import RouteSocket, traffic_control


def carried(namespace: Namespace) -> dict[str, tuple[int, int, int, int]]:
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

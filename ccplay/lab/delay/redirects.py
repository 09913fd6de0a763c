"""Redirects packets from one interface to another, at ingress or egress; tc-mirred(8).

Both hooks belong to the qdisc clsact, which an interface has in addition to its queue.
"""

from __future__ import annotations

from typing import Any

from ccplay.lab.network.netlink import RTM_DELTFILTER, RTM_NEWQDISC, RTM_NEWTFILTER, cls_u32
from ccplay.lab.network.rtnl import CREATE, EXCLUSIVE, traffic_control

ALL: tuple[str, ...] = ("0x0/0x0+0",)
"""Filter keys that match every packet; see ``filters.Keys``."""

INCOMING, LEAVING = 0xFFFFFFF2, 0xFFFFFFF3
"""``TC_H_MIN_INGRESS`` and ``TC_H_MIN_EGRESS`` of clsact."""

CLSACT = 0xFFFFFFF1
"""Parent handle of the qdisc clsact; an interface has at most one clsact."""

_HANDLE = 0xFFFF0000
_ALL_PROTOCOLS = 0x0300
"""``ETH_P_ALL`` in network byte order, for the protocol in a filter's ``info``."""


def ready(index: int) -> Any:
    """Return the request that prepares an interface for redirections; it may be repeated."""
    kind = (("TCA_KIND", "clsact"),)
    return traffic_control(RTM_NEWQDISC, CREATE, index, kind, parent=CLSACT, handle=_HANDLE)


def redirect(
    index: int, place: int, target: int, keys: tuple[str, ...] = ALL, priority: int = 1
) -> Any:
    """Return the request that sends packets of interface ``index`` out through ``target``.

    ``place`` is ``INCOMING`` or ``LEAVING``; a packet must match all ``keys``.
    """
    action = {"kind": "mirred", "direction": "egress", "action": "redirect", "ifindex": target}
    options = cls_u32.get_parameters(
        {
            "keys": list(keys),
            # pyroute2 requires a target; it has no effect: redirected packets are in no class.
            "target": 0x10000,
            "action": action,
            "parent": place,
            "protocol": 3,
            "prio": priority,
        }
    )
    return traffic_control(
        RTM_NEWTFILTER,
        CREATE | EXCLUSIVE,
        index,
        (("TCA_KIND", "u32"), ("TCA_OPTIONS", options)),
        parent=place,
        info=priority << 16 | _ALL_PROTOCOLS,
    )


def let_pass(index: int, place: int, priority: int) -> Any:
    """Return the request that removes all redirections of a priority."""
    info = priority << 16 | _ALL_PROTOCOLS
    return traffic_control(RTM_DELTFILTER, 0, index, (), parent=place, info=info)

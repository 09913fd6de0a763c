"""ECN for one flow: a route with the feature ``ecn``, used only by connections to its port.

The kernel has no socket option for ECN. It requests ECN (RFC 3168) if the sysctl ``tcp_ecn`` asks
for it on the whole host, or if the route does: ip-route(8), ``features``; ip-rule(8), ``dport``.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from typing import Any

from ccplay.errors import LabError, UnsupportedError
from ccplay.lab.network import firewall
from ccplay.lab.network.netlink import (
    RTM_DELRULE,
    RTM_GETROUTE,
    RTM_NEWROUTE,
    RTM_NEWRULE,
    fibmsg,
    rtmsg,
)
from ccplay.lab.network.netns import Namespace
from ccplay.lab.network.rtnl import CREATE, EXCLUSIVE, REPLACE, NetlinkError, RouteSocket, message

_TABLE, _MAIN = 100, 254
_FEATURE_ECN = 1
"""``RTAX_FEATURE_ECN`` of include/uapi/linux/rtnetlink.h."""

_TO_TABLE = 1
"""``FR_ACT_TO_TBL`` of include/uapi/linux/fib_rules.h."""


def ask_for_ecn(namespace: Namespace, port: int) -> None:
    """Make a host's new TCP connections to ``port`` request ECN.

    Raises ``UnsupportedError`` if the kernel can't route by port.
    """
    try:
        with RouteSocket(namespace) as kernel:
            route = _default_route(kernel, namespace)
            kernel.request([_with_ecn(route)], f"host {namespace.name}: route with ECN")
            kernel.request([_rule(RTM_NEWRULE, CREATE | EXCLUSIVE, port)], f"rule for port {port}")
    except NetlinkError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.EAFNOSUPPORT, errno.EINVAL):
            raise UnsupportedError(
                "ECN for a flow needs routing by port, which this kernel lacks "
                "(CONFIG_IP_MULTIPLE_TABLES, Linux 4.17)"
            ) from error
        raise LabError(f"host {namespace.name}: {error}") from error


def stop_asking(namespace: Namespace, port: int) -> None:
    """Undo ``ask_for_ecn``; open connections keep what they negotiated."""
    with RouteSocket(namespace) as kernel:
        kernel.request([_rule(RTM_DELRULE, 0, port)], f"rule for port {port}")


async def send_ect_1(namespace: Namespace, port: int) -> None:
    """Send a host's data to ``port`` as ECT(1), which the kernel sends as ECT(0).

    Packets that are not ECT, such as SYN and retransmissions, stay so. Raises ``UnsupportedError``.
    """
    try:
        await firewall.restore(namespace, _ect_1("-A", port))
    except (LabError, OSError) as error:
        raise UnsupportedError(
            f"l4s needs iptables-legacy and its modules xt_DSCP and xt_dscp ({error})"
        ) from error


async def stop_ect_1(namespace: Namespace, port: int, sending: asyncio.Task[None]) -> None:
    """Undo ``send_ect_1`` when ``sending``, the task that runs it, has ended. Raises ``LabError``.

    The task may still run when a flow is stopped before it begins.
    """
    await asyncio.wait([sending])
    if sending.exception() is None:
        await firewall.restore(namespace, _ect_1("-D", port))


def _ect_1(verb: str, port: int) -> str:
    # CE is set by queues further on, never in front of this.
    rule = f"POSTROUTING -p tcp --dport {port} -m tos --tos 0x02/0x03 -j TOS --set-tos 0x01/0x03"
    return f"*mangle\n{verb} {rule}\nCOMMIT\n"


def _default_route(kernel: RouteSocket, namespace: Namespace) -> Any:
    routes = kernel.dump(message(rtmsg, RTM_GETROUTE, family=socket.AF_INET))
    for route in routes:
        if (route["table"], route["dst_len"]) == (_MAIN, 0):
            return route
    raise LabError(f"host {namespace.name} has no default route")


def _with_ecn(route: Any) -> Any:
    """Return the request that adds a route with ECN beside the host's own."""
    attributes = [
        ("RTA_GATEWAY", route.get_attr("RTA_GATEWAY")),
        ("RTA_OIF", route.get_attr("RTA_OIF")),
        ("RTA_METRICS", {"attrs": [["RTAX_FEATURES", _FEATURE_ECN]]}),
    ]
    header = {name: route[name] for name in ("family", "dst_len", "proto", "scope", "type")}
    return message(rtmsg, RTM_NEWROUTE, CREATE | REPLACE, attributes, table=_TABLE, **header)


def _rule(kind: int, flags: int, port: int) -> Any:
    attributes = (
        # Before the main table, whose rule has 32766.
        ("FRA_PRIORITY", 1000),
        ("FRA_TABLE", _TABLE),
        ("FRA_IP_PROTO", socket.IPPROTO_TCP),
        ("FRA_DPORT_RANGE", f"{port}:{port}"),
    )
    header = {"family": socket.AF_INET, "table": _TABLE, "action": _TO_TABLE}
    return message(fibmsg, kind, flags, attributes, **header)

"""The rate of a link: one HTB class that never resets the queue under it.

The root is ``1:`` and its only class ``1:1``; the discipline under study is the class's leaf, so
that either is changed without the other noticing (tc-htb(8), net/sched/sch_htb.c).
"""

from __future__ import annotations

from ccplay.errors import CommandError
from ccplay.lab.netlink import RTM_GETTCLASS, RTM_NEWQDISC, RTM_NEWTCLASS, TC_H_ROOT, sched_htb
from ccplay.lab.rtnl import CREATE, REPLACE, RouteSocket, traffic_control
from ccplay.units import format_rate

ROOT = 0x1_0000
CLASS = 0x1_0001

RATES = (100_000, 1_000_000_000)
"""Lowest and highest rate, bits per second."""

_FRAME = 1514
_BURST_S = 0.001
"""A timer may fire so late without costing rate; the burst after silence is as long."""


def check_rate(rate: int) -> None:
    """Raise ``CommandError`` for a rate that a link can't have."""
    low, high = RATES
    if not low <= rate <= high:
        raise CommandError(
            f"a link's rate goes from {format_rate(low)} to {format_rate(high)}, "
            f"not {format_rate(rate)}"
        )


def set_rate(routes: RouteSocket, index: int, rate: int, *, new: bool) -> None:
    """Shape an interface to ``rate``, bits per second, Ethernet headers included.

    ``new`` makes the root first, which drops whatever was queued before.
    """
    requests = []
    if new:
        attributes = (
            ("TCA_KIND", "htb"),
            ("TCA_OPTIONS", sched_htb.get_parameters({"default": 1})),
        )
        requests.append(
            traffic_control(
                RTM_NEWQDISC, CREATE | REPLACE, index, attributes, parent=TC_H_ROOT, handle=ROOT
            )
        )
    octets = rate // 8
    burst = max(2 * _FRAME, int(octets * _BURST_S))
    # With one class no turn is ever taken, but without a quantum the kernel derives one and warns.
    parameters = {"rate": octets, "burst": burst, "cburst": burst, "quantum": _FRAME}
    attributes = (
        ("TCA_KIND", "htb"),
        ("TCA_OPTIONS", sched_htb.get_class_parameters(parameters)),
    )
    requests.append(
        traffic_control(
            RTM_NEWTCLASS, CREATE | REPLACE, index, attributes, parent=ROOT, handle=CLASS
        )
    )
    routes.request(requests, f"HTB with {format_rate(rate)}")


def read_rate(routes: RouteSocket, index: int) -> int:
    """Return the rate that the kernel holds, bits per second; 0 without HTB."""
    for answer in routes.dump(traffic_control(RTM_GETTCLASS, 0, index, ())):
        if answer["handle"] == CLASS and answer.get_attr("TCA_KIND") == "htb":
            held = answer.get_attr("TCA_OPTIONS").get_attr("TCA_HTB_PARMS")
            return int(held["rate"]) * 8
    return 0

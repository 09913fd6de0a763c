"""The rate of a link: an HTB class that never resets the queues below it.

The root is ``1:``, and its class ``1:1`` has the rate. The discipline under study is the leaf of
that class, so that a change of one does not affect the other (tc-htb(8), net/sched/sch_htb.c). If
several queues share the rate, they are the leaves of classes below ``1:1``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ccplay.lab.network.netlink import (
    RTM_DELTCLASS,
    RTM_GETTCLASS,
    RTM_NEWQDISC,
    RTM_NEWTCLASS,
    TC_H_ROOT,
    sched_htb,
)
from ccplay.lab.network.rtnl import CREATE, REPLACE, RouteSocket, traffic_control
from ccplay.lab.queues.reading import PASSAGE
from ccplay.model.tc import FRAME, burst
from ccplay.units import format_rate

ROOT = 0x1_0000
CLASS = 0x1_0001

_PASSAGE_RATE = 10_000_000_000
"""Rate in bits per second of the class ``PASSAGE``, because HTB requires one."""


def set_rate(routes: RouteSocket, index: int, rate: int, *, new: bool) -> None:
    """Shape an interface to ``rate`` bits per second, Ethernet headers included.

    ``new`` creates the root first, which drops all packets queued before.
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
    # One class needs no quantum, but without one the kernel derives it and warns.
    requests.append(_class(index, ROOT, CLASS, rate=rate, ceil=rate, quantum=FRAME))
    routes.request(requests, f"HTB with {format_rate(rate)}")


def add_passage(index: int) -> list[Any]:
    """Return the requests that create the class ``PASSAGE``."""
    rate = _PASSAGE_RATE
    return [_class(index, ROOT, PASSAGE, rate=rate, ceil=rate, quantum=FRAME)]


def remove_passage(index: int) -> list[Any]:
    """Return the requests that remove the class ``PASSAGE`` with its queue."""
    return [traffic_control(RTM_DELTCLASS, 0, index, (), parent=ROOT, handle=PASSAGE)]


def set_shares(routes: RouteSocket, index: int, rate: int, shares: Mapping[int, float]) -> None:
    """Create the classes with these handles below the link's own, or change their shares.

    Each is guaranteed its share of ``rate`` and borrows what others leave unused, in proportion to
    its share. Creating the first removes the queue of the link's own class with its packets.
    """
    least = min(shares.values())
    requests = [
        _class(
            *(index, CLASS, handle),
            rate=round(rate * share),
            ceil=rate,
            quantum=round(FRAME * share / least),
        )
        for handle, share in shares.items()
    ]
    routes.request(requests, f"{len(shares)} classes of {format_rate(rate)}")


def removals(index: int, handles: Iterable[int]) -> list[Any]:
    """Return requests that remove classes; after the last, the link's own class has a queue."""
    return [
        traffic_control(RTM_DELTCLASS, 0, index, (), parent=CLASS, handle=handle)
        for handle in handles
    ]


def _class(index: int, parent: int, handle: int, *, rate: int, ceil: int, quantum: int) -> Any:
    """Return the request that creates or changes a class; rates in bits per second."""
    parameters = {
        "rate": rate // 8,
        "burst": burst(rate),
        "ceil": ceil // 8,
        "cburst": burst(ceil),
        "quantum": quantum,
    }
    attributes = (
        ("TCA_KIND", "htb"),
        ("TCA_OPTIONS", sched_htb.get_class_parameters(parameters)),
    )
    return traffic_control(
        RTM_NEWTCLASS, CREATE | REPLACE, index, attributes, parent=parent, handle=handle
    )


def read_rates(routes: RouteSocket, index: int) -> dict[int, int]:
    """Return the kernel's rates in bits per second, by class; empty without HTB."""
    rates = {}
    for answer in routes.dump(traffic_control(RTM_GETTCLASS, 0, index, ())):
        if answer["index"] == index and answer.get_attr("TCA_KIND") == "htb":
            held = answer.get_attr("TCA_OPTIONS").get_attr("TCA_HTB_PARMS")
            rates[answer["handle"]] = int(held["rate"]) * 8
    return rates

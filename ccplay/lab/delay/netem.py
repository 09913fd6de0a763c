"""Delay by the kernel's netem, on an ifb device that all arriving packets pass.

tc-netem(8); the redirection through an ifb is tc-mirred(8).
"""

from __future__ import annotations

import errno
import random
from collections.abc import Iterable
from typing import Any

from ccplay.errors import LabError
from ccplay.lab.delay import redirects
from ccplay.lab.delay.engines import Arrival, Impairment
from ccplay.lab.network.interfaces import dropped
from ccplay.lab.network.netlink import (
    RTM_NEWLINK,
    RTM_NEWQDISC,
    TC_H_ROOT,
    ifinfmsg,
    sched_netem,
    tick_in_usec,
)
from ccplay.lab.network.rtnl import (
    CREATE,
    EXCLUSIVE,
    REPLACE,
    NetlinkError,
    RouteSocket,
    message,
    traffic_control,
)
from ccplay.lab.queues import qdiscs

_LIMIT = 1 << 17
"""Most packets in flight: 1 Gbit/s of full frames for 1.5 s."""

_FASTEST = (1 << 32) - 1
"""A rate that delays a frame by 0.4 us. With a rate, netem keeps packets in order where jitter or
a shorter delay would let later ones overtake (``netem_enqueue``, net/sched/sch_netem.c)."""


class NetemDelay:
    """The delay engine ``netem``."""

    name = "netem"

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._devices: dict[str, int] = {}

    @property
    def processes(self) -> Iterable[int]:
        """None: the kernel delays packets."""
        return ()

    def lateness(self) -> None:
        """Return None: the kernel does not measure it."""

    async def prepare(self) -> None:
        """Do nothing: the kernel is ready."""

    async def set(self, arrival: Arrival, path: Impairment) -> Impairment:
        """Apply ``path`` to arriving packets and return the kernel's version of it.

        Raises ``LabError`` if the kernel lacks netem, ifb or mirred.
        """
        try:
            with RouteSocket(arrival.namespace) as routes:
                index = self._devices.get(arrival.name)
                if index is None:
                    if not path:
                        return path
                    index = self._devices[arrival.name] = _divert(routes, arrival)
                _set_netem(routes, index, path, self._drawn_with(arrival))
                return _read_netem(routes, index)
        except NetlinkError as error:
            raise LabError(f"link {arrival.name}: netem: {error}") from error

    def _drawn_with(self, arrival: Arrival) -> int:
        """Return the seed of a link, which is the same in every run."""
        return random.Random(f"{self._seed}/{arrival.number}").getrandbits(64)  # noqa: S311

    async def lost(self, arrival: Arrival) -> int | None:
        """Return the packets dropped by netem, by its loss or because too many were in flight."""
        if (index := self._devices.get(arrival.name)) is None:
            return 0
        try:
            with RouteSocket(arrival.namespace) as routes:
                return dropped(routes).get(index)
        except NetlinkError as error:
            raise LabError(f"link {arrival.name}: netem: {error}") from error

    async def close(self) -> None:
        """Do nothing: devices go with their namespace."""


def divert_requests(source: int, target: int) -> list[Any]:
    """Return the request that sends all packets arriving on ``source`` out through ``target``."""
    return [redirects.ready(source), redirects.redirect(source, redirects.INCOMING, target)]


def make_ifb(routes: RouteSocket, arrival: Arrival) -> int:
    """Create an ifb device in the receiver's namespace and return its index."""
    name = f"ifb{arrival.number}"
    info = {"attrs": [["IFLA_INFO_KIND", "ifb"]]}
    attributes = (("IFLA_IFNAME", name), ("IFLA_LINKINFO", info))
    routes.request(
        [message(ifinfmsg, RTM_NEWLINK, CREATE | EXCLUSIVE, attributes)], f"device {name}"
    )
    index = arrival.namespace.interface_index(name)
    routes.request([message(ifinfmsg, RTM_NEWLINK, index=index, flags=1, change=1)], name)
    return index


def _divert(routes: RouteSocket, arrival: Arrival) -> int:
    index = make_ifb(routes, arrival)
    # netem comes first, or the first packets would not be delayed.
    _set_netem(routes, index, Impairment())
    source = arrival.namespace.interface_index(arrival.interface)
    routes.request(divert_requests(source, index), "redirection to ifb")
    return index


def _set_netem(routes: RouteSocket, index: int, path: Impairment, seed: int = 0) -> None:
    try:
        routes.request([netem_request(index, path, seed)], "netem")
    except NetlinkError as error:
        if error.errno == errno.ENOENT:
            raise LabError("this kernel has no netem (module sch_netem)") from None
        raise


def netem_request(index: int, path: Impairment, seed: int = 0) -> Any:
    """Return the request that makes netem the root of interface ``index``, or changes it.

    ``seed`` decides which packets are lost; before Linux 6.7 the kernel ignores it.
    """
    parameters = {
        "delay": path.delay_us,
        "jitter": path.jitter_us,
        "loss": path.loss * 100,
        "limit": _LIMIT,
        "rate": _FASTEST,
    }
    options = sched_netem.get_parameters(parameters)
    options["attrs"].append(["TCA_NETEM_PRNG_SEED", seed])
    options |= {name: round(options[name]) for name in ("delay", "jitter")}
    attributes = (("TCA_KIND", "netem"), ("TCA_OPTIONS", options))
    flags = CREATE | REPLACE
    return traffic_control(RTM_NEWQDISC, flags, index, attributes, parent=TC_H_ROOT, handle=0x10000)


def _read_netem(routes: RouteSocket, index: int) -> Impairment:
    kind, held = qdiscs.find(routes, index, TC_H_ROOT)
    if kind != "netem":
        raise LabError(f"requested netem from the kernel, but it has {kind or 'none'}")
    return path_of(held)


def path_of(held: Any) -> Impairment:
    """Return the impairment that netem's decoded options make."""
    return Impairment(
        delay_us=round(held["delay"] / tick_in_usec),
        jitter_us=round(held["jitter"] / tick_in_usec),
        loss=round(held["loss"] / (2**32 - 1), 6),
    )

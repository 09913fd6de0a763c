"""The rate of a link, its MTU and its offloads.

The root is ``1:``, and its class ``1:1`` has the rate. The discipline under study is the leaf of
that class, so that a change of one does not affect the other (tc-htb(8), net/sched/sch_htb.c). If
several queues share the rate, they are the leaves of classes below ``1:1``.
"""

from __future__ import annotations

import ctypes
import fcntl
import socket
import struct
from collections.abc import Iterable, Mapping
from typing import Any

from ccplay.errors import LabError
from ccplay.lab.network.netlink import (
    RTM_DELTCLASS,
    RTM_GETTCLASS,
    RTM_NEWQDISC,
    RTM_NEWTCLASS,
    TC_H_ROOT,
    sched_htb,
)
from ccplay.lab.network.netns import Namespace
from ccplay.lab.network.rtnl import CREATE, REPLACE, RouteSocket, traffic_control
from ccplay.lab.queues.statistics import PASSAGE
from ccplay.model.tc import FRAME, burst
from ccplay.units import format_rate

# --- the MTU of an interface: the largest IP packet that it sends or accepts; netdevice(7) --------

_SIOCGIFMTU, _SIOCSIFMTU = 0x8921, 0x8922
_REQUEST = struct.Struct("=16si20x")
"""``struct ifreq`` with ``ifr_mtu``."""


def set_mtu(namespace: Namespace, interface: str, mtu: int) -> None:
    """Set the MTU of an interface. Raises ``LabError`` if the kernel keeps another."""
    with namespace.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            fcntl.ioctl(sock, _SIOCSIFMTU, _REQUEST.pack(interface.encode(), mtu))
            answer = fcntl.ioctl(sock, _SIOCGIFMTU, _REQUEST.pack(interface.encode(), 0))
        except OSError as error:
            raise LabError(f"{interface}: MTU {mtu}: {error.strerror}") from error
    _, held = _REQUEST.unpack(answer)
    if held != mtu:
        raise LabError(f"{interface}: requested MTU {mtu}, but the kernel keeps {held}")


# --- segmentation and receive offloads of an interface --------------------------------------------
# Segmentation and receive offloads of an interface (ethtool(8), include/uapi/linux/ethtool.h).
#
# With offloads on, a queue holds segments of up to 64 KB; with them off, frames.

_SIOCETHTOOL = 0x8946

_SET_COMMANDS = {"TSO": 0x1F, "GSO": 0x24, "GRO": 0x2C}
_GET_COMMANDS = {"TSO": 0x1E, "GSO": 0x23, "GRO": 0x2B}


def switch(namespace: Namespace, interface: str, *, on: bool) -> None:
    """Turn TSO, GSO and GRO of an interface on or off.

    Raises ``LabError`` if the kernel does not change one of them.
    """
    with namespace.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for name, command in _SET_COMMANDS.items():
            _ioctl(sock, interface, command, int(on))
            if bool(_ioctl(sock, interface, _GET_COMMANDS[name], 0)) != on:
                raise LabError(f"{interface}: {name} stays {'off' if on else 'on'}")


def _ioctl(sock: socket.socket, interface: str, command: int, value: int) -> int:
    """Send one ``struct ethtool_value`` and return the value that the kernel leaves in it."""
    request = ctypes.create_string_buffer(struct.pack("=II", command, value))
    # struct ifreq: a name of 16 bytes, then a union that begins with the pointer.
    frame = struct.pack("=16sQ16x", interface.encode(), ctypes.addressof(request))
    try:
        fcntl.ioctl(sock, _SIOCETHTOOL, frame)
    except OSError as error:
        raise LabError(f"{interface}: offloads can't be set: {error.strerror}") from error
    return int(struct.unpack_from("=I", request, 4)[0])


# --- the rate of a link: an HTB class that never resets the queues below it -----------------------

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

"""The rate of a link, the classes that share it, their filters, and the interface's offloads.

The root is ``1:``, and its class ``1:1`` has the rate. The discipline under study is the leaf of
that class, so that a change of one does not affect the other (tc-htb(8), net/sched/sch_htb.c). If
several queues share the rate, they are the leaves of classes below ``1:1``, and u32 filters lead
traffic into its class.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import re
import socket
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from ccplay.errors import CommandError, LabError, UnsupportedError
from ccplay.lab.netlink import CREATE, REPLACE
from ccplay.lab.netns import Namespace
from ccplay.lab.qdisc_counters import PASSAGE
from ccplay.lab.qdiscs import LOOPBACK, Leaf
from ccplay.lab.rtnl import (
    RTM_DELQDISC,
    RTM_DELTCLASS,
    RTM_DELTFILTER,
    RTM_GETTCLASS,
    RTM_GETTFILTER,
    RTM_NEWQDISC,
    RTM_NEWTCLASS,
    TC_H_ROOT,
    NetlinkError,
    NetlinkSocket,
    sched_htb,
    traffic_control,
    u32_filter,
)
from ccplay.model.quantities import check
from ccplay.model.tc import FRAME, burst
from ccplay.model.values import TrafficClass
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


# --- offloads of an interface: ethtool(8), include/uapi/linux/ethtool.h ---------------------------
# With offloads on, a queue holds segments of up to 64 KB; with them off, frames.

_SIOCETHTOOL = 0x8946

_SET_COMMANDS = {"TSO": 0x1F, "GSO": 0x24, "GRO": 0x2C}
_GET_COMMANDS = {"TSO": 0x1E, "GSO": 0x23, "GRO": 0x2B}


def set_offloads(namespace: Namespace, interface: str, *, on: bool) -> None:
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


def set_rate(routes: NetlinkSocket, index: int, rate: int, *, new: bool) -> None:
    """Shape an interface to ``rate`` bits per second, Ethernet headers included.

    ``new`` creates the root first, which drops all packets queued before.
    """
    requests = [_root(index, {"default": 1})] if new else []
    # One class needs no quantum, but without one the kernel derives it and warns.
    requests.append(_class(index, ROOT, CLASS, rate=rate, ceil=rate, quantum=FRAME))
    routes.request(requests, f"HTB with {format_rate(rate)}")


def _root(index: int, options: Mapping[str, int]) -> Any:
    """Return the request that makes HTB the root of an interface."""
    attributes = (("TCA_KIND", "htb"), ("TCA_OPTIONS", sched_htb.get_parameters(options)))
    place = {"parent": TC_H_ROOT, "handle": ROOT}
    return traffic_control(RTM_NEWQDISC, CREATE | REPLACE, index, attributes, **place)


def add_passage(index: int) -> list[Any]:
    """Return the requests that create the class ``PASSAGE``."""
    rate = _PASSAGE_RATE
    return [_class(index, ROOT, PASSAGE, rate=rate, ceil=rate, quantum=FRAME)]


def remove_passage(index: int) -> list[Any]:
    """Return the requests that remove the class ``PASSAGE`` with its queue."""
    return [traffic_control(RTM_DELTCLASS, 0, index, (), parent=ROOT, handle=PASSAGE)]


def set_shares(routes: NetlinkSocket, index: int, rate: int, shares: Mapping[int, float]) -> None:
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


def class_removals(index: int, handles: Iterable[int]) -> list[Any]:
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
    attributes = (("TCA_KIND", "htb"), ("TCA_OPTIONS", sched_htb.get_class_parameters(parameters)))
    return traffic_control(
        RTM_NEWTCLASS, CREATE | REPLACE, index, attributes, parent=parent, handle=handle
    )


def read_rates(routes: NetlinkSocket, index: int) -> dict[int, int]:
    """Return the kernel's rates in bits per second, by class; empty without HTB."""
    rates = {}
    for answer in routes.dump(traffic_control(RTM_GETTCLASS, 0, index, ())):
        if answer["index"] == index and answer.get_attr("TCA_KIND") == "htb":
            held = answer.get_attr("TCA_OPTIONS").get_attr("TCA_HTB_PARMS")
            rates[answer["handle"]] = int(held["rate"]) * 8
    return rates


# --- classes that share a link's rate: which are possible, and which traffic each receives --------

MOST_CLASSES = 8

FIRST_HANDLE = CLASS + 0xF
"""Handle of the first class below ``1:1``; the classes are ``1:10``, ``1:11`` …."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,15}")


class SharedQueue(msgspec.Struct):
    """One of a link's classes, with its queue."""

    asked: TrafficClass
    leaf: Leaf
    rate: int = 0
    """Guaranteed rate in bits per second, read back from the kernel."""

    def describe(self, link_rate: int) -> TrafficClass:
        """Return the class as the kernel has it, on a link with this rate in bits per second."""
        # The kernel keeps whole bytes per second.
        exact = abs(self.rate - link_rate * self.asked.share) <= 8
        share = self.asked.share if exact else self.rate / link_rate
        return replace(self.asked, share=share, qdisc=self.leaf.qdisc)


def check_classes(link: str, classes: Sequence[TrafficClass]) -> None:
    """Raise ``CommandError``, with the reason, for classes that can't share a link."""
    if len(classes) > MOST_CLASSES:
        raise CommandError(f"link {link}: at most {MOST_CLASSES} classes, not {len(classes)}")
    taken: dict[str, str] = {}
    names: set[str] = set()
    for each in classes:
        if not _NAME.fullmatch(each.name) or each.name in names:
            raise CommandError(
                f"link {link}: a class needs a unique, valid name, not {each.name!r}"
            )
        names.add(each.name)
        check(each, f"class {each.name}")
        for traffic in each.traffic:
            if (other := taken.setdefault(traffic, each.name)) != each.name:
                raise CommandError(f"{traffic!r} is in two classes: {other} and {each.name}")
    if (total := sum(each.share for each in classes)) > 1 + 1e-9:
        raise CommandError(f"link {link}: the shares add up to {total:.0%}, more than 100%")


def class_of(classes: Sequence[SharedQueue], kind: str, name: str) -> SharedQueue:
    """Return the class of some traffic: one that lists its name, else its kind, else the last."""
    for word in (name, kind):
        for each in classes:
            if word in each.asked.traffic:
                return each
    return classes[-1]


# --- u32 filters, tc-u32(8), which match the packets of some traffic and select their class -------
# Offsets are those of an IPv4 header without options (RFC 791), the only kind in the lab's traffic,
# and of the TCP, UDP or ICMP header after it.

Keys: TypeAlias = tuple[str, ...]
"""Conditions that a packet must all meet: ``VALUE/MASK+OFFSET``."""

LAST_PRIORITY = 0xFFFF
"""Priority of the last filter, which matches all remaining packets; lower numbers come first."""

MISSING = "class filters need the u32 classifier, which this kernel lacks (module cls_u32)"

_ETH_P_IP = 0x0800
_PLAIN_IPV4 = "0x45/0xff+0"
_EVERYTHING: Keys = ("0x0/0x0+0",)


class Selection(msgspec.Struct, frozen=True):
    """The packets of some traffic: its name, and the keys of its packets in either direction."""

    kind: str
    """Plural name of a kind of traffic."""
    name: str
    matches: tuple[Keys, ...]


def port_keys(protocol: int, address: str, port: int) -> tuple[Keys, Keys]:
    """Return the keys of packets to and from a port of a host that no other traffic uses.

    Only the first fragment of a packet has ports, so they miss the others.
    """
    host = f"0x{socket.inet_aton(address).hex()}/0xffffffff"
    to = (*protocol_keys(protocol), f"{host}+16", f"{port:#x}/0xffff+22")
    back = (*protocol_keys(protocol), f"{host}+12", f"{port:#x}/0xffff+20")
    return to, back


def protocol_keys(protocol: int) -> Keys:
    """Return the keys of all packets of a protocol, whose headers have no options."""
    return _PLAIN_IPV4, f"{protocol:#x}/0xff+9"


def filter_requests(index: int, priority: int, packets: Selection | None, target: int) -> list[Any]:
    """Return requests that direct packets into class ``target``; None means all packets."""
    matches = (_EVERYTHING,) if packets is None else packets.matches
    return [
        u32_filter(
            *(index, {"keys": list(keys), "target": target}),
            parent=ROOT,
            info=_filter_info(priority),
        )
        for keys in matches
    ]


def filter_removal(index: int, priority: int) -> Any:
    """Return the request that removes all filters of a priority."""
    return traffic_control(RTM_DELTFILTER, 0, index, (), parent=ROOT, info=_filter_info(priority))


def request_filters(routes: NetlinkSocket, requests: Iterable[Any]) -> None:
    """Send requests about filters. Raises ``UnsupportedError`` if the kernel has no u32."""
    try:
        routes.request(requests, "filter")
    except NetlinkError as error:
        if error.errno == errno.ENOENT:
            raise UnsupportedError(MISSING) from None
        raise


def filter_refusal() -> str:
    """Return why u32 filters can't be used here; empty if they can.

    A filter is tried on the loopback device of the caller's own, private namespace.
    """
    with NetlinkSocket() as routes:
        routes.request([_root(LOOPBACK, {})], "htb")
        try:
            request_filters(routes, filter_requests(LOOPBACK, LAST_PRIORITY, None, CLASS))
        except UnsupportedError:
            return "this kernel has no module cls_u32"
        except NetlinkError as error:
            return str(error)
        finally:
            gone = traffic_control(RTM_DELQDISC, 0, LOOPBACK, (), parent=TC_H_ROOT, handle=ROOT)
            routes.request([gone], "htb")
    return ""


def filter_priorities(routes: NetlinkSocket, index: int) -> set[int]:
    """Return the priorities of the filters that the kernel has on an interface."""
    answers = routes.dump(traffic_control(RTM_GETTFILTER, 0, index, (), parent=ROOT))
    return {answer["info"] >> 16 for answer in answers if answer["index"] == index}


def _filter_info(priority: int) -> int:
    return priority << 16 | socket.htons(_ETH_P_IP)

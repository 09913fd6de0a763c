"""Classes that share a link's rate, and the filters that lead traffic into them."""

from __future__ import annotations

import errno
import re
import socket
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import msgspec

from ccplay.errors import CommandError, UnsupportedError
from ccplay.lab.links.htb import CLASS, ROOT
from ccplay.lab.network.netlink import (
    RTM_DELQDISC,
    RTM_DELTFILTER,
    RTM_GETTFILTER,
    RTM_NEWQDISC,
    RTM_NEWTFILTER,
    TC_H_ROOT,
    cls_u32,
    sched_htb,
)
from ccplay.lab.network.rtnl import (
    CREATE,
    EXCLUSIVE,
    REPLACE,
    NetlinkError,
    RouteSocket,
    traffic_control,
)
from ccplay.lab.queues.qdiscs import LOOPBACK, Leaf
from ccplay.model.quantities import check
from ccplay.model.values import TrafficClass

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
        return msgspec.structs.replace(self.asked, share=share, qdisc=self.leaf.qdisc)


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


def choose(classes: Sequence[SharedQueue], kind: str, name: str) -> SharedQueue:
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
_TCP, _ICMP, _UDP = "0x6/0xff+9", "0x1/0xff+9", "0x11/0xff+9"
_EVERYTHING: Keys = ("0x0/0x0+0",)


class Packets(msgspec.Struct, frozen=True):
    """The packets of some traffic: its name, and the keys of its packets in either direction."""

    kind: str
    """Plural name of a kind of traffic; see ``model.traffic``."""
    name: str
    matches: tuple[Keys, ...]


def tcp_packets(kind: str, name: str, address: str, port: int) -> Packets:
    """Return the packets to and from a TCP port that no other traffic uses."""
    return Packets(kind, name, _both_ways(_TCP, address, port))


def udp_packets(name: str, address: str, port: int) -> Packets:
    """Return the packets to and from a UDP port, and those of iperf3's control connection.

    Only the first fragment of a packet has ports, so the filters miss the others.
    """
    udp = datagrams("udp", name, address, port)
    return Packets("udp", name, (*udp.matches, *_both_ways(_TCP, address, port)))


def datagrams(kind: str, name: str, address: str, port: int) -> Packets:
    """Return the packets to and from a UDP port that no other traffic uses."""
    return Packets(kind, name, _both_ways(_UDP, address, port))


def _both_ways(protocol: str, address: str, port: int) -> tuple[Keys, Keys]:
    host = f"0x{socket.inet_aton(address).hex()}/0xffffffff"
    there = (_PLAIN_IPV4, protocol, f"{host}+16", f"{port:#x}/0xffff+22")
    back = (_PLAIN_IPV4, protocol, f"{host}+12", f"{port:#x}/0xffff+20")
    return there, back


def echo_packets(name: str, identifier: int) -> Packets:
    """Return the echo requests and replies of one ping(8), by their identifier (RFC 792)."""
    return Packets("pings", name, ((_PLAIN_IPV4, _ICMP, f"{identifier:#x}/0xffff+24"),))


def direct(index: int, priority: int, packets: Packets | None, target: int) -> list[Any]:
    """Return requests that direct packets into class ``target``; None means all packets."""
    matches = (_EVERYTHING,) if packets is None else packets.matches
    return [
        traffic_control(
            RTM_NEWTFILTER,
            CREATE | EXCLUSIVE,
            index,
            (
                ("TCA_KIND", "u32"),
                ("TCA_OPTIONS", cls_u32.get_parameters({"keys": list(keys), "target": target})),
            ),
            parent=ROOT,
            info=_info(priority),
        )
        for keys in matches
    ]


def remove(index: int, priority: int) -> Any:
    """Return the request that removes all filters of a priority."""
    return traffic_control(RTM_DELTFILTER, 0, index, (), parent=ROOT, info=_info(priority))


def carry_out(routes: RouteSocket, requests: Iterable[Any]) -> None:
    """Send requests about filters. Raises ``UnsupportedError`` if the kernel has no u32."""
    try:
        routes.request(requests, "filter")
    except NetlinkError as error:
        if error.errno == errno.ENOENT:
            raise UnsupportedError(MISSING) from None
        raise


def refusal() -> str:
    """Return why u32 filters can't be used here; empty if they can.

    A filter is tried on the loopback device of the caller's own, private namespace.
    """
    with RouteSocket() as routes:
        attributes = (("TCA_KIND", "htb"), ("TCA_OPTIONS", sched_htb.get_parameters({})))
        root = {"parent": TC_H_ROOT, "handle": ROOT}
        routes.request(
            [traffic_control(RTM_NEWQDISC, CREATE | REPLACE, LOOPBACK, attributes, **root)], "htb"
        )
        try:
            carry_out(routes, direct(LOOPBACK, LAST_PRIORITY, None, CLASS))
        except UnsupportedError:
            return "this kernel has no module cls_u32"
        except NetlinkError as error:
            return str(error)
        finally:
            routes.request([traffic_control(RTM_DELQDISC, 0, LOOPBACK, (), **root)], "htb")
    return ""


def priorities(routes: RouteSocket, index: int) -> set[int]:
    """Return the priorities of the filters that the kernel has on an interface."""
    answers = routes.dump(traffic_control(RTM_GETTFILTER, 0, index, (), parent=ROOT))
    return {answer["info"] >> 16 for answer in answers if answer["index"] == index}


def _info(priority: int) -> int:
    return priority << 16 | socket.htons(_ETH_P_IP)

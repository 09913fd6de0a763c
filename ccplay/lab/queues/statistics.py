"""Counters of the queue disciplines of one namespace, by one RTM_GETQDISC dump.

Protocol: rtnetlink(7), include/uapi/linux/{rtnetlink,gen_stats,pkt_sched}.h. Of each interface
the queues under study are read: the leaves below the root's classes, or the root alone.
"""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import NamedTuple

from ccplay.lab.network import dumps
from ccplay.lab.queues import reported
from ccplay.lab.queues.attributes import U32, walk
from ccplay.lab.queues.reading import PASSAGE

_NETLINK_ROUTE = 0
_RTM_NEWQDISC, _RTM_GETQDISC = 36, 38

_TCA_KIND, _TCA_STATS2 = 1, 7
_STATS_BASIC, _STATS_QUEUE, _STATS_APP = 1, 3, 4

ROOT = 0xFFFFFFFF
"""Parent of a queue that is an interface's root (``TC_H_ROOT``)."""

_ATTRIBUTES = 16 + 20
"""Bytes before the attributes: ``nlmsghdr`` and ``tcmsg``."""

_MESSAGE = struct.Struct("=IH14xiII")
"""Format of a message: length and type; interface index, handle and parent of its ``tcmsg``."""

_BASIC = struct.Struct("=QI")
_QUEUE = struct.Struct("=IIIII")

_REQUEST = struct.pack("=IHHII20x", 36, _RTM_GETQDISC, dumps.REQUEST, 1, 0)

_RTM_NEWTCLASS, _RTM_GETTCLASS = 40, 42
_CLASS_REQUEST = struct.Struct("=IHHII4xi12x")
"""Request for the classes of one interface; the dump of disciplines covers all interfaces."""
_CLASS_OWN = {"htb_lends_packets": 0, "htb_borrows_packets": 4}
"""Offsets in ``tc_htb_xstats`` of the packets sent at the class's own rate, and above it."""

_MARKS: dict[str, tuple[int, ...]] = {
    "codel": (24, 32),
    "fq_codel": (12, 28),
    "red": (12,),
    "choke": (12,),
    "sfb": (20,),
    "pie": (36,),
    "fq_pie": (16,),
    "fq": (80,),
    "dualpi2": (24,),
}
"""Offsets in ``tc_KIND_xstats`` of the numbers of packets marked by ECN, or for a CE threshold."""

_NOTHING: Mapping[str, int] = MappingProxyType({})


class QdiscCounters(NamedTuple):
    """The kernel's counters of one queue since it was installed."""

    handle: int
    kind: str
    bytes: int
    packets: int
    qlen: int
    backlog: int
    drops: int
    requeues: int
    overlimits: int
    ecn_marks: int | None
    own: Mapping[str, int] = _NOTHING
    """Statistics that the discipline reports, with the names of ``Sweep.queue_own``."""


class QdiscSocket:
    """An open rtnetlink socket of one namespace."""

    def __init__(self, open_socket: Callable[[int, int, int], socket.socket]) -> None:
        """Open the socket by ``Namespace.socket``; in this namespace, by ``socket.socket``."""
        self._socket = open_socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_ROUTE)
        dumps.set_timeout(self._socket)
        self._layouts: dict[bytes, _Layout] = {}

    def dump(self, interfaces: Collection[int]) -> dict[int, dict[int, QdiscCounters]]:
        """Return the counters of the queues under study by index of the interface and by class.

        Omits interfaces that are gone or have no discipline. Raises ``OSError``.
        """
        found: dict[int, dict[int, QdiscCounters]] = {}
        roots: dict[int, int] = {}
        self._socket.send(_REQUEST)
        while self._take(self._socket.recv(1 << 16), interfaces, roots, found):
            pass
        for interface, queues in found.items():
            if len(queues.keys() - {PASSAGE}) > 1:
                self._take_classes(interface, queues)
        return found

    def _take_classes(self, interface: int, queues: dict[int, QdiscCounters]) -> None:
        """Add to each queue HTB's statistics of the class above it."""
        self._socket.send(_CLASS_REQUEST.pack(36, _RTM_GETTCLASS, dumps.REQUEST, 1, 0, interface))
        more = True
        while more:
            data, position = self._socket.recv(1 << 16), 0
            while more and position < len(data):
                length, message = struct.unpack_from("=IH", data, position)
                if message != _RTM_NEWTCLASS:
                    more = dumps.continues(data, position, message, "rtnetlink")
                    break
                _, _, _, handle, _ = _MESSAGE.unpack_from(data, position)
                if (queue := queues.get(handle)) is not None:
                    own = _class_own(data, position, length)
                    queues[handle] = queue._replace(own={**queue.own, **own})
                position += (length + 3) & ~3

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _take(
        self,
        data: bytes,
        interfaces: Collection[int],
        roots: dict[int, int],
        found: dict[int, dict[int, QdiscCounters]],
    ) -> bool:
        """Unpack one datagram; return whether more follow."""
        position, end = 0, len(data)
        while position < end:
            length, message = struct.unpack_from("=IH", data, position)
            if message != _RTM_NEWQDISC:
                return dumps.continues(data, position, message, "rtnetlink")
            _, _, interface, handle, parent = _MESSAGE.unpack_from(data, position)
            if interface in interfaces:
                # The kernel lists the root of an interface before the queues below it.
                if parent == ROOT:
                    roots[interface] = handle
                    found[interface] = {parent: self._read(data, position, length, handle)}
                elif interface in roots and parent >> 16 == roots[interface] >> 16:
                    found[interface].pop(ROOT, None)
                    found[interface][parent] = self._read(data, position, length, handle)
            position += (length + 3) & ~3
        return True

    def _read(self, data: bytes, position: int, length: int, handle: int) -> QdiscCounters:
        # Messages of equal length and kind have their attributes at the same offsets.
        key = data[position : position + 4] + data[position + _ATTRIBUTES : position + 48]
        layout = self._layouts.get(key)
        if layout is None:
            layout = self._layouts[key] = _learn(data, position, length)
        size, packets = _BASIC.unpack_from(data, position + layout.basic)
        qlen, backlog, drops, requeues, overlimits = _QUEUE.unpack_from(
            data, position + layout.queue
        )
        marks = None
        if layout.kind == "cake":
            marks = reported.cake_marks(data, position + layout.app, position + layout.app_end)
        elif layout.marks:
            marks = sum(U32.unpack_from(data, position + at)[0] for at in layout.marks)
        own = {name: U32.unpack_from(data, position + at)[0] for name, at in layout.own}
        own |= reported.more(layout.kind, data, position + layout.app, position + layout.app_end)
        counts = (size, packets, qlen, backlog, drops, requeues, overlimits)
        return QdiscCounters(handle, layout.kind, *counts, marks, own)


class _Layout(NamedTuple):
    """Offsets of the numbers from the beginning of a message."""

    kind: str
    basic: int
    queue: int
    app: int
    app_end: int
    marks: tuple[int, ...]
    own: tuple[tuple[str, int], ...]


def _learn(data: bytes, position: int, length: int) -> _Layout:
    attributes = walk(data, position + _ATTRIBUTES, position + length)
    begin, end = attributes[_TCA_KIND]
    kind = data[begin:end].rstrip(b"\0").decode()
    if _TCA_STATS2 not in attributes:
        raise OSError(errno.EPROTO, f"rtnetlink: no statistics of qdisc {kind!r}")
    stats = walk(data, *attributes[_TCA_STATS2])
    app, app_end = stats.get(_STATS_APP, (position, position))
    marks = tuple(app - position + at for at in _MARKS.get(kind, ()) if app + at + 4 <= app_end)
    own = tuple(
        (name, app - position + at)
        for name, at in reported.WORDS.get(kind, {}).items()
        if app + at + 4 <= app_end
    )
    return _Layout(
        kind,
        stats[_STATS_BASIC][0] - position,
        stats[_STATS_QUEUE][0] - position,
        app - position,
        app_end - position,
        marks,
        own,
    )


def _class_own(data: bytes, position: int, length: int) -> dict[str, int]:
    attributes = walk(data, position + _ATTRIBUTES, position + length)
    stats = walk(data, *attributes.get(_TCA_STATS2, (0, 0)))
    begin, end = stats.get(_STATS_APP, (0, 0))
    known = {name: begin + at for name, at in _CLASS_OWN.items() if begin + at + 4 <= end}
    return {name: U32.unpack_from(data, at)[0] for name, at in known.items()}

"""Counters of the queue disciplines of one namespace, by one RTM_GETQDISC dump.

Protocol: rtnetlink(7), include/uapi/linux/{rtnetlink,gen_stats,pkt_sched}.h. Of each interface
the queues under study are read: the leaves below the root's classes, or the root alone.

The queues of one link in a sweep, and how exactly it keeps its rate.
"""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from types import MappingProxyType
from typing import NamedTuple, TypeAlias, cast

import msgspec

from ccplay.lab import netlink
from ccplay.lab.netlink import DUMP_REQUEST, U32, walk
from ccplay.lab.rtnl import RTM_GETQDISC, RTM_GETTCLASS, RTM_NEWQDISC, RTM_NEWTCLASS, TC_H_ROOT
from ccplay.model.samples import QdiscSamples

# --- own values of the kernel's disciplines, and their offsets in the kernel's statistics ---------
# ``include/uapi/linux/pkt_sched.h``. Names are those of ``Sweep.queue_own``; ccplay's disciplines
# in software use the same names for the same values.

WORDS: Mapping[str, Mapping[str, int]] = {
    "codel": {"codel_count": 4, "codel_ldelay_us": 12, "codel_dropping": 28},
    "fq_codel": {"fq_codel_new_flows": 20, "fq_codel_old_flows": 24, "fq_codel_memory_bytes": 32},
    "red": {"red_early_packets": 0, "red_pdrop_packets": 4},
    "choke": {"choke_early_packets": 0, "choke_matched_packets": 16},
    "pie": {"pie_delay_us": 8},
    "fq_pie": {"fq_pie_new_flows": 24, "fq_pie_old_flows": 28, "fq_pie_memory_bytes": 32},
    "dualpi2": {"dualpi2_classic_delay_us": 4, "dualpi2_l4s_delay_us": 8},
    "fq": {"fq_flows": 64, "fq_inactive_flows": 68, "fq_throttled_flows": 72},
}
"""Offsets of 32-bit words in ``tc_KIND_xstats``, by discipline."""

STRUCTURED = frozenset({"pie", "dualpi2", "cake"})
"""Disciplines whose statistics are not only words; see ``more``."""

_PIE = struct.Struct("=Q8x4x4x4x4x4x")
"""Format of ``struct tc_pie_xstats`` since Linux 5.1, which begins with the probability."""

_TINS = 10
"""Attribute ``TCA_CAKE_STATS_TIN_STATS``, with an attribute for each tin, lowest priority first."""
_MARKS, _BACKLOG, _SPARSE, _BULK = 8, 11, 21, 22
"""Attributes of a tin: ``TCA_CAKE_TIN_STATS_*``; sparse flows are new, bulk flows the others."""
_NAMES = {
    1: ("best_effort",),
    3: ("bulk", "best_effort", "voice"),
    4: ("bulk", "best_effort", "video", "voice"),
}
"""Names of tins by how many there are: besteffort, diffserv3, diffserv4; in others by number."""

_NOTHING: Mapping[str, int] = MappingProxyType({})


def more(kind: str, data: bytes, at: int, end: int) -> Mapping[str, int]:
    """Return the own values of a discipline that are not among its ``WORDS``."""
    match kind:
        case "pie" if end - at >= _PIE.size:
            (probability,) = _PIE.unpack_from(data, at)
            return {"pie_prob_1000000": probability * 10**6 >> 64}
        case "dualpi2" if end - at >= U32.size:
            (probability,) = U32.unpack_from(data, at)
            return {"dualpi2_prob_1000000": probability * 10**6 >> 32}
        case "cake":
            return _tins(data, at, end)
    return _NOTHING


def cake_marks(data: bytes, at: int, end: int) -> int:
    """Return the sum of the marks of all of cake's tins."""
    return sum(_number(data, tin, _MARKS) for tin in _each_tin(data, at, end))


def _tins(data: bytes, at: int, end: int) -> Mapping[str, int]:
    tins = _each_tin(data, at, end)
    names = _NAMES.get(len(tins), tuple(f"tin{number}" for number in range(len(tins))))
    found = {}
    for name, tin in zip(names, tins, strict=True):
        found[f"cake_{name}_bytes"] = _number(data, tin, _BACKLOG)
        flows = _number(data, tin, _SPARSE) + _number(data, tin, _BULK)
        found[f"cake_{name}_flows"] = flows
    return found


def _each_tin(data: bytes, at: int, end: int) -> list[dict[int, tuple[int, int]]]:
    tins = walk(data, at, end).get(_TINS)
    return [walk(data, *each) for each in walk(data, *tins).values()] if tins else []


def _number(data: bytes, tin: Mapping[int, tuple[int, int]], attribute: int) -> int:
    place = tin.get(attribute)
    return int(U32.unpack_from(data, place[0])[0]) if place else 0


# --- the counters of a discipline in software, in the form of the kernel's ------------------------

PASSAGE = 0x1_0002
"""Handle of the class below HTB's root for packets that have waited in software."""


class Counts(NamedTuple):
    """Counters of a queue in software since its start; ``qlen`` and ``backlog`` are current."""

    qlen: int = 0
    backlog: int = 0
    drops: int = 0
    marks: int = 0
    packets: int = 0
    """Number of packets sent."""
    bytes: int = 0
    """Number of bytes sent."""
    sojourn_us: int = 0
    """Sum of the sojourn times of the packets sent, in microseconds."""
    busy: int = 0
    """Whether a discipline decides, rather than packets only passing."""


class SoftwareReading(NamedTuple):
    """A reading of a queue in software."""

    kind: str
    generation: int
    """Number that changes when the counters restart."""
    counts: Counts
    statistics: dict[str, int]


# --- counters of the queue disciplines of one namespace, by one RTM_GETQDISC dump -----------------

_TCA_KIND, _TCA_STATS2 = 1, 7
_STATS_BASIC, _STATS_QUEUE, _STATS_APP = 1, 3, 4

_ATTRIBUTES = 16 + 20
"""Bytes before the attributes: ``nlmsghdr`` and ``tcmsg``."""

_MESSAGE = struct.Struct("=IH14xiII")
"""Format of a message: length and type; interface index, handle and parent of its ``tcmsg``."""

_HEAD = 52
"""Bytes at the beginning of a message that decide its layout: its length, whose discipline it is
about, and the discipline's kind."""

_REQUEST = struct.pack("=IHHII20x", 36, RTM_GETQDISC, DUMP_REQUEST, 1, 0)

_CLASS_REQUEST = struct.Struct("=IHHII4xi12x")
"""Request for the classes of one interface; the dump of disciplines covers all interfaces."""
_CLASS_OWN = {"htb_lends_packets": 0, "htb_borrows_packets": 4}
"""Offsets in ``tc_htb_xstats`` of the packets sent at the class's own rate, and above it."""

_STATISTICS_MARKS: dict[str, tuple[int, ...]] = {
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


class QdiscCounters(NamedTuple):
    """The kernel's counters of one queue since it was installed."""

    handle: int
    kind: str
    bytes: int = 0
    packets: int = 0
    qlen: int = 0
    backlog: int = 0
    drops: int = 0
    requeues: int = 0
    overlimits: int = 0
    ecn_marks: int | None = None
    own: Mapping[str, int] = _NOTHING
    """Statistics that the discipline reports, with the names of ``Sweep.queue_own``."""


class QdiscSocket:
    """An open rtnetlink socket of one namespace."""

    def __init__(self, open_socket: Callable[[int, int, int], socket.socket]) -> None:
        """Open the socket by ``Namespace.socket``; in this namespace, by ``socket.socket``."""
        self._socket = open_socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        netlink.set_timeout(self._socket)
        self._interfaces: tuple[int, ...] = ()
        self._pages: list[_Page] = []
        """Layouts of the datagrams of the last dump."""

    def dump(self, interfaces: Collection[int]) -> dict[int, dict[int, QdiscCounters]]:
        """Return the counters of the queues under study by index of the interface and by class.

        Omits interfaces that are gone or have no discipline. Raises ``OSError``.
        """
        if (wanted := tuple(interfaces)) != self._interfaces:
            self._interfaces, self._pages = wanted, []
        self._socket.send(_REQUEST)
        datagrams, pages, known, more = list[bytes](), iter(self._pages), True, True
        while more:
            datagrams.append(data := self._socket.recv(1 << 16))
            page = next(pages, None)
            if page is not None and page.fits(data):
                more = not page.is_last
            else:
                known, more = False, _continues(data)
        if not known:
            self._pages = _learn(datagrams, wanted)
        found: dict[int, dict[int, QdiscCounters]] = {}
        for page, data in zip(self._pages, datagrams, strict=True):
            page.read(data, found)
        for interface, queues in found.items():
            if len(queues) > 1 and len(queues.keys() - {PASSAGE}) > 1:
                self._read_classes(interface, queues)
        return found

    def _read_classes(self, interface: int, queues: dict[int, QdiscCounters]) -> None:
        """Add to each queue HTB's statistics of the class above it."""
        self._socket.send(_CLASS_REQUEST.pack(36, RTM_GETTCLASS, DUMP_REQUEST, 1, 0, interface))
        more = True
        while more:
            data = self._socket.recv(1 << 16)
            for position, length in _messages(data, RTM_NEWTCLASS):
                _, _, _, handle, _ = _MESSAGE.unpack_from(data, position)
                if (queue := queues.get(handle)) is not None:
                    own = _class_own(data, position, length)
                    queues[handle] = queue._replace(own={**queue.own, **own})
            more = _continues(data, RTM_NEWTCLASS)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


class _Queue(NamedTuple):
    """A queue under study in a datagram, and its numbers' places among those of the datagram."""

    interface: int
    parent: int
    handle: int
    kind: str
    counts: Callable[[tuple[int, ...]], tuple[int, ...]]
    """Function that picks bytes, packets, qlen, backlog, drops, requeues and overlimits."""
    marks: tuple[int, ...]
    own: tuple[tuple[str, int], ...]
    app: tuple[int, int]
    """Beginning and end of the discipline's own statistics in the datagram."""

    def counters(self, numbers: tuple[int, ...], data: bytes) -> QdiscCounters:
        """Return the queue's counters, given its datagram and all numbers in it."""
        own, marks = _NOTHING, None
        if self.marks:
            marks = sum(numbers[each] for each in self.marks)
        if self.own:
            own = {name: numbers[each] for name, each in self.own}
        if self.kind in STRUCTURED:
            own = {**own, **more(self.kind, data, *self.app)}
            if self.kind == "cake":
                marks = cake_marks(data, *self.app)
        return QdiscCounters._make((self.handle, self.kind, *self.counts(numbers), marks, own))


class _Page:
    """The layout of one datagram of a dump, which stays the same until a discipline changes.

    One call of a struct thus reads all numbers of the datagram, whatever the number of queues, and
    one the beginnings of their messages, which show that the layout is still the same.
    """

    def __init__(
        self, data: bytes, heads: Sequence[int], queues: Sequence[tuple[int, int]]
    ) -> None:
        """Learn from a datagram, given the positions of messages that its layout depends on.

        ``queues`` are positions and lengths of the messages about queues under study.
        """
        self._size = len(data)
        self.is_last = not _continues(data)
        fixed = dict.fromkeys(heads, f"{_HEAD}s")
        if self.is_last:
            # The end of a dump may report an error.
            end = sum((length + 3) & ~3 for _, length in _messages(data))
            fixed[end] = f"{len(data) - end}s"
        self._heads = _picking(fixed, self._size)
        self._expected = self._heads.unpack(data)
        found = [_find(data, *each) for each in queues]
        fields = {at: code for _, offsets in found for at, code in offsets.items()}
        places = {at: place for place, at in enumerate(sorted(fields))}
        self._numbers = _picking(fields, self._size)
        self._queues = [make(places) for make, _ in found]

    def fits(self, data: bytes) -> bool:
        """Return whether a datagram has this layout."""
        return len(data) == self._size and self._heads.unpack(data) == self._expected

    def read(self, data: bytes, found: dict[int, dict[int, QdiscCounters]]) -> None:
        """Add the counters of the datagram's queues to those ``found``."""
        numbers = self._numbers.unpack(data)
        for each in self._queues:
            counters = each.counters(numbers, data)
            if (queues := found.get(each.interface)) is None:
                found[each.interface] = {each.parent: counters}
            else:
                queues[each.parent] = counters


def _picking(fields: Mapping[int, str], size: int) -> struct.Struct:
    """Return the struct of ``size`` bytes with fields at these offsets, in their order."""
    layout, at = "=", 0
    for offset in sorted(fields):
        layout += f"{offset - at}x{fields[offset]}"
        at = offset + struct.calcsize(f"={fields[offset]}")
    return struct.Struct(f"{layout}{size - at}x")


def _learn(datagrams: Sequence[bytes], interfaces: Collection[int]) -> list[_Page]:
    """Return the layouts of the datagrams of a dump."""
    roots: dict[int, int] = {}
    chosen: dict[int, dict[int, tuple[int, int, int]]] = {}
    heads: list[list[int]] = [[] for _ in datagrams]
    for number, data in enumerate(datagrams):
        for position, length in _messages(data):
            _, _, interface, handle, parent = _MESSAGE.unpack_from(data, position)
            if interface not in interfaces:
                continue
            heads[number].append(position)
            # The kernel lists the root of an interface before the queues below it.
            if parent == TC_H_ROOT:
                roots[interface], chosen[interface] = handle, {}
            elif interface not in roots or parent >> 16 != roots[interface] >> 16:
                continue
            else:
                chosen[interface].pop(TC_H_ROOT, None)
            chosen[interface][parent] = (number, position, length)
    places = [place for queues in chosen.values() for place in queues.values()]
    return [
        _Page(data, heads[number], [each[1:] for each in places if each[0] == number])
        for number, data in enumerate(datagrams)
    ]


def _messages(data: bytes, kind: int = RTM_NEWQDISC) -> Iterator[tuple[int, int]]:
    """Yield position and length of each message of a datagram up to the first of another kind."""
    for message, start, end in netlink.messages(data):
        if message != kind:
            return
        yield start, end - start


def _continues(data: bytes, kind: int = RTM_NEWQDISC) -> bool:
    """Return whether more datagrams follow. Raises ``OSError`` if the kernel reports an error."""
    for message, start, _ in netlink.messages(data):
        if message != kind:
            return netlink.continues(data, start, message, "rtnetlink")
    return True


def _find(
    data: bytes, position: int, length: int
) -> tuple[Callable[[Mapping[int, int]], _Queue], dict[int, str]]:
    """Return the offsets of a message's numbers in its datagram, each with its format.

    Before them stands a function that makes the queue, given the numbers' places by offset.
    """
    _, _, interface, handle, parent = _MESSAGE.unpack_from(data, position)
    attributes = walk(data, position + _ATTRIBUTES, position + length)
    begin, end = attributes[_TCA_KIND]
    kind = data[begin:end].rstrip(b"\0").decode()
    if _TCA_STATS2 not in attributes:
        raise OSError(errno.EPROTO, f"rtnetlink: no statistics of qdisc {kind!r}")
    stats = walk(data, *attributes[_TCA_STATS2])
    basic, queue = stats[_STATS_BASIC][0], stats[_STATS_QUEUE][0]
    app, app_end = stats.get(_STATS_APP, (position, position))
    counts = [basic, basic + 8, *range(queue, queue + 20, 4)]
    marks = [app + at for at in _STATISTICS_MARKS.get(kind, ()) if app + at + 4 <= app_end]
    words = WORDS.get(kind, {})
    own = {name: app + at for name, at in words.items() if app + at + 4 <= app_end}

    def make(places: Mapping[int, int]) -> _Queue:
        return _Queue(
            *(interface, parent, handle, kind),
            counts=itemgetter(*(places[each] for each in counts)),
            marks=tuple(places[each] for each in marks),
            own=tuple((name, places[each]) for name, each in own.items()),
            app=(app, app_end),
        )

    return make, {basic: "Q"} | dict.fromkeys([*counts[1:], *marks, *own.values()], "I")


def _class_own(data: bytes, position: int, length: int) -> dict[str, int]:
    attributes = walk(data, position + _ATTRIBUTES, position + length)
    stats = walk(data, *attributes.get(_TCA_STATS2, (0, 0)))
    begin, end = stats.get(_STATS_APP, (0, 0))
    known = {name: begin + at for name, at in _CLASS_OWN.items() if begin + at + 4 <= end}
    return {name: U32.unpack_from(data, at)[0] for name, at in known.items()}


# --- totals of a queue's counters, which keep growing when the discipline is replaced -------------

Totals: TypeAlias = tuple[int, int, int, int, int, int]


class Monotonic:
    """The totals of one queue's counters."""

    __slots__ = ("_before", "_last", "total")

    def __init__(self) -> None:
        self.total: Totals = (0, 0, 0, 0, 0, 0)
        """Bytes, packets, drops, requeues, overlimits and marks of all disciplines read so far."""
        self._last: QdiscCounters | None = None
        self._before = (0, 0, 0, 0, 0, 0)

    def add(self, now: QdiscCounters) -> Totals:
        """Add a reading and return the ``total``."""
        last = self._last
        if last is not None and (
            now.handle != last.handle
            or now.kind != last.kind
            or now.bytes < last.bytes
            or now.drops < last.drops
        ):
            self._before = self._sum(last)
        self._last = now
        self.total = self._sum(now)
        return self.total

    def _sum(self, counters: QdiscCounters) -> Totals:
        size, packets, drops, requeues, overlimits, marks = self._before
        return (
            size + counters.bytes,
            packets + counters.packets,
            drops + counters.drops,
            requeues + counters.requeues,
            overlimits + counters.overlimits,
            marks + (counters.ecn_marks or 0),
        )


# --- the queues of one link in a sweep: a row for the link, and one for each of its classes -------

Row: TypeAlias = tuple[str, str, int, int, int, int | None, int, int, int, int]
"""The fields of ``QdiscSamples`` in their order."""

_PASSAGE, _SOFTWARE = "passage", "software"
"""Names of the counters of packets that have waited in software, and of the queue in software."""

_OWN = ""
"""Name of the counters of the link's own queue, which belongs to no class."""


class LinkQueues:
    """Totals of a link's queues, removed ones included, so that the link's counters only grow."""

    def __init__(self, link: str) -> None:
        self.names: dict[int, str] = {}
        """Names of classes by handle; empty if the link has one queue."""
        self.marks: Callable[[], int] | None = None
        """Function that returns how many packets were marked so far in front of the link's
        queues."""
        self.software: Callable[[], SoftwareReading | None] | None = None
        """Function that reads the discipline in software in front of the link; None if there is
        none."""
        self._read: SoftwareReading | None = None
        self._before: SoftwareReading | None = None
        self._link = link
        self._counters: dict[str, Monotonic] = {}

    def rows(self, found: Mapping[int, QdiscCounters]) -> list[Row]:
        """Return the rows of a reading; the link's own comes first."""
        if not self.names:
            return [self._row_of_one(found)]
        named = [(name, found[each]) for each, name in self.names.items() if each in found]
        if not named:
            return []
        own = [self._count(name, now) for name, now in named]
        readings = [now for _, now in named]
        rows = [self._own_row("htb", readings)]
        for (name, now), counter in zip(named, own, strict=True):
            rows.append(_row(f"{self._link} {name}", now.kind, (now,), (counter,)))
        return rows

    def own(self, found: Mapping[int, QdiscCounters]) -> list[Mapping[str, int]]:
        """Return the own values of each row's discipline.

        Disciplines of classes are not added up: the link's own row is empty.
        """
        if not self.names:
            read = self._read
            return [_kernels(found).own if read is None else self._statistics(read)]
        named = [found[each].own for each in self.names if each in found]
        return [{}, *named] if named else []

    def _row_of_one(self, found: Mapping[int, QdiscCounters]) -> Row:
        """Return the row of a link with one queue: the kernel's plus one in software before it.

        Packets that have waited in software pass a separate queue in the kernel, which counts them
        as sent.
        """
        kernels = _kernels(found)
        self._count(_OWN, kernels)
        readings = [kernels]
        if (passage := found.get(PASSAGE)) is not None and passage is not kernels:
            self._count(_PASSAGE, passage)
            readings.append(passage)
        self._read = self.software() if self.software is not None else None
        if self._read is None:
            return self._own_row(kernels.kind, readings)
        software = _counters(self._read)
        # The counters continue when another discipline takes over: another kind is no restart.
        self._count(_SOFTWARE, software._replace(kind=_SOFTWARE))
        return self._own_row(software.kind, [*readings, software])

    def _statistics(self, read: SoftwareReading) -> Mapping[str, int]:
        """Return the own values of a discipline in software, and the mean sojourn time.

        The mean is that of the packets sent since the last reading.
        """
        before, self._before = self._before, read
        if before is None or before.generation != read.generation:
            return read.statistics
        packets = read.counts.packets - before.counts.packets
        if packets <= 0:
            return read.statistics
        waited = (read.counts.sojourn_us - before.counts.sojourn_us) // packets
        return {**read.statistics, "queue_sojourn_us": waited}

    def _own_row(self, kind: str, readings: Sequence[QdiscCounters]) -> Row:
        marks = None if self.marks is None else self.marks()
        return _row(self._link, kind, readings, self._counters.values(), marks)

    def _count(self, name: str, now: QdiscCounters) -> Monotonic:
        counter = self._counters.get(name)
        if counter is None:
            counter = self._counters[name] = Monotonic()
        counter.add(now)
        return counter


def _kernels(found: Mapping[int, QdiscCounters]) -> QdiscCounters:
    """Return the kernel's queue of a link without classes, not that for packets from software."""
    if len(found) == 1:
        return next(iter(found.values()))
    return next(now for each, now in found.items() if each != PASSAGE)


def _counters(read: SoftwareReading) -> QdiscCounters:
    """Return the counters of a discipline in software, without what the kernel counts as sent."""
    counts = read.counts
    return QdiscCounters(
        handle=read.generation,
        kind=read.kind,
        qlen=counts.qlen,
        backlog=counts.backlog,
        drops=counts.drops,
        ecn_marks=counts.marks,
    )


def _row(
    name: str,
    kind: str,
    now: Sequence[QdiscCounters],
    counters: Iterable[Monotonic],
    marks_before: int | None = None,
) -> Row:
    """Return a row of sums; ``marks_before`` packets were marked in front of the queues."""
    totals = [each.total for each in counters]
    if len(now) == 1 == len(totals):
        # Most links have one queue, and adding up takes longer than reading it.
        only, total = now[0], totals[0]
        backlog, qlen, counts_marks = only.backlog, only.qlen, only.ecn_marks is not None
    else:
        total = cast("Totals", tuple(map(sum, zip(*totals, strict=True))))
        backlog, qlen = sum(each.backlog for each in now), sum(each.qlen for each in now)
        counts_marks = any(each.ecn_marks is not None for each in now)
    size, packets, drops, requeues, overlimits, marks = total
    if marks_before is not None:
        marks, counts_marks = marks + marks_before, True
    own_marks = marks if counts_marks else None
    return (name, kind, backlog, qlen, drops, own_marks, overlimits, requeues, size, packets)


# --- accuracy of bottleneck rates, measured while packets were always waiting ---------------------

_FRAME = 1514
_FRAMES = 100
"""Fewest frames over which a rate is measured, so that one more or less is at most 1 %."""

_LEAST_S = 0.5
"""Shortest interval in seconds: a sweep reads a queue up to 2 ms late, which is 0.4 % of it."""

_LATEST_S = 0.002

_SURPLUS = 1.25
"""Factor by which a backlog must exceed what can leave until the next sweep, so that the queue was
never empty in between."""

_OWN_RATE = ("tbf", "cake", "cake.py")
"""Disciplines with a rate of their own, which may be lower than the link's."""


class _Busy(msgspec.Struct):
    """An interval in which a queue was never empty."""

    rate: int
    since: float
    bytes: int
    """Bytes that had left by the interval's beginning."""
    last: float
    backlog: int


class DrainMeter:
    """Measures from sweeps: call ``take`` for each, and read ``ratio`` from time to time."""

    def __init__(self) -> None:
        self._busy: dict[str, _Busy] = {}
        self._ratios: list[float] = []

    def add_sweep(
        self, t: float, took_s: float, samples: QdiscSamples | None, rates: Mapping[str, int]
    ) -> None:
        """Process a sweep that began at ``t`` and took ``took_s``.

        ``rates`` are those of links, in bits per second.
        """
        if samples is None:
            return
        kinds = dict(zip(samples.link, samples.kind, strict=True))
        rows = zip(samples.link, samples.backlog, samples.bytes, strict=True)
        for link, backlog, size in rows:
            rate = rates.get(link, 0)
            shaped = any(
                kinds[each] in _OWN_RATE for each in kinds if each.partition(" ")[0] == link
            )
            if took_s > _LATEST_S or not rate or shaped:
                self._busy.pop(link, None)
            else:
                self._add_period(link, rate, _Busy(rate, t, size, t, backlog))

    def ratio(self) -> float | None:
        """Return the worst ratio of measured to set rate since the last call; None without any.

        The worst is the one farthest from 1.
        """
        worst = max(self._ratios, key=lambda each: abs(each - 1), default=None)
        self._ratios.clear()
        return worst

    def _add_period(self, link: str, rate: int, now: _Busy) -> None:
        busy = self._busy.get(link)
        if busy is None or busy.rate != rate:
            self._busy[link] = now
            return
        drained = rate / 8 * (now.last - busy.last)
        if busy.backlog < _SURPLUS * drained:
            self._busy[link] = now
            return
        busy.last, busy.backlog = now.last, now.backlog
        length = now.last - busy.since
        expected = rate / 8 * length
        if length >= _LEAST_S and expected >= _FRAMES * _FRAME:
            self._ratios.append((now.bytes - busy.bytes) / expected)
            self._busy[link] = now

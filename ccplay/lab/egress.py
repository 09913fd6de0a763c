"""The sending end of a link: its rate, and its queue or classes, in the kernel or in software.

An interface may have a marker, which sets CE beyond a threshold. It is attached through a BPF link
of traffic control (tcx, include/uapi/linux/bpf.h), which needs neither classifier nor discipline,
and ends with the process that holds it.
"""

from __future__ import annotations

import ctypes
import itertools
import mmap
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ccplay.bpf.support import Lack, lack
from ccplay.errors import CommandError, LabError, UnsupportedError
from ccplay.lab import htb, qdiscs, rtnl
from ccplay.lab.delay_line import Impairment
from ccplay.lab.htb import FIRST_HANDLE, Selection, SharedQueue, class_of
from ccplay.lab.netns import LinkEnd, Namespace
from ccplay.lab.qdisc_counters import PASSAGE
from ccplay.lab.qdiscs import Leaf, check_software, in_software
from ccplay.lab.rtnl import TC_H_ROOT, NetlinkSocket
from ccplay.lab.software import Software
from ccplay.lab.traces import Moving
from ccplay.model.disciplines import MOST_RATE, is_software
from ccplay.model.moving import Trace, show_trace
from ccplay.model.network import Link
from ccplay.model.values import LinkSetting, Qdisc, TrafficClass
from ccplay.units import format_rate

# --- the sending end of a link: its rate, and its queue or classes --------------------------------

_DEFAULT_QDISC = Qdisc(kind="pfifo", options={"limit": 100})
_PASSAGE_QDISC = Qdisc(kind="pfifo", options={"limit": 10_000})
_HANDLES = range(0x10, 0xFFFF)
_MTU, _ETHERNET_HEADER = 1500, 14


class Egress:
    """The sending end of a link and its settings."""

    def __init__(
        self, link: Link, place: LinkEnd, arrival: LinkEnd, routes: NetlinkSocket, index: int
    ) -> None:
        """Start empty; ``arrival`` is the receiving end, ``index`` that of the interface here."""
        self.link = link
        self.place = place
        self.arrival = arrival
        self._namespace = place.namespace
        self.path = Impairment()
        self.rate = 0
        self.mtu: int | None = None
        """MTU in bytes; None until one is set."""
        self.mark = 0
        """Threshold of marking in full packets that wait in the queue; 0 if none are marked."""
        self.marker: Marker | None = None
        """Threshold marker of packets; None until a threshold is set."""
        self.classes: list[SharedQueue] = []
        """Classes of the link; if there are any, each has a queue and the link itself has none."""
        self.down: bool | None = None
        """Whether the cable is down; None until a command has set it."""
        self.software: Qdisc | None = None
        """Discipline in software that was asked for; None if the kernel's was."""
        self.served: Qdisc | None = None
        """Discipline in software in front of the kernel's queue: the one asked for, or, while the
        link moves, ccplay's own in place of the kernel's; None if there is none."""
        self.moving: Moving | None = None
        """What moves the link; None if nothing does."""
        self.touched = False
        self._routes = routes
        self.index = index
        self._handles = itertools.cycle(_HANDLES)
        self._leaf = self._new_leaf(TC_H_ROOT)
        self._priorities: dict[tuple[str, str], int] = {}

    @property
    def qdisc(self) -> Qdisc | None:
        """The queue in front of the link, if it has no classes."""
        return None if self.classes else self.served or self._leaf.qdisc

    @property
    def kernels(self) -> Qdisc:
        """The kernel's queue behind one in software, as it was asked for."""
        return self._leaf.asked or _DEFAULT_QDISC

    def queue_of_class(self, name: str | None) -> Leaf:
        """Return the leaf of a class's queue; None stands for the queue of a link without classes.

        Raises ``CommandError`` if there is no such queue.
        """
        known = [each.asked.name for each in self.classes]
        if name is None and not known:
            return self._leaf
        if name in known:
            return self.classes[known.index(name)].leaf
        if known:
            raise CommandError(
                f"link {self.link.name} has a queue for each class: name one of {', '.join(known)}"
            )
        raise CommandError(f"link {self.link.name} has no classes, so none named {name!r}")

    def shape(self, setting: LinkSetting, running: Iterable[Selection]) -> None:
        """Set the rate, queue and classes that ``setting`` has, and read them from the kernel.

        ``running`` is the traffic to direct into the classes.
        """
        if setting.classes is not None and self.classes:
            self._unshare()
        if setting.rate == 0:
            self._unshape(setting.qdisc)
            return
        self._shape(setting.rate, setting.qdisc)
        if setting.classes:
            self._share(setting.classes, running)

    def before(self, change: LinkSetting) -> LinkSetting:
        """Return the setting that undoes ``change``: all that it changes, as it is now."""
        fields: dict[str, Any] = {
            each: getattr(self.path, each) for each in self.path.__struct_fields__
        }
        fields["trace"] = Trace() if self.moving is None else self.moving.trace
        fields |= {"rate": self.rate, "mtu": self.mtu, "mark": self.mark, "down": bool(self.down)}
        fields = {name: now for name, now in fields.items() if getattr(change, name) is not None}
        begins = change.rate is not None and (change.rate == 0) != (self.rate == 0)
        if change.classes is not None:
            fields["classes"] = [
                replace(each.asked, qdisc=each.leaf.asked) for each in self.classes
            ]
        if change.qdisc is not None or change.classes is not None or begins:
            fields["qdisc"] = None if self.classes else self.software or self._leaf.asked
            if not self.rate:
                # Without a rate, the queue is removed together with the rate.
                fields["rate"] = 0
        return LinkSetting(**fields)

    @property
    def handles(self) -> list[int]:
        """Numbers of the link's queues in the kernel; one that is replaced has another number."""
        return [each.handle for each in (self._leaf, *(one.leaf for one in self.classes))]

    def set_mtu(self, mtu: int) -> None:
        """Set the MTU, and count the marking threshold in packets of this length.

        Raises ``LabError``.
        """
        htb.set_mtu(self._namespace, self.link.interface, mtu)
        self.mtu = mtu
        self.set_mark(self.mark, None)

    def set_mark(self, mark: int, image: bytes | None) -> None:
        """Set the marking threshold in full packets, which have the MTU's length.

        The first threshold needs ``image``, the program of the marker. Raises ``LabError``.
        """
        self.mark = mark
        if self.marker is None and mark and image is not None:
            self.marker = Marker(image, self._namespace, self.index)
        if self.marker is not None:
            self.marker.threshold = mark * self._frame or None

    @property
    def marks_from(self) -> int | None:
        """Threshold of the marker in full packets; None without a marker."""
        return None if self.marker is None else (self.marker.threshold or 0) // self._frame

    @property
    def _frame(self) -> int:
        """Length of a full packet on the wire in bytes."""
        return (self.mtu or _MTU) + _ETHERNET_HEADER

    def dropped(self) -> dict[int, int]:
        """Return the packets that the node's queues have dropped, by index of the interface."""
        return rtnl.dropped(self._routes)

    def switch_offloads(self, *, on: bool) -> None:
        """Turn the sending interface's offloads on or off; each interface sends on one link."""
        htb.set_offloads(self._namespace, self.link.interface, on=on)

    # --- in front of a discipline in software -----------------------------------------------

    def open_passage(self) -> None:
        """Create the class in which packets that waited in software bypass the rate and queue."""
        self._routes.request(htb.add_passage(self.index), "a class for packets that have waited")
        handle = next(self._handles) << 16
        qdiscs.attach(self._routes, self.index, PASSAGE, handle, _PASSAGE_QDISC)

    def close_passage(self) -> None:
        """Remove the class that ``open_passage`` created, if it is there."""
        if PASSAGE in htb.read_rates(self._routes, self.index):
            self._routes.request(htb.remove_passage(self.index), "remove a class")

    def kernel_backlog(self) -> int:
        """Return the bytes in the kernel's queue."""
        return qdiscs.backlog(self._routes, self.index, self._leaf.parent)

    # --- one queue --------------------------------------------------------------------------

    def _shape(self, rate: int | None, qdisc: Qdisc | None) -> None:
        if rate:
            is_new = not self.rate
            if is_new:
                if self._leaf.asked is not None:
                    qdiscs.remove_qdisc(self._routes, self.index, TC_H_ROOT)
                qdisc = qdisc or self._leaf.asked or _DEFAULT_QDISC
                self._leaf = self._new_leaf(htb.CLASS)
            htb.set_rate(self._routes, self.index, rate, new=is_new)
            self.rate = self._read_rate(htb.CLASS, rate)
            if self.classes:
                self._set_shares()
        if qdisc is not None:
            self._leaf.put(qdisc)

    def _unshape(self, qdisc: Qdisc | None) -> None:
        """Remove the rate and the queue, and install ``qdisc`` if it is given."""
        # From here on it is not known what the kernel has, so a rate is set up afresh.
        self.rate = 0
        qdiscs.remove_qdisc(self._routes, self.index, TC_H_ROOT)
        self._leaf = self._new_leaf(TC_H_ROOT)
        if qdisc is not None:
            self._leaf.put(qdisc)

    def _new_leaf(self, parent: int) -> Leaf:
        return Leaf(self._routes, self.index, parent, self._handles)

    def _read_rate(self, handle: int, asked: int) -> int:
        """Return a class's rate in bits per second. Raises ``LabError`` if it is not ``asked``."""
        held = htb.read_rates(self._routes, self.index).get(handle, 0)
        if abs(held - asked) > 8:
            raise LabError(
                f"link {self.link.name}: {format_rate(asked)} became {format_rate(held)}"
            )
        return held

    # --- classes ----------------------------------------------------------------------------

    def _share(self, wanted: list[TrafficClass], running: Iterable[Selection]) -> None:
        """Replace the queue by classes; packets that wait in it are lost."""
        own = self._leaf.asked or _DEFAULT_QDISC
        self.classes = [
            SharedQueue(each, self._new_leaf(handle))
            for handle, each in enumerate(wanted, FIRST_HANDLE)
        ]
        try:
            # Filters first: they have no effect until their classes exist.
            rest = self.classes[-1].leaf.parent
            requests = htb.filter_requests(self.index, htb.LAST_PRIORITY, None, rest)
            htb.request_filters(self._routes, requests)
            for packets in running:
                self.admit(packets)
            self._set_shares()
            for each in self.classes:
                each.leaf.put(each.asked.qdisc or own)
        except Exception:
            self._unshare()
            raise

    def _set_shares(self) -> None:
        shares = {each.leaf.parent: each.asked.share for each in self.classes}
        htb.set_shares(self._routes, self.index, self.rate, shares)
        for each in self.classes:
            each.rate = self._read_rate(each.leaf.parent, round(self.rate * each.asked.share))

    def _unshare(self) -> None:
        """Replace the classes by one queue."""
        there = htb.read_rates(self._routes, self.index).keys() - {htb.CLASS, PASSAGE}
        filters = htb.filter_priorities(self._routes, self.index)
        gone = [htb.filter_removal(self.index, each) for each in filters]
        self._routes.request([*gone, *htb.class_removals(self.index, there)], "remove classes")
        self.classes = []
        self._priorities = {}
        own = self._leaf.asked
        self._leaf = self._new_leaf(htb.CLASS)
        self._leaf.put(own or _DEFAULT_QDISC)

    def admit(self, packets: Selection) -> None:
        """Direct traffic into its class, if there are classes."""
        if not self.classes:
            return
        chosen = class_of(self.classes, packets.kind, packets.name)
        if chosen is self.classes[-1]:
            return
        taken = self._priorities.values()
        priority = next(each for each in itertools.count(1) if each not in taken)
        requests = htb.filter_requests(self.index, priority, packets, chosen.leaf.parent)
        htb.request_filters(self._routes, requests)
        self._priorities[packets.kind, packets.name] = priority

    def dismiss(self, kind: str, name: str) -> None:
        """Remove the filters that direct some traffic into its class."""
        if (priority := self._priorities.pop((kind, name), None)) is not None:
            htb.request_filters(self._routes, [htb.filter_removal(self.index, priority)])


# --- moves a link's queue between kernel and software without losing a packet ---------------------
# Into software: a class is created for packets that have waited, then packets are directed into the
# process. Those that still wait in the kernel leave at the link's rate, and the process begins to
# send when they are gone. Back: the kernel's new queue, empty until then, receives all packets that
# wait in software at once and in order, and sends them at the link's rate.


async def shape_link(
    software: Software | None, interface: Egress, setting: LinkSetting, running: Iterable[Selection]
) -> None:
    """Set rate, queue and classes of a link; the kind of queue decides where packets wait.

    ``running`` is the traffic to direct into classes. Raises ``LabError``.
    """
    qdisc = setting.qdisc
    own = qdisc if qdisc is not None and is_software(qdisc.kind) else None
    if own is not None:
        setting = replace(setting, qdisc=None)
    interface.shape(setting, running)
    asked = own or _kept(interface, setting)
    if software is None or (asked is None and interface.served is None and not _paced(interface)):
        return
    wanted = asked
    if wanted is None and _paced(interface):
        wanted = in_software(interface.kernels)
    if wanted is None:
        await software.end(interface.place)
        interface.software = interface.served = None
        # If the rate was removed, so was the class.
        if setting.rate != 0:
            interface.close_passage()
        return
    is_new = interface.served is None
    try:
        if is_new:
            interface.open_passage()
        await software.put(
            *(interface.place, wanted, interface.rate, interface.kernel_backlog), interface.moving
        )
    except BaseException:
        if is_new:
            interface.close_passage()
        raise
    interface.software, interface.served = asked, wanted


def _paced(interface: Egress) -> bool:
    """Return whether a trace decides when packets leave a link."""
    return interface.moving is not None and interface.moving.content.paces


def check_queue(interface: Egress, setting: LinkSetting, moving: Moving | None) -> None:
    """Check the discipline in software that a setting requests or keeps, if there is one.

    ``moving`` is what will move the link. Raises ``CommandError`` if the link can't have it.
    """
    wanted = setting.qdisc or _kept(interface, setting)
    if moving is not None and moving.content.paces:
        _check_moving(interface, setting, moving)
        wanted = in_software(wanted or interface.kernels)
    if wanted is None or not is_software(wanted.kind):
        return
    rate = interface.rate if setting.rate is None else setting.rate
    mark = interface.mark if setting.mark is None else setting.mark
    check_software(interface.link.name, wanted, rate, mark)


def _check_moving(interface: Egress, setting: LinkSetting, moving: Moving) -> None:
    """Raise ``CommandError`` if a link can't be moved: no rate, classes, or too fast."""
    name, trace = interface.link.name, show_trace(moving.trace)
    if not (interface.rate if setting.rate is None else setting.rate):
        raise CommandError(f"link {name}: trace {trace}: give the link a rate, which it then keeps")
    if setting.classes or (setting.classes is None and interface.classes):
        raise CommandError(f"link {name}: trace {trace}: a link with classes can't be moved")
    if (mean := moving.content.mean_bps or 0) > MOST_RATE:
        raise CommandError(
            f"link {name}: trace {trace}: its mean of {format_rate(mean)} is above the "
            f"{format_rate(MOST_RATE)} that packets can be sent one by one at"
        )


def _kept(interface: Egress, setting: LinkSetting) -> Qdisc | None:
    """Return the discipline in software that a setting leaves in place."""
    if setting.qdisc is not None or setting.classes or setting.rate == 0:
        return None
    return interface.software


SOURCE = Path(__file__).parent / "marker.bpf.c"

_FIRST_KERNEL = (6, 6)
"""First kernel with BPF links at the egress of an interface."""

_TCX_EGRESS = 47
"""Attach type ``BPF_TCX_EGRESS`` of ``enum bpf_attach_type``."""

_NEVER = (1 << 64) - 1


def lack_of_marking() -> Lack | None:
    """Return the reason why the marker can't work here; None if none is known."""
    return lack(_FIRST_KERNEL)


def require_marking() -> None:
    """Raise ``UnsupportedError`` with reason and remedy if the marker can't work here."""
    if (missing := lack_of_marking()) is not None:
        raise UnsupportedError(f"ECN marking at a threshold: {missing.reason}; {missing.remedy}")


def marker_program() -> bytes:
    """Return the marker's object file; blocks for a second if it is not built yet.

    Raises ``UnsupportedError`` and the errors of building.
    """
    # Imported late: labs without marking do not need it.
    from ccplay.bpf.build import build  # noqa: PLC0415

    image, _ = build(SOURCE)
    return image


class _Variables(ctypes.Structure):
    """The program's variable ``marker``, in memory shared with it."""

    _fields_ = (("marks", ctypes.c_uint64), ("threshold", ctypes.c_uint64))


class Marker:
    """The marker at one interface. It marks nothing until a threshold is set."""

    def __init__(self, image: bytes, namespace: Namespace, interface: int) -> None:
        """Attach ``program()`` to the interface with this index.

        Raises ``LoadError`` if the kernel refuses it.
        """
        # ctypes and libbpf are slow to import, and most labs have no marker.
        from ccplay.bpf import libbpf  # noqa: PLC0415
        from ccplay.bpf.libbpf import Programs  # noqa: PLC0415

        self._programs = Programs(image, "the marker")
        shared = mmap.mmap(self._programs.map(".bss"), mmap.PAGESIZE)
        self._variables = _Variables.from_buffer(shared)
        self.threshold = None
        code = self._programs.descriptors[0]
        # The kernel looks for the interface in the namespace of the calling thread.
        with libbpf.library() as (lib, messages), namespace.entered():
            self._link = lib.bpf_link_create(code, interface, _TCX_EGRESS, None)
        if self._link < 0:
            error = libbpf.refused("the kernel refuses to attach the marker", messages)
            self._programs.close()
            raise error

    @property
    def threshold(self) -> int | None:
        """Backlog of the link in bytes from which on packets are marked; None for never."""
        held = int(self._variables.threshold)
        return None if held == _NEVER else held

    @threshold.setter
    def threshold(self, size: int | None) -> None:
        self._variables.threshold = _NEVER if size is None else size

    @property
    def marks(self) -> int:
        """Number of segments marked so far."""
        return int(self._variables.marks)

    def close(self) -> None:
        """Remove the marker; its counters can still be read."""
        os.close(self._link)
        self._programs.close()

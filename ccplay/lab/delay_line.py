"""The delay line: propagation delay, jitter and loss where the kernel has no netem.

A process of its own, named ``delay line``. Every delayed link has a netfilter queue in its
receiver's namespace. The process notes when each packet is due and releases all due packets with
one verdict, none of them early: no RTT is below the links' delays. Only ``reorder`` lets packets
overtake each other: jitter moves the moment at which a packet is due, but never before that of the
packet ahead. Packets are copied to user space only if some are duplicated or changed.

The kernel timestamps arrivals, so packets need not be read at once: while some are in flight, new
ones are read together every few milliseconds, and wake-ups of a link are spaced out. Wake-ups are
the main cost; batching halves their number at 10 Mbit/s and saves more at higher rates.

Delay engines, of which this is one and netem the other, never act at the sending end: an interface
with a queue under study must do nothing else, and delay on a sender's own interface would mislead
TCP small queues and BBR.
"""

from __future__ import annotations

import contextlib
import random
import select
import socket
import time
from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec.structs import replace

from ccplay.errors import CommandError
from ccplay.lab import child
from ccplay.lab.netfilter_queue import PacketQueue
from ccplay.lab.netns import LinkEnd, Namespace
from ccplay.lab.packet_loop import Lateness, PacketLoop, run_as
from ccplay.lab.traces import MappedTrace, Moving
from ccplay.model import algorithms
from ccplay.model.algorithms import UNIFORM
from ccplay.model.values import LinkSetting
from ccplay.trace import schedule


class Impairment(msgspec.Struct, frozen=True, omit_defaults=True):
    """Delay, jitter, loss and other faults of a link, in the units of ``LinkSetting``."""

    delay_us: int = 0
    jitter_us: int = 0
    distribution: str = UNIFORM
    loss: float = 0.0
    gemodel: tuple[float, ...] = ()
    reorder: float = 0.0
    duplicate: float = 0.0
    corrupt: float = 0.0

    def changed(self, setting: LinkSetting) -> Impairment:
        """Return a copy of this impairment, updated with the fields that ``setting`` has."""
        asked = {name: getattr(setting, name) for name in self.__struct_fields__}
        changes = {name: value for name, value in asked.items() if value is not None}
        if "gemodel" in changes:
            changes["gemodel"] = tuple(changes["gemodel"])
        return replace(self, **changes)

    def setting_fields(self) -> dict[str, Any]:
        """Return the fields for a ``LinkSetting``; models that are off are None."""
        fields = {name: getattr(self, name) or None for name in _FAULT_MODELS}
        if self.gemodel:
            fields["gemodel"] = list(self.gemodel)
        plain = {"delay_us": self.delay_us, "jitter_us": self.jitter_us, "loss": self.loss}
        distribution = None if self.distribution == UNIFORM else self.distribution
        return {**plain, **fields, "distribution": distribution}

    @property
    def loses(self) -> bool:
        """Whether packets may be lost, which includes those with a flipped bit in their header."""
        return bool(self.loss or self.gemodel or self.corrupt)

    def __bool__(self) -> bool:
        """Return whether the impairment has any effect."""
        return any(
            getattr(self, name) for name in ("delay_us", "jitter_us", "loss", *_FAULT_MODELS)
        )


_FAULT_MODELS = ("gemodel", "reorder", "duplicate", "corrupt")


def check_path(link: str, path: Impairment, *, single: bool) -> None:
    """Raise ``CommandError`` for an impairment that no engine supports.

    ``single`` is whether offloads are off, so that each packet is one frame.
    """
    problem = ""
    if path.loss and path.gemodel:
        problem = "loss and gemodel are two models of loss: set one to none"
    if path.reorder and not path.delay_us:
        problem = "reorder needs a delay, which the packets sent ahead skip"
    if (path.duplicate or path.corrupt) and not single:
        problem = "duplicate and corrupt need single packets: choose a rate up to 200 Mbit/s"
    if problem:
        raise CommandError(f"link {link}: {problem}")


class DelayEngine(Protocol):
    """A way to delay, lose and change packets."""

    name: str
    """Name of the engine, as in ``LinkChanged.delay_engine``."""

    @property
    def processes(self) -> Iterable[int]:
        """Process IDs of the engine's own processes."""

    async def prepare(self) -> None:
        """Start the engine's processes, so that the first ``set`` need not wait for them."""

    async def set(
        self, arrival: LinkEnd, path: Impairment, moving: Moving | None = None
    ) -> Impairment:
        """Apply ``path`` to the packets of a link from now on; return the impairment in force.

        Delay and loss of what moves the link take the place of those of ``path``.
        Raises ``LabError`` if the engine fails.
        """

    def lateness(self) -> tuple[float, float] | None:
        """Return median and 99th percentile of released packets' lateness, in us, or None.

        None means that it is not measured, or that no packet was released recently.
        """

    async def lost(self, arrival: LinkEnd) -> int | None:
        """Return the packets of a link lost on purpose; None if they are not counted.

        Raises ``LabError``.
        """

    async def close(self) -> None:
        """End the engine's processes; interfaces and rules end with the namespaces."""


# --- requests to the delay line and replies from it -----------------------------------------------


class DelayRequest(child.Request, frozen=True, omit_defaults=True):
    """A request to the delay line: ``open`` or ``change`` sets what happens to later packets.

    ``drain`` releases held packets when they are due, and later packets at once; ``close`` unbinds
    the queue; ``count`` reports the packets lost.
    """

    path: Impairment = Impairment()
    course: MappedTrace | None = None
    """What moves delay and loss; None if nothing does."""


class DelayReply(child.Reply, frozen=True, omit_defaults=True):
    """A report of the delay line."""

    lost: int = 0
    """Number of packets lost on purpose since the queue was opened."""


# --- the random faults of a link: the models of tc-netem(8), without any I/O ----------------------
# Loss is independent or follows the Gilbert-Elliott model. A packet may be duplicated, have a bit
# flipped, or be sent at once, ahead of delayed packets. Source: ``netem_enqueue`` of
# net/sched/sch_netem.c.


class Fate(NamedTuple):
    """What happens to one packet."""

    lost: bool = False
    again: bool = False
    """Whether a duplicate follows the packet."""
    flipped: float = -1.0
    """Position of the flipped bit, as a share of the packet's bits; negative for none."""
    ahead: bool = False
    """Whether the packet is sent without delay, ahead of delayed packets."""
    delay_s: float = 0.0


class Model:
    """Draws the fates of a link's packets in the order of their arrival."""

    def __init__(self, seed: str) -> None:
        """Start without any fault; the same ``seed`` and settings draw the same fates."""
        self._chance = random.Random(seed).random  # noqa: S311
        self._bad = False
        self.change(Impairment())

    def change(self, path: Impairment) -> None:
        """Use other settings for later packets; Gilbert-Elliott starts in its good state."""
        self.path = path
        self._delay_s, self._jitter_s = path.delay_us / 1e6, path.jitter_us / 1e6
        self._table = algorithms.table(path.distribution)
        self._bad = False
        lowest = self._table[0] / algorithms.SCALE if self._table else -1.0
        self.shortest_s = max(0.0, self._delay_s + lowest * self._jitter_s)
        """Shortest delay in seconds that a later packet can have."""
        if path.reorder:
            self.shortest_s = 0.0
        self._plain = not (path.gemodel or path.reorder or path.duplicate or path.corrupt)

    @property
    def changes_packets(self) -> bool:
        """Whether packets are duplicated or changed, so that their content is needed."""
        return bool(self.path.duplicate or self.path.corrupt)

    def draw(self) -> Fate:
        """Return what happens to the next packet."""
        path, chance = self.path, self._chance
        if self._plain:
            if path.loss and chance() < path.loss:
                return _LOST
            return Fate(delay_s=self._delayed())
        # A packet drawn as both duplicated and lost is sent once, as in netem.
        copies = 1 + bool(path.duplicate and chance() < path.duplicate)
        copies -= bool(path.loss and chance() < path.loss) or self._in_burst()
        if not copies:
            return _LOST
        flipped = chance() if path.corrupt and chance() < path.corrupt else -1.0
        ahead = bool(path.reorder and chance() < path.reorder)
        return Fate(False, copies > 1, flipped, ahead, 0.0 if ahead else self._delayed())

    def _delayed(self) -> float:
        if not self._jitter_s:
            return self._delay_s
        if not self._table:
            return self._delay_s + (2.0 * self._chance() - 1.0) * self._jitter_s
        entry = self._table[int(self._chance() * algorithms.SIZE)]
        return max(0.0, self._delay_s + self._jitter_s * entry / algorithms.SCALE)

    def _in_burst(self) -> bool:
        """Return whether the Gilbert-Elliott model loses a packet, and advance its state.

        As in ``loss_gilb_ell`` of netem, the state before the step decides on the loss.
        """
        if not self.path.gemodel:
            return False
        p, r, lost_in_bad, lost_in_good = self.path.gemodel
        was_bad, chance = self._bad, self._chance
        if chance() < (r if was_bad else p):
            self._bad = not was_bad
        return chance() < (lost_in_bad if was_bad else lost_in_good)


_LOST = Fate(lost=True)


# --- packets as bytes: sends copies of duplicated packets, and flips bits -------------------------

_TTL = 8
_DESTINATION = slice(16, 20)


class Copies:
    """Sends copies of packets that have arrived in a namespace, onward on the same path.

    A raw socket (raw(7), IP_HDRINCL) delivers or forwards them. They do not arrive through an
    interface, so no rule in PREROUTING matches them again.
    """

    def __init__(self, namespace: Namespace) -> None:
        self._socket = namespace.socket(
            socket.AF_INET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, socket.IPPROTO_RAW
        )

    def send(self, packet: bytes) -> None:
        """Send an IPv4 packet; one that can't be sent is lost."""
        copy = bytearray(packet)
        # Routers decrement the TTL; the kernel recomputes the header's checksum.
        copy[_TTL] = max(1, copy[_TTL] - 1)
        with contextlib.suppress(OSError):
            self._socket.sendto(copy, (socket.inet_ntoa(bytes(copy[_DESTINATION])), 0))

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def flip_bit(packet: bytes, place: float) -> bytes | None:
    """Return a packet with one bit flipped; ``place`` is its position as a share of all bits.

    Returns None if that bit is in the IP header: the header's checksum detects every single wrong
    bit, so the next node would drop the packet.
    """
    bit = int(place * len(packet) * 8)
    if bit // 8 < 4 * (packet[0] & 15):
        return None
    changed = bytearray(packet)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


# --- the delay line: propagation delay, jitter and loss where the kernel has no netem -------------

NAME = b"delay line"
"""Name of the process: comm in proc(5)."""

_SO_TIMESTAMP = 29

_MOMENT_S = 200e-6
"""Shortest time in seconds between two wake-ups of a link: the most that batching delays a
packet."""

_READ_EVERY_S = 5e-3
"""Longest time in seconds that packets wait to be read while others are in flight."""

_CREDIBLE_S = 1.0
"""Greatest age of a timestamp in seconds; an older one precedes a change of the clock."""


class DelayedLink:
    """The packets of one link in flight."""

    def __init__(self, request: DelayRequest) -> None:
        self._namespace = Namespace(f"queue {request.queue}", request.pid)
        self.queue = PacketQueue(self._namespace, request.queue)
        self.number = request.queue
        self._model = Model(f"{request.seed}/{request.queue}")
        self.due: deque[float] = deque()
        self._rest = 0.0
        self._packets: deque[int] = deque()
        self._newest = 0.0
        self._changed: dict[int, bytes] = {}
        """Contents of packets in flight with a flipped bit, by packet number."""
        self._twice: dict[int, bytes] = {}
        """Contents of packets in flight that a copy will follow, by packet number."""
        self._copies: Copies | None = None
        self._delay: schedule.Course | None = None
        self._loss: schedule.Course | None = None
        self._chance = random.Random(f"{request.seed}/{request.queue}/moves").random  # noqa: S311
        self.lost = 0
        self.draining = False
        self.change(request)

    def change(self, request: DelayRequest) -> None:
        """Use a new setting for later packets; those in flight keep their delay."""
        self.draining = request.do == "drain"
        path = Impairment() if self.draining else request.path
        self._delay = self._loss = None
        if request.course is not None and not self.draining:
            content = request.course.read()
            self._delay = request.course.values(content.delays, float(path.delay_us))
            self._loss = request.course.values(content.losses, path.loss)
            if self._delay is not None:
                path = replace(path, delay_us=0)
            if self._loss is not None:
                path = replace(path, loss=0.0)
        self._model.change(path)
        self.queue.copy(whole=self._model.changes_packets)

    @property
    def shortest_s(self) -> float:
        """Shortest delay in seconds that a later packet can have."""
        moved = 0.0 if self._delay is None else self._delay.least / 1e6
        return self._model.shortest_s + moved

    def read_packets(self, epoch: float) -> None:
        """Read all packets that have arrived. ``epoch`` is Unix time minus the monotonic clock."""
        queue, draw = self.queue, self._model.draw
        moves = self._delay is not None or self._loss is not None
        while (packet := queue.next_packet()) is not None:
            fate = draw()
            came = self._arrival(epoch) if moves else 0.0
            if self._loss is not None and self._chance() < self._loss.at(came):
                fate = _LOST
            if fate.lost or (fate.flipped >= 0 and not self._flip(packet, fate.flipped)):
                queue.drop(packet)
                self.lost += 1
                continue
            if fate.again and (content := queue.content()):
                self._twice[packet] = content
            if fate.ahead:
                self._send(packet)
                continue
            came = came or self._arrival(epoch)
            delay_s = fate.delay_s
            if self._delay is not None:
                delay_s += self._delay.at(came) / 1e6
            # A packet is never due before the one ahead of it: packets stay in order.
            self._newest = max(came + delay_s, self._newest)
            self.due.append(self._newest)
            self._packets.append(packet)

    def _arrival(self, epoch: float) -> float:
        """Return when the packet just read has arrived, on the monotonic clock."""
        came, now = self.queue.stamp - epoch, time.monotonic()
        return came if now - _CREDIBLE_S < came < now else now

    @property
    def wake(self) -> float:
        """Next moment to release packets, on the monotonic clock; 0 if there are none."""
        return max(self.due[0], self._rest) if self.due else 0.0

    def release(self, now: float, lateness: Lateness) -> None:
        """Release all packets due at ``now``, and record their lateness."""
        due, packets, last = self.due, self._packets, None
        special = bool(self._changed or self._twice)
        while due and due[0] <= now:
            lateness.add(now - due.popleft())
            packet = packets.popleft()
            if special and (packet in self._changed or packet in self._twice):
                if last is not None:
                    self.queue.release(last)
                last = None
                self._send(packet)
            else:
                last = packet
            self._rest = now + _MOMENT_S
        if last is not None:
            self.queue.release(last)

    def close(self) -> None:
        """Close the queue; the kernel drops its packets."""
        self.queue.close()
        if self._copies is not None:
            self._copies.close()

    def _flip(self, packet: int, place: float) -> bool:
        """Flip a bit of the packet just read; return False if the next node would drop it."""
        content = self.queue.content()
        changed = flip_bit(content, place) if content else content
        if changed:
            self._changed[packet] = changed
        return changed is not None

    def _send(self, packet: int) -> None:
        """Release one packet, and the copy that follows it."""
        changed = self._changed.pop(packet, None)
        self.queue.accept(packet, changed)
        if (copy := self._twice.pop(packet, None)) is not None:
            if self._copies is None:
                self._copies = Copies(self._namespace)
            self._copies.send(changed or copy)


class DelayLine(PacketLoop[DelayRequest]):
    """All delayed links of a lab."""

    def __init__(self) -> None:
        super().__init__(DelayRequest)
        self._held: dict[int, DelayedLink] = {}
        self._next_read = 0.0
        # The kernel timestamps all packets while a socket requests it.
        self._stamping = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._stamping.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMP, 1)

    def work(self) -> select.epoll:
        """Read arrivals, release due packets, and return the epoll set to wait on."""
        held_ones, now = self._held.values(), time.monotonic()
        if now >= self._next_read:
            epoch = time.time() - time.monotonic()
            shortest_s = _READ_EVERY_S * 2
            for held in held_ones:
                held.read_packets(epoch)
                shortest_s = min(shortest_s, held.shortest_s)
            # Half of the shortest delay: the next packet is read well before it is due.
            self._next_read = now + shortest_s / 2 if shortest_s > 4 * _MOMENT_S else 0.0
        earliest = 0.0
        for held in held_ones:
            held.release(time.monotonic(), self.lateness)
            if wake := held.wake:
                earliest = min(wake, earliest or wake)
            elif held.draining:
                held.draining = False
                self.send(DelayReply(queue=held.number, do="drain"))
        if not earliest or not self._next_read:
            self._next_read = 0.0
            self.timer.set(earliest)
            return self.idle
        self.timer.set(min(earliest, self._next_read))
        return self.busy

    def obey(self, request: DelayRequest) -> None:
        """Carry out a request. Raises ``OSError`` if the kernel refuses a queue."""
        held = self._held.get(request.queue)
        match request.do:
            case "open" if request.queue:
                self._open(request)
            case "change" | "drain" if held is not None:
                held.change(request)
                self._next_read = 0.0
            case "close" if held is not None:
                self._close(held)
        if request.do != "drain" or held is None:
            lost = 0 if held is None else held.lost
            self.send(DelayReply(queue=request.queue, do=request.do, lost=lost))

    def _open(self, request: DelayRequest) -> None:
        held = DelayedLink(request)
        self._held[request.queue] = held
        self.idle.register(held.queue.fileno(), select.EPOLLIN)

    def _close(self, held: DelayedLink) -> None:
        """Release the last packets of a queue that no rule uses any more, and close it."""
        del self._held[held.number]
        held.read_packets(0.0)
        held.release(float("inf"), Lateness())
        self.idle.unregister(held.queue.fileno())
        held.close()


def main() -> None:
    """Run the delay line until stdin ends."""
    run_as(NAME, DelayLine)

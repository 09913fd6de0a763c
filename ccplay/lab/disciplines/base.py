"""What every discipline in software is made of: packets, queues of them, and the base class.

A discipline only decides on packets: it reads no clock and opens no socket. The caller of
``arrive`` and ``depart`` passes the time, in seconds of a monotonic clock. So the same class runs
in front of a link, in a unit test and in a simulation.

``FirstInFirstOut`` replaces a discipline that failed, so it is kept too simple to fail.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Mapping
from zlib import crc32

from ccplay.model.base import Option

NOT_ECT, ECT_1, ECT_0, CE = range(4)
"""Values of the two ECN bits in an IP header; RFC 3168, section 5."""

MTU = 1514
"""Length in bytes of a full Ethernet frame; lengths of packets include the Ethernet header."""


class Packet:
    """One packet, with all that a discipline may know of it."""

    __slots__ = ("arrived", "destination", "dscp", "ecn", "flow", "length", "number", "source")

    def __init__(
        self,
        length: int,
        flow: int = 0,
        ecn: int = NOT_ECT,
        *,
        number: int = 0,
        source: int = 0,
        destination: int = 0,
        dscp: int = 0,
    ) -> None:
        self.length = length
        """Length on the wire in bytes, including the Ethernet header."""
        self.flow = flow
        """Number of the flow, 32 bits: equal for packets of equal addresses, ports and protocol."""
        self.ecn = ecn
        """ECN bits: ``NOT_ECT``, ``ECT_1``, ``ECT_0`` or ``CE``."""
        self.number = number
        """Number of the packet, assigned by the program that runs the discipline."""
        self.source = source
        """IPv4 address of the sending host, 32 bits."""
        self.destination = destination
        """IPv4 address of the receiving host, 32 bits."""
        self.dscp = dscp
        """Differentiated services code point, 6 bits; RFC 2474."""
        self.arrived = 0.0
        """Moment of arrival in seconds, from which the sojourn time counts."""


class Fifo:
    """Packets in the order of their arrival, with the sum of their bytes."""

    __slots__ = ("bytes", "packets")

    def __init__(self) -> None:
        self.packets: deque[Packet] = deque()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self.packets)

    def push(self, packet: Packet) -> None:
        """Append a packet."""
        self.packets.append(packet)
        self.bytes += packet.length

    def pop(self) -> Packet | None:
        """Remove and return the first packet; None if the queue is empty."""
        if not self.packets:
            return None
        packet = self.packets.popleft()
        self.bytes -= packet.length
        return packet

    def pop_last(self) -> Packet:
        """Remove and return the last packet. Raises ``IndexError`` if the queue is empty."""
        packet = self.packets.pop()
        self.bytes -= packet.length
        return packet

    def take(self, place: int) -> Packet:
        """Remove and return the packet at a place, counted from 0, the first."""
        packet = self.packets[place]
        del self.packets[place]
        self.bytes -= packet.length
        return packet


class Options:
    """All parameters of a discipline, in the units of its computations."""

    def __init__(self, values: Mapping[str, Option | None]) -> None:
        """``values`` are those of ``model.disciplines.complete``; None means off or unlimited."""
        self._values = values

    def has(self, name: str) -> bool:
        """Return whether a parameter is not off."""
        return self._values[name] is not None

    def count(self, name: str, unset: int = 0) -> int:
        """Return a whole number, such as of packets or bytes; ``unset`` if it is off."""
        value = self._values[name]
        return unset if value is None else int(value)

    def number(self, name: str, unset: float = 0.0) -> float:
        """Return a plain number, such as a weight; ``unset`` if it is off."""
        value = self._values[name]
        return unset if value is None else float(value)

    def seconds(self, name: str, unset: float = 0.0) -> float:
        """Return in seconds a time that the parameter has in microseconds; ``unset`` if off."""
        value = self._values[name]
        return unset if value is None else float(value) / 1e6

    def flag(self, name: str) -> bool:
        """Return whether a switch is on."""
        return bool(self._values[name])

    def word(self, name: str) -> str:
        """Return the word of a choice."""
        return str(self._values[name])


class Discipline:
    """A queue discipline. A subclass implements ``configure``, ``enqueue`` and ``dequeue``.

    ``qlen`` and ``backlog`` count what waits in all its queues, without the packet that is
    arriving. This class keeps them up to date in ``arrive``, ``depart`` and ``drop``.
    """

    update_s = 0.0
    """Seconds between two calls of ``update``; 0 if it is never called."""

    def __init__(self, options: Options, seed: int = 0) -> None:
        """Configure the discipline; equal seeds yield the same random numbers in every run."""
        self.qlen = 0
        """Number of packets that wait."""
        self.backlog = 0
        """Number of bytes that wait."""
        self.drops: Counter[str] = Counter()
        """Number of dropped packets by reason."""
        self.marks = 0
        """Number of packets marked with CE here."""
        self.dropped: list[Packet] = []
        """Packets dropped since the caller last emptied this list."""
        self.random = random.Random(seed).random  # noqa: S311 - it chooses packets, not keys
        self._arriving: Packet | None = None
        self._updated = 0.0
        self.configure(options)

    # --- what a subclass implements ---------------------------------------------------------

    def configure(self, options: Options) -> None:
        """Set the parameters: called before the first packet, when the object is made."""

    def enqueue(self, packet: Packet, now: float) -> None:
        """Put an arriving packet into a queue, or ``drop`` it, or others instead."""
        raise NotImplementedError

    def dequeue(self, now: float) -> Packet | None:
        """Remove and return the packet to send next; None only if none waits."""
        raise NotImplementedError

    def update(self, now: float) -> None:
        """Do the periodic computation; called every ``update_s`` seconds."""

    def statistics(self) -> dict[str, int]:
        """Return own values by name, ``DISCIPLINE_WORD_UNIT``; the names are always the same.

        ``model.variables`` describes the units; with the unit ``_1000`` a value of 1000 means 1.
        """
        return {}

    @property
    def rate(self) -> int | None:
        """Rate in bits per second to which the discipline shapes; None for the link's rate."""
        return None

    # --- what it decides --------------------------------------------------------------------

    def drop(self, packet: Packet, reason: str) -> None:
        """Drop the arriving packet, or one that was removed from its queue."""
        if packet is self._arriving:
            self._arriving = None
        else:
            self.qlen -= 1
            self.backlog -= packet.length
        self.drops[reason] += 1
        self.dropped.append(packet)

    def mark(self, packet: Packet) -> bool:
        """Set CE on a packet and return True; return False if the packet is not ECN-capable."""
        if packet.ecn == NOT_ECT:
            return False
        if packet.ecn != CE:
            packet.ecn = CE
            self.marks += 1
        return True

    # --- how it is run ----------------------------------------------------------------------

    def arrive(self, packet: Packet, now: float) -> None:
        """Process an arriving packet; dropped packets are appended to ``dropped``."""
        self.advance(now)
        self._arriving = packet
        self.enqueue(packet, now)
        if self._arriving is not None:
            self._arriving = None
            self.qlen += 1
            self.backlog += packet.length

    def depart(self, now: float) -> Packet | None:
        """Return the packet to send now; None if none waits."""
        self.advance(now)
        packet = self.dequeue(now)
        if packet is not None:
            self.qlen -= 1
            self.backlog -= packet.length
        return packet

    def advance(self, now: float) -> None:
        """Make all updates that are due; after a long pause only those of its last 10 s."""
        if not self.update_s:
            return
        if not self._updated:
            self._updated = now
        self._updated = max(self._updated, now - 10.0)
        while now - self._updated >= self.update_s:
            self._updated += self.update_s
            self.update(self._updated)


def spread(flow: int, perturbation: int, queues: int) -> int:
    """Return a flow's queue, from 0 to below ``queues``: a hash that ``perturbation`` changes."""
    return crc32(flow.to_bytes(4, "big"), perturbation) % queues


class FirstInFirstOut(Discipline):
    """First in, first out, with room for a number of packets; it drops those beyond that."""

    def __init__(self, options: Options, seed: int = 0) -> None:
        self.queue = Fifo()
        super().__init__(options, seed)

    def configure(self, options: Options) -> None:
        """Set the limit."""
        self.limit = options.count("limit")

    def enqueue(self, packet: Packet, now: float) -> None:
        """Append the packet if there is room, else drop it."""
        if self.qlen < self.limit:
            self.queue.push(packet)
        else:
            self.drop(packet, "limit")

    def dequeue(self, now: float) -> Packet | None:
        """Return the oldest packet."""
        return self.queue.pop()

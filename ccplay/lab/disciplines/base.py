"""What every discipline in software is made of: packets, queues of them, and the base class.

A discipline decides on packets and nothing else: it reads no clock, opens no socket, and is told
the time, in seconds of a clock that only grows, by whoever calls ``arrive`` and ``depart``. So the
same class runs in front of a link, in a unit test and in a simulation.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Mapping
from zlib import crc32

from ccplay.model.base import Option

NOT_ECT, ECT_1, ECT_0, CE = range(4)
"""The two bits of ECN in an IP header; RFC 3168, section 5."""

MTU = 1514
"""Bytes of a full Ethernet frame, which is what lengths of packets count."""


class Packet:
    """One packet: what a discipline may know of it."""

    __slots__ = (
        "arrived",
        "destination",
        "dscp",
        "ecn",
        "flow",
        "length",
        "number",
        "source",
    )

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
        """Bytes on the wire, with the Ethernet header."""
        self.flow = flow
        """32 bits, the same for all packets with these addresses, ports and protocol."""
        self.ecn = ecn
        """``NOT_ECT``, ``ECT_1``, ``ECT_0`` or ``CE``."""
        self.number = number
        """Number of the packet, for the program that gave it."""
        self.source = source
        """Address of the sending host, 32 bits."""
        self.destination = destination
        """Address of the receiving host, 32 bits."""
        self.dscp = dscp
        """Differentiated services code point, 6 bits; RFC 2474."""
        self.arrived = 0.0
        """Moment of its arrival in seconds; its sojourn time counts from it."""


class Fifo:
    """Packets in the order of their arrival, with the bytes that they have together."""

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
        """Remove the first packet and return it; None without any."""
        if not self.packets:
            return None
        packet = self.packets.popleft()
        self.bytes -= packet.length
        return packet

    def pop_last(self) -> Packet:
        """Remove the last packet and return it. Raises ``IndexError`` without any."""
        packet = self.packets.pop()
        self.bytes -= packet.length
        return packet

    def take(self, place: int) -> Packet:
        """Remove the packet at a place, counted from the first, and return it."""
        packet = self.packets[place]
        del self.packets[place]
        self.bytes -= packet.length
        return packet


class Options:
    """Parameters of a discipline, complete, in the units in which computations have them."""

    def __init__(self, values: Mapping[str, Option | None]) -> None:
        """``values`` are those of ``model.disciplines.complete``; None is off or unlimited."""
        self._values = values

    def has(self, name: str) -> bool:
        """Return whether a parameter is not off."""
        return self._values[name] is not None

    def count(self, name: str, unset: int = 0) -> int:
        """Return a number of packets, bytes or other things."""
        value = self._values[name]
        return unset if value is None else int(value)

    def number(self, name: str, unset: float = 0.0) -> float:
        """Return a plain number, such as a weight."""
        value = self._values[name]
        return unset if value is None else float(value)

    def seconds(self, name: str, unset: float = 0.0) -> float:
        """Return a time, which parameters have in microseconds."""
        value = self._values[name]
        return unset if value is None else float(value) / 1e6

    def flag(self, name: str) -> bool:
        """Return whether a switch is on."""
        return bool(self._values[name])

    def word(self, name: str) -> str:
        """Return a choice."""
        return str(self._values[name])


class Discipline:
    """A queue discipline. A subclass writes ``configure``, ``enqueue`` and ``dequeue``.

    ``qlen`` and ``backlog`` count what waits in all its queues, without the packet that is
    arriving. They are kept here, from ``arrive``, ``depart`` and ``drop``.
    """

    update_s = 0.0
    """Seconds between two calls of ``update``; 0: it is never called."""

    def __init__(self, options: Options, seed: int = 0) -> None:
        """``seed`` makes what is drawn at random the same in every run."""
        self.qlen = 0
        """Packets that wait."""
        self.backlog = 0
        """Bytes that wait."""
        self.drops: Counter[str] = Counter()
        """Dropped packets by reason."""
        self.marks = 0
        """Packets that were given CE."""
        self.dropped: list[Packet] = []
        """Packets dropped since whoever runs it has emptied this list."""
        self.random = random.Random(seed).random  # noqa: S311 - it chooses packets, not keys
        self._arriving: Packet | None = None
        self._updated = 0.0
        self.configure(options)

    # --- what a discipline writes -----------------------------------------------------------

    def configure(self, options: Options) -> None:
        """Take parameters: before the first packet, and whenever they change."""

    def enqueue(self, packet: Packet, now: float) -> None:
        """Put an arriving packet into a queue, or ``drop`` it, or others in its place."""
        raise NotImplementedError

    def dequeue(self, now: float) -> Packet | None:
        """Remove the packet that is sent next and return it; None only if none waits."""
        raise NotImplementedError

    def update(self, now: float) -> None:
        """Compute what is computed every ``update_s`` seconds."""

    def statistics(self) -> dict[str, int]:
        """Return its state now, always with the same names: ``DISCIPLINE_WORD_UNIT``.

        ``model.variables`` describes them; a number such as ``_1000`` at the end counts as 1.
        """
        return {}

    @property
    def rate(self) -> int | None:
        """Bits per second to which it shapes by itself; None: as fast as the link is."""
        return None

    # --- what it decides --------------------------------------------------------------------

    def drop(self, packet: Packet, reason: str) -> None:
        """Drop the arriving packet, or one that has been removed from its queue."""
        if packet is self._arriving:
            self._arriving = None
        else:
            self.qlen -= 1
            self.backlog -= packet.length
        self.drops[reason] += 1
        self.dropped.append(packet)

    def mark(self, packet: Packet) -> bool:
        """Give a packet CE and return True; False if its flow does not use ECN."""
        if packet.ecn == NOT_ECT:
            return False
        if packet.ecn != CE:
            packet.ecn = CE
            self.marks += 1
        return True

    # --- how it is run ----------------------------------------------------------------------

    def arrive(self, packet: Packet, now: float) -> None:
        """Let a packet arrive; ``dropped`` may then have some."""
        self.advance(now)
        self._arriving = packet
        self.enqueue(packet, now)
        if self._arriving is not None:
            self._arriving = None
            self.qlen += 1
            self.backlog += packet.length

    def depart(self, now: float) -> Packet | None:
        """Return the packet that is sent now; None if none waits."""
        self.advance(now)
        packet = self.dequeue(now)
        if packet is not None:
            self.qlen -= 1
            self.backlog -= packet.length
        return packet

    def advance(self, now: float) -> None:
        """Make up for the updates that are due; after a long pause those of its last 10 s."""
        if not self.update_s:
            return
        if not self._updated:
            self._updated = now
        self._updated = max(self._updated, now - 10.0)
        while now - self._updated >= self.update_s:
            self._updated += self.update_s
            self.update(self._updated)


def spread(flow: int, perturbation: int, queues: int) -> int:
    """Return the queue of a flow: any of ``queues``, another with another perturbation."""
    return crc32(flow.to_bytes(4, "big"), perturbation) % queues

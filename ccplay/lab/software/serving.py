"""One queue in software: what arrives is given to a discipline, and what that sends leaves in time.

The link is a virtual clock. A packet of L bytes keeps it busy for L * 8 / rate, and the next one
is due when it is free again:

    free = max(free, since) + L * 8 / rate

where ``since`` is the moment since which packets wait. A packet that is sent late therefore costs
no rate: the one after it is due when it would have been anyway.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from ccplay.lab.disciplines.base import CE, Discipline, Options, Packet
from ccplay.lab.disciplines.fifo import FirstInFirstOut
from ccplay.lab.disciplines.table import made
from ccplay.lab.packets.lateness import Lateness
from ccplay.lab.queues.reading import Counts
from ccplay.lab.software.board import MOST_STATISTICS, Slot
from ccplay.model.base import Option

MARKED, PACED = 0x1, 0x2
"""Firewall marks of a sent packet: it has CE; it has waited here and need not wait again."""

_NEVER = float("inf")

_FALLBACK_PACKETS = 1000
"""Fewest packets for which the FIFO in the place of a discipline that failed has room."""

_MOST_READ = 64
"""Packets read before some are sent again."""


class Waiting(Protocol):
    """Where packets wait: a netfilter queue."""

    def fileno(self) -> int:
        """Return the descriptor to wait on."""

    def close(self) -> None:
        """Unbind; what waits is dropped."""

    def receive(self) -> Packet | None:
        """Return the next packet; None if there is none yet."""

    def send_on(self, packet: int, mark: int) -> None:
        """Release a packet at the next ``flush``, with a firewall mark."""

    def discard(self, packet: int) -> None:
        """Drop a packet at the next ``flush``."""

    def flush(self) -> None:
        """Carry out what was decided, in order."""


class Served:
    """A queue in front of a link, with the discipline at work in it."""

    def __init__(self, queue: Waiting, slot: Slot) -> None:
        """Let packets wait until ``begin``."""
        self.queue = queue
        self.fault = ""
        """What failed in the discipline since somebody emptied this."""
        self.names: list[str] = []
        """Statistics that the discipline reports, in the order of the slot."""
        self._slot = slot
        slot.clear()
        self._discipline: Discipline = FirstInFirstOut(Options({"limit": _FALLBACK_PACKETS}))
        self._kind = ""
        self._waiting: dict[int, Packet] = {}
        self._free = _NEVER
        self._since = 0.0
        self._link_s = 0.0
        self._passing = False
        self._backlog = 0
        self._drops = self._marks = self._packets = self._bytes = self._sojourn_us = 0

    def change(
        self, kind: str, options: Mapping[str, Option], rate: int, seed: int, now: float
    ) -> None:
        """Use a discipline from now on; what waits is given to it in the order of its arrival."""
        self._link_s = 8 / rate
        self._passing = False
        discipline = made(kind, options, seed)
        self._replace(discipline, now)
        self._kind = kind

    def begin(self, moment: float) -> None:
        """Let the link be free from ``moment`` on."""
        self._free = moment

    def pass_on(self) -> None:
        """Send everything that waits, and later packets as they come."""
        self._passing = True
        for number, packet in self._waiting.items():
            self.queue.send_on(number, MARKED if packet.ecn == CE else 0)
            self._packets += 1
            self._bytes += packet.length
        self._waiting.clear()
        self._backlog = 0
        self._discipline = FirstInFirstOut(Options({"limit": _FALLBACK_PACKETS}))
        self.queue.flush()
        self.publish()

    def read(self, now: float) -> bool:
        """Take what has arrived; return whether there may be more."""
        receive = self.queue.receive
        for _ in range(_MOST_READ):
            packet = receive()
            if packet is None:
                return False
            if self._passing:
                self.queue.send_on(packet.number, 0)
                continue
            packet.arrived = now
            if not self._waiting:
                self._since = now
            self._waiting[packet.number] = packet
            self._backlog += packet.length
            self._arrive(packet, now)
        return True

    @property
    def wake(self) -> float:
        """Moment when the next packet is due; 0 if none waits."""
        return self._free if self._waiting and self._free < _NEVER else 0.0

    def send(self, now: float, lateness: Lateness) -> None:
        """Send what is due at ``now``, and carry out every decision."""
        while self._waiting and self._free <= now:
            begin = max(self._free, self._since)
            packet = self._depart(now)
            if packet is None:
                break
            lateness.add(now - begin)
            self._free = begin + packet.length * self._seconds_per_byte()
        self.queue.flush()

    def publish(self) -> None:
        """Write the counters to the board."""
        own = self._discipline.statistics()
        drops = self._drops + self._discipline.drops.total()
        marks = self._marks + self._discipline.marks
        self._slot.write(
            Counts(
                *(len(self._waiting), self._backlog, drops, marks, self._packets, self._bytes),
                *(self._sojourn_us, int(not self._passing)),
            ),
            [max(0, value) for value in own.values()][:MOST_STATISTICS],
        )

    # --- the discipline ---------------------------------------------------------------------

    def _seconds_per_byte(self) -> float:
        own = self._discipline.rate
        return max(self._link_s, 8 / own) if own else self._link_s

    def _arrive(self, packet: Packet, now: float) -> None:
        try:
            self._discipline.arrive(packet, now)
            self._drop()
        except Exception as error:  # noqa: BLE001 - the file may be a user's
            self._fall_back(error, now)

    def _depart(self, now: float) -> Packet | None:
        try:
            packet = self._chosen(now)
        except Exception as error:  # noqa: BLE001 - the file may be a user's
            self._fall_back(error, now)
            return None
        if packet is None:
            return None
        self._backlog -= packet.length
        self._packets += 1
        self._bytes += packet.length
        sojourn_us = round((now - packet.arrived) * 1e6)
        self._sojourn_us += sojourn_us
        self._slot.count_sojourn(sojourn_us)
        self.queue.send_on(packet.number, PACED | MARKED if packet.ecn == CE else PACED)
        return packet

    def _chosen(self, now: float) -> Packet | None:
        """Return the packet to send; raises ``RuntimeError`` if some wait and none is chosen."""
        packet = self._discipline.depart(now)
        self._drop()
        if packet is not None:
            del self._waiting[packet.number]
        elif self._waiting:
            raise RuntimeError(f"dequeue returns None while {len(self._waiting)} packets wait")
        return packet

    def _drop(self) -> None:
        """Carry out the discipline's drops. Raises ``KeyError`` for a packet dropped twice."""
        dropped = self._discipline.dropped
        if not dropped:
            return
        for packet in dropped:
            del self._waiting[packet.number]
            self._backlog -= packet.length
            self.queue.discard(packet.number)
        dropped.clear()

    def _replace(self, discipline: Discipline, now: float) -> None:
        """Give what waits to another discipline."""
        before, self._discipline = self._discipline, discipline
        self._drops += before.drops.total()
        self._marks += before.marks
        self.names = list(discipline.statistics())[:MOST_STATISTICS]
        for packet in list(self._waiting.values()):
            self._arrive(packet, now)

    def _fall_back(self, error: Exception, now: float) -> None:
        """Let a FIFO take over, with everything that waits."""
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}, line {last.lineno}"
        self.fault = f"{self._kind}: {type(error).__name__}: {error} ({where})"
        room = max(_FALLBACK_PACKETS, 2 * len(self._waiting))
        self._kind = "fifo"
        self._discipline.dropped.clear()
        self._replace(FirstInFirstOut(Options({"limit": room})), now)

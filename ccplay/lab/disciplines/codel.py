"""CoDel, "controlled delay": RFC 8289; Nichols, Jacobson, ACM Queue 10(5), 2012.

CoDel measures how long each packet has waited, its sojourn time, when the packet leaves. A queue
that absorbs bursts empties at least once per interval; a queue that does not is a standing queue,
which only adds delay. So

    sojourn < target, or at most one MTU waits    the queue is good
    sojourn >= target for a whole interval        drop one packet, and from then on one at

        drop_next = drop_next + interval / sqrt(count)                        (control law)

until the sojourn time of a packet is below target again. ``count`` is the number of drops since
dropping began: TCP's rate is proportional to 1 / sqrt(loss rate), so it falls linearly with time.
Dropping that begins again soon resumes near the ``count`` that sufficed the last time.

Names and steps are those of RFC 8289, section 5. An ECN-capable packet is marked and sent instead
of dropped, as in the kernel (include/net/codel_impl.h), from which ``ce_threshold`` comes too: a
packet that waited longer than that is marked at once.
"""

from __future__ import annotations

from math import sqrt

from ccplay.lab.disciplines.base import MTU, Discipline, Fifo, Options, Packet

_RESUME_INTERVALS = 16
"""Intervals after ``drop_next`` within which dropping resumes at its former rate; section 4.3."""


class Control:
    """The state of CoDel for one queue, and its dequeue routine: RFC 8289, section 5.5."""

    __slots__ = ("count", "drop_next", "dropping", "first_above_time", "lastcount", "sojourn")

    def __init__(self) -> None:
        self.count = 0
        """Number of drops since dropping began."""
        self.lastcount = 0
        """``count`` with which dropping began the last time."""
        self.dropping = False
        self.first_above_time = 0.0
        """Moment when the queue will have been standing for an interval; 0 while it is good."""
        self.drop_next = 0.0
        """Moment of the next drop."""
        self.sojourn = 0.0
        """Sojourn time in seconds of the last packet taken from the queue."""

    def dequeue(self, queue: Fifo, now: float, rules: ControlledDelay) -> Packet | None:
        """Return the packet to send; ``rules`` has the parameters, and drops and marks packets."""
        packet, ok_to_drop = self._dodequeue(queue, now, rules)
        if self.dropping:
            if not ok_to_drop:
                self.dropping = False
            while self.dropping and now >= self.drop_next and packet is not None:
                self.count += 1
                if rules.mark_or_drop(packet):
                    self.drop_next = self.control_law(self.drop_next, rules.interval)
                    break
                packet, ok_to_drop = self._dodequeue(queue, now, rules)
                if not ok_to_drop:
                    self.dropping = False
                else:
                    self.drop_next = self.control_law(self.drop_next, rules.interval)
        elif ok_to_drop and packet is not None:
            if not rules.mark_or_drop(packet):
                packet, _ = self._dodequeue(queue, now, rules)
            self.dropping = True
            delta = self.count - self.lastcount
            recent = now - self.drop_next < _RESUME_INTERVALS * rules.interval
            self.count = delta if delta > 1 and recent else 1
            self.drop_next = self.control_law(now, rules.interval)
            self.lastcount = self.count
        if packet is not None and self.sojourn > rules.ce_threshold:
            rules.mark(packet)
        return packet

    def control_law(self, since: float, interval: float) -> float:
        """Return the moment of the next drop after the one at ``since``."""
        return since + interval / sqrt(self.count)

    def _dodequeue(
        self, queue: Fifo, now: float, rules: ControlledDelay
    ) -> tuple[Packet | None, bool]:
        """Return the next packet, and whether the queue has been standing for an interval."""
        packet = queue.pop()
        if packet is None:
            self.first_above_time = 0.0
            return None, False
        self.sojourn = now - packet.arrived
        if self.sojourn < rules.target or queue.bytes <= MTU:
            self.first_above_time = 0.0
        elif not self.first_above_time:
            self.first_above_time = now + rules.interval
        elif now >= self.first_above_time:
            return packet, True
        return packet, False


class ControlledDelay(Discipline):
    """What CoDel on one queue and on the queues of flows have in common: parameters and verdict."""

    def configure(self, options: Options) -> None:
        """Set the parameters, those of tc-codel(8)."""
        self.limit = options.count("limit")
        self.target = options.seconds("target")
        self.interval = options.seconds("interval")
        self.ecn = options.flag("ecn")
        self.ce_threshold = options.seconds("ce_threshold", float("inf"))

    def mark_or_drop(self, packet: Packet) -> bool:
        """Mark the packet and return True; if that is impossible, drop it and return False."""
        if self.ecn and self.mark(packet):
            return True
        self.drop(packet, "codel")
        return False


class CoDel(ControlledDelay):
    """One queue with CoDel."""

    def __init__(self, options: Options, seed: int = 0) -> None:
        self.queue = Fifo()
        self.control = Control()
        super().__init__(options, seed)

    def enqueue(self, packet: Packet, now: float) -> None:
        """Append the packet if there is room; CoDel itself acts when packets leave."""
        if self.qlen < self.limit:
            self.queue.push(packet)
        else:
            self.drop(packet, "limit")

    def dequeue(self, now: float) -> Packet | None:
        """Return the oldest packet that CoDel does not drop."""
        return self.control.dequeue(self.queue, now, self)

    def statistics(self) -> dict[str, int]:
        """Return the values of ``tc -s qdisc``: count, sojourn time of the last packet, state."""
        return {
            "codel_count": self.control.count,
            "codel_ldelay_us": round(self.control.sojourn * 1e6),
            "codel_dropping": int(self.control.dropping),
        }

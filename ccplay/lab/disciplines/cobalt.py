"""COBALT, CAKE's active queue management: CoDel and BLUE together.

Høiland-Jørgensen, Täht, Morton, "Piece of CAKE", LANMAN 2018; ``cobalt_should_drop``, sch_cake.c.

CoDel's control law (``codel.py``) decides while packets wait longer than target; once they do not,
``count`` falls again step by step, at the rate at which it grew. For flows that don't react there
is BLUE (Feng et al., 1999): a drop probability that grows by 1/256 each time the queue overflows,
and falls by 1/4096 each time it runs empty, at most once per target.
"""

from __future__ import annotations

from math import sqrt

from ccplay.lab.disciplines.base import MTU, Discipline, Packet

_INCREASE, _DECREASE = 1 / 256, 1 / 4096

SEND, MARK, DROP = "send", "mark", "drop"


class Cobalt:
    """The state of COBALT for one queue."""

    __slots__ = ("blue_at", "count", "drop_next", "dropping", "p_drop")

    def __init__(self) -> None:
        self.count = 0
        self.dropping = False
        self.drop_next = 0.0
        self.p_drop = 0.0
        """BLUE's drop probability."""
        self.blue_at = 0.0
        """Moment of the last change of BLUE's drop probability."""

    def overflowed(self, now: float, interval: float, target: float) -> None:
        """Adapt to a queue that had no room; ``cobalt_queue_full``."""
        if now - self.blue_at > target:
            self.p_drop = min(1.0, self.p_drop + _INCREASE)
            self.blue_at = now
        self.dropping = True
        self.drop_next = now
        self.count = max(1, self.count)

    def emptied(self, now: float, interval: float, target: float) -> None:
        """Adapt to a queue that ran empty; ``cobalt_queue_empty``."""
        if self.p_drop and now - self.blue_at > target:
            self.p_drop = max(0.0, self.p_drop - _DECREASE)
            self.blue_at = now
        self.dropping = False
        if self.count and now >= self.drop_next:
            self.count -= 1
            self.drop_next = self._next(self.drop_next, interval)

    def decide(
        self, packet: Packet, now: float, limits: tuple[float, float, float], rules: Discipline
    ) -> str:
        """Return ``SEND``, ``MARK`` or ``DROP`` for a packet that is about to leave.

        ``limits`` are target, interval and the transmission time of an MTU, in seconds.
        """
        target, interval, mtu_s = limits
        sojourn = now - packet.arrived
        over = sojourn > target and sojourn > 4 * mtu_s
        next_due = bool(self.count) and now >= self.drop_next
        decision = SEND
        if over:
            if not self.dropping:
                self.dropping = True
                self.drop_next = self._next(now, interval)
            self.count = max(1, self.count)
        else:
            self.dropping = False
        if next_due and self.dropping:
            decision = MARK
            self.count += 1
            self.drop_next = self._next(self.drop_next, interval)
        else:
            while next_due:
                self.count -= 1
                self.drop_next = self._next(self.drop_next, interval)
                next_due = bool(self.count) and now >= self.drop_next
        # BLUE is for flows that do not react, not even to marks.
        if self.p_drop and rules.random() < self.p_drop:
            decision = DROP
        if not self.count:
            self.drop_next = now + interval
        elif now > self.drop_next and decision != DROP:
            self.drop_next = now
        return decision

    def _next(self, since: float, interval: float) -> float:
        return since + interval / sqrt(max(1, self.count))


def target_of(rtt: float, mtu_s: float) -> float:
    """Return CAKE's target: ``rtt`` / 20, but at least the time of 1.5 MTU; ``cake_set_rate``."""
    return max(rtt / 20, 1.5 * mtu_s)


def frame_s(rate: int | None) -> float:
    """Return the transmission time of an MTU at a rate in bits per second; 0 without a rate."""
    return MTU * 8 / rate if rate else 0.0

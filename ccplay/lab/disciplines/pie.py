"""PIE, "proportional integral controller enhanced": RFC 8033; sch_pie.c.

PIE drops arriving packets at random. Every 15 ms the probability changes with the queueing delay's
distance from a target, and with the delay's trend since the last update (section 4.2):

    p = p + alpha * (delay - target) + beta * (delay - delay_old)

alpha and beta are per second, and are scaled down while p is small, or a small p would change by
many times itself. With tc they are given in 16ths: 2 and 20 are 0.125 and 1.25.

No packet is dropped while the delay is below half the target and p below 20 %, for the first
150 ms of a burst after low delay, or while at most two MTU wait (section 4.1). Drops are spread
out: at least 0.85 / p packets lie between two, and at most 8.5 / p (section 5.4). The delay is the
sojourn time of the last packet that left (section 5.2), so no departure rate is estimated.
"""

from __future__ import annotations

from ccplay.lab.disciplines.base import MTU, Discipline, Fifo, Options, Packet

T_UPDATE_S = 0.015
"""Seconds between two computations of the probability."""

_MAX_BURST_S = 0.150
"""Seconds at the beginning of a burst in which nothing is dropped."""

MARK_ECN_THRESHOLD = 0.1
"""Probability above which ECN-capable packets are dropped rather than marked; section 5.1."""

_SCALES = ((0.000001, 2048), (0.00001, 512), (0.0001, 128), (0.001, 32), (0.01, 8), (0.1, 2))
"""Probabilities, and the divisor of a step below each of them; sections 4.2 and 5.6."""

_HIGH_DELAY_S = 0.25
"""Delay in seconds above which a step is larger by 0.02; ``pie_calculate_probability``."""


class Probability:
    """The controller for one queue."""

    __slots__ = ("accumulated", "burst_s", "delay_old_s", "delay_s", "p")

    def __init__(self) -> None:
        self.p = 0.0
        """Probability that an arriving packet is dropped."""
        self.accumulated = 0.0
        """Sum of the probabilities of arriving packets since the last drop."""
        self.burst_s = _MAX_BURST_S
        """Seconds left in which nothing is dropped."""
        self.delay_s = 0.0
        """Sojourn time of the last packet that left, in seconds."""
        self.delay_old_s = 0.0
        """``delay_s`` at the last update."""

    def update(self, target_s: float, alpha: float, beta: float) -> None:
        """Update the probability; ``calculate_drop_prob`` of RFC 8033."""
        delay, old = self.delay_s, self.delay_old_s
        step = alpha * (delay - target_s) + beta * (delay - old)
        step /= next((divisor for below, divisor in _SCALES if self.p < below), 1)
        if self.p >= 0.1:
            step = min(step, 0.02)
        if delay > _HIGH_DELAY_S:
            step += 0.02
        self.p += step
        if delay == 0.0 and old == 0.0:
            self.p *= 0.98
        self.p = min(1.0, max(0.0, self.p))
        self.delay_old_s = delay
        self.burst_s = max(0.0, round(self.burst_s - T_UPDATE_S, 6))
        if self.p == 0.0 and delay < target_s / 2 and old < target_s / 2:
            self.burst_s = _MAX_BURST_S

    def drop_early(self, backlog: int, target_s: float, draw: float) -> bool:
        """Return whether to drop the arriving packet; ``draw`` is random, from 0 to 1."""
        if self.burst_s > 0:
            return False
        if self.delay_old_s < target_s / 2 and self.p < 0.2:
            return False
        if backlog <= 2 * MTU:
            return False
        if self.p == 0.0:
            self.accumulated = 0.0
        self.accumulated += self.p
        if self.accumulated < 0.85:
            return False
        if self.accumulated >= 8.5 or draw < self.p:
            self.accumulated = 0.0
            return True
        return False

    def departed(self, packet: Packet, now: float, left: int) -> None:
        """Record the delay of a packet that left ``left`` bytes behind; 0 if it left none."""
        self.delay_s = now - packet.arrived if left else 0.0


class ProportionalIntegral(Discipline):
    """What PIE on one queue and on the queues of flows have in common."""

    update_s = T_UPDATE_S

    def configure(self, options: Options) -> None:
        """Set the parameters, those of tc-pie(8)."""
        self.limit = options.count("limit")
        self.target = options.seconds("target")
        self.alpha = options.count("alpha") / 16
        self.beta = options.count("beta") / 16
        self.ecn = options.flag("ecn")

    def accepts(self, packet: Packet, control: Probability, queue: Fifo) -> bool:
        """Return whether the packet may join a queue; drop it if not."""
        if self.qlen >= self.limit:
            self.drop(packet, "limit")
            return False
        if not control.drop_early(queue.bytes, self.target, self.random()):
            return True
        if self.ecn and control.p <= MARK_ECN_THRESHOLD and self.mark(packet):
            return True
        self.drop(packet, "pie")
        return False


class PIE(ProportionalIntegral):
    """One queue with PIE."""

    def __init__(self, options: Options, seed: int = 0) -> None:
        self.queue = Fifo()
        self.control = Probability()
        super().__init__(options, seed)

    def enqueue(self, packet: Packet, now: float) -> None:
        """Append the packet unless it is dropped early."""
        if self.accepts(packet, self.control, self.queue):
            self.queue.push(packet)

    def dequeue(self, now: float) -> Packet | None:
        """Return the oldest packet and record its delay."""
        packet = self.queue.pop()
        if packet is not None:
            self.control.departed(packet, now, self.queue.bytes)
        return packet

    def update(self, now: float) -> None:
        """Update the probability."""
        self.control.update(self.target, self.alpha, self.beta)

    def statistics(self) -> dict[str, int]:
        """Return the probability in millionths, and the delay from which it is computed."""
        return {
            "pie_prob_1000000": round(self.control.p * 1e6),
            "pie_delay_us": round(self.control.delay_s * 1e6),
        }

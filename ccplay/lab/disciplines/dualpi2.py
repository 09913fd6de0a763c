"""DualPI2: two queues for one link, coupled; RFC 9332, appendix A.

L4S packets (ECT(1) or CE, RFC 9331) have a queue that is marked at a shallow threshold, all others
a classic queue. One proportional integral controller serves both, every ``tupdate``:

    p' = p' + alpha * (delay - target) + beta * (delay - delay_old)
    alpha = 0.1 * tupdate / max_rtt^2,  beta = 0.3 / max_rtt                     (per second)

``delay`` is that of the oldest packet in either queue. The rate of a classic flow is proportional
to 1 / sqrt(p), that of an L4S flow to 1 / p. So that a flow of each kind gets the same rate,

    p_C  = p'^2                                    drop, or mark, in the classic queue
    p_CL = coupling_factor * p'                    mark in the L4S queue
    p_L  = max(p_CL, 1 if the packet waited longer than step_thresh, else 0)

The step marks no packet that leaves the L4S queue empty: Th_len is one packet. L4S packets go
first, but the classic queue is guaranteed ``classic_protection`` percent of the link while both
have packets. When p_CL reaches 1, L4S packets are dropped too, with p_C (overload).
Marks and drops are evenly spaced: probabilities are added up until their sum reaches 1 (``recur``).
"""

from __future__ import annotations

from ccplay.lab.disciplines.base import CE, ECT_1, MTU, Discipline, Fifo, Options, Packet


class DualPI2(Discipline):
    """A classic queue and one for L4S, with coupled probabilities."""

    def __init__(self, options: Options, seed: int = 0) -> None:
        self.classic = Fifo()
        self.l4s = Fifo()
        self.p = 0.0
        """Base probability p' of RFC 9332."""
        self.delay_old = 0.0
        self.delays = [0.0, 0.0]
        """Sojourn times in seconds of the last classic and the last L4S packet that left."""
        self.credit = 0.0
        """Balance in bytes of the classic queue's share; the queue sends from one MTU on."""
        self._sums = [0.0, 0.0]
        super().__init__(options, seed)

    def configure(self, options: Options) -> None:
        """Set the parameters, those of tc-dualpi2(8)."""
        self.limit = options.count("limit")
        self.target = options.seconds("target")
        self.update_s = options.seconds("tupdate")
        max_rtt = options.seconds("max_rtt")
        self.alpha = 0.1 * self.update_s / max_rtt**2
        self.beta = 0.3 / max_rtt
        self.coupling = options.count("coupling_factor")
        self.step = options.seconds("step_thresh")
        self.protection = options.count("classic_protection") / 100

    def enqueue(self, packet: Packet, now: float) -> None:
        """Append the packet to the queue of its kind if there is room; figure 3."""
        if self.qlen >= self.limit:
            self.drop(packet, "limit")
        elif packet.ecn in (ECT_1, CE):
            self.l4s.push(packet)
        else:
            self.classic.push(packet)

    def dequeue(self, now: float) -> Packet | None:
        """Return the next packet of the queue whose turn it is; figure 4."""
        while self.classic or self.l4s:
            if self._takes_l4s():
                packet = self.l4s.pop()
                if packet is not None and self._passes_l4s(packet, now):
                    return packet
            else:
                packet = self.classic.pop()
                if packet is not None and self._passes_classic(packet, now):
                    return packet
        return None

    def _takes_l4s(self) -> bool:
        """Return whether the L4S queue sends next: always, except for the classic queue's share."""
        if not self.classic or not self.l4s:
            self.credit = 0.0
            return not self.classic
        if self.credit >= MTU:
            self.credit -= (1 - self.protection) * self.classic.packets[0].length
            return False
        self.credit += self.protection * self.l4s.packets[0].length
        return True

    def _passes_l4s(self, packet: Packet, now: float) -> bool:
        self.delays[1] = now - packet.arrived
        coupled = self.coupling * self.p
        if coupled >= 1 and self._recur(1, self.p**2):
            self.drop(packet, "overload")
            return False
        native = 1.0 if self.delays[1] > self.step and self.l4s else 0.0
        if self._recur(1, min(1.0, max(native, coupled))):
            self.mark(packet)
        return True

    def _passes_classic(self, packet: Packet, now: float) -> bool:
        self.delays[0] = now - packet.arrived
        if not self._recur(0, self.p**2):
            return True
        if self.coupling * self.p < 1 and self.mark(packet):
            return True
        self.drop(packet, "pi2")
        return False

    def _recur(self, queue: int, probability: float) -> bool:
        """Return whether a packet is chosen; the deterministic variant of figure 5."""
        self._sums[queue] += probability
        if self._sums[queue] >= 1:
            self._sums[queue] -= 1
            return True
        return False

    def update(self, now: float) -> None:
        """Update p'; figure 6."""
        oldest = [queue.packets[0].arrived for queue in (self.classic, self.l4s) if queue]
        delay = max(0.0, now - min(oldest)) if oldest else 0.0
        self.p += self.alpha * (delay - self.target) + self.beta * (delay - self.delay_old)
        self.p = min(1.0, max(0.0, self.p))
        self.delay_old = delay

    def statistics(self) -> dict[str, int]:
        """Return p' in millionths, and waiting packets and last sojourn time of both queues."""
        return {
            "dualpi2_prob_1000000": round(self.p * 1e6),
            "dualpi2_classic_packets": len(self.classic),
            "dualpi2_l4s_packets": len(self.l4s),
            "dualpi2_classic_delay_us": max(0, round(self.delays[0] * 1e6)),
            "dualpi2_l4s_delay_us": max(0, round(self.delays[1] * 1e6)),
        }

"""RED, random early detection: Floyd, Jacobson, IEEE/ACM ToN 1(4), 1993; tc-red(8), sch_red.c.

RED drops, or marks, packets at random as the average queue grows, so that flows are notified early,
and in proportion to what they send. At every arrival (the paper's figure 2)

    avg = (1 - w) * avg + w * q                     if the queue is not empty
    avg = (1 - w)^m * avg                           if it is; m packets could have left meanwhile

    min <= avg < max    with probability  pa = pb / (1 - count * pb)
                        where             pb = max_p * (avg - min) / (max - min)
    max <= avg          always

``count`` is the number of packets since the last one dropped, so that drops are evenly spaced.
Queues are in bytes; w is 2^-n, chosen by tc so that a burst of (2 * min + max) / 3 raises the
average to min (``tc_red_eval_ewma``). max_p is 2 %.

With ``adaptive``, max_p keeps the average halfway between both thresholds (Floyd, Gummadi, Shenker,
"Adaptive RED", 2001). Every half second

    avg > min + 0.6 * (max - min), max_p <= 0.5     max_p = max_p + min(0.01, max_p / 4)
    avg < min + 0.4 * (max - min), max_p >= 0.01    max_p = max_p * 0.9
"""

from __future__ import annotations

from ccplay.lab.disciplines.base import Discipline, Fifo, Options, Packet

_AVERAGE_PACKET = 1000
"""Length of an average packet in bytes, as for the kernel's RED in ``lab/qdisc_options.py``."""

_MAX_P = 0.02
_ADAPT_S = 0.5


def weight(least: float, burst: float) -> float:
    """Return the largest w = 2^-n at which a burst raises the average to at most ``least`` packets.

    ``burst`` is the number of its packets.
    """
    w = 0.5
    room = burst + 1 - least
    for _ in range(31):
        if room <= (1 - (1 - w) ** burst) / w:
            break
        w /= 2
    return w


class Average:
    """The average queue in bytes or in packets, and the choice of packets according to it."""

    __slots__ = ("avg", "count", "idle_since", "max_p")

    def __init__(self) -> None:
        self.avg = 0.0
        self.count = -1
        """Packets since the last chosen one; -1 while the average is below min."""
        self.max_p = _MAX_P
        self.idle_since: float | None = 0.0
        """Moment since which the queue has been empty; None if it is not empty."""

    def arrived(self, queue: int, now: float, rules: RandomEarly) -> None:
        """Update the average with the queue that an arriving packet finds."""
        if queue:
            self.avg += rules.w * (queue - self.avg)
        else:
            idle = 0.0 if self.idle_since is None else now - self.idle_since
            self.avg *= (1 - rules.w) ** (idle / rules.packet_s)

    def chooses(self, rules: RandomEarly, draw: float) -> bool:
        """Return whether the arriving packet is chosen; ``draw`` is random, from 0 to 1."""
        if self.avg < rules.least:
            self.count = -1
            return False
        if self.avg >= rules.most:
            self.count = 0
            return True
        self.count += 1
        pb = self.probability(rules)
        if pb and (self.count * pb >= 1 or draw < pb / (1 - self.count * pb)):
            self.count = 0
            return True
        return False

    def probability(self, rules: RandomEarly) -> float:
        """Return pb, the probability before ``count`` is taken into account."""
        share = (self.avg - rules.least) / (rules.most - rules.least)
        return self.max_p * min(1.0, max(0.0, share))


class RandomEarly(Discipline):
    """What RED and CHOKe have in common."""

    unit = _AVERAGE_PACKET
    """Bytes per unit of a threshold: RED's count bytes, CHOKe's average packets."""

    def __init__(self, options: Options, seed: int = 0) -> None:
        self.queue = Fifo()
        self.average = Average()
        super().__init__(options, seed)

    def configure(self, options: Options) -> None:
        """Set the parameters."""
        self.limit = options.count("limit")
        self.least = options.count("min")
        self.most = options.count("max")
        self.ecn = options.flag("ecn")
        packets = _AVERAGE_PACKET // self.unit
        least, most = self.least / packets, self.most / packets
        self.w = weight(least, (2 * least + most) / 3)
        self.packet_s = _AVERAGE_PACKET * 8 / options.count("bandwidth")

    def dequeue(self, now: float) -> Packet | None:
        """Return the oldest packet."""
        packet = self.queue.pop()
        if packet is not None and not self.queue:
            self.average.idle_since = now
        return packet


class RED(RandomEarly):
    """One queue with RED."""

    unit = 1

    def configure(self, options: Options) -> None:
        """Set the parameters, those of tc-red(8)."""
        super().configure(options)
        self.adaptive = options.flag("adaptive")
        self.update_s = _ADAPT_S if self.adaptive else 0.0

    def enqueue(self, packet: Packet, now: float) -> None:
        """Append the packet unless it is chosen to be dropped, or there is no room."""
        average = self.average
        average.arrived(self.backlog, now, self)
        if average.chooses(self, self.random()) and not (self.ecn and self.mark(packet)):
            self.drop(packet, "red")
        elif self.backlog + packet.length > self.limit:
            self.drop(packet, "limit")
        else:
            average.idle_since = None
            self.queue.push(packet)

    def update(self, now: float) -> None:
        """Adapt max_p."""
        average, between = self.average, self.most - self.least
        if average.avg > self.least + 0.6 * between and average.max_p <= 0.5:
            average.max_p += min(0.01, average.max_p / 4)
        elif average.avg < self.least + 0.4 * between and average.max_p >= 0.01:
            average.max_p *= 0.9

    def statistics(self) -> dict[str, int]:
        """Return the average queue in bytes, and the probabilities pb and max_p in millionths."""
        return {
            "red_average_bytes": round(self.average.avg),
            "red_prob_1000000": round(self.average.probability(self) * 1e6),
            "red_max_p_1000000": round(self.average.max_p * 1e6),
        }

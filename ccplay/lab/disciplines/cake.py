"""COBALT, CAKE's active queue management: CoDel and BLUE together.

Høiland-Jørgensen, Täht, Morton, "Piece of CAKE", LANMAN 2018; ``cobalt_should_drop``, sch_cake.c.

CoDel's control law (``codel.py``) decides while packets wait longer than target; once they do not,
``count`` falls again step by step, at the rate at which it grew. For flows that don't react there
is BLUE (Feng et al., 1999): a drop probability that grows by 1/256 each time the queue overflows,
and falls by 1/4096 each time it runs empty, at most once per target.

CAKE: shaper, tins, fair queues for hosts and flows, and COBALT; tc-cake(8), sch_cake.c.

Høiland-Jørgensen, Täht, Morton, "Piece of CAKE: A Comprehensive Queue Management Solution for Home
Gateways", LANMAN 2018.

    bandwidth        the link is shaped to this rate, or to its own if that is lower
    tins             the code point of a packet selects one of several tins, each with a share
    queues           in a tin each flow has a queue, served by deficit round robin (``rounds.py``)
    hosts            a flow's quantum is divided by the number of active flows of its host:
                     quantum = quantum / max(flows of the source, flows of the destination)
    COBALT           on each queue (``Cobalt``), target rtt / 20, interval rtt

Left out: filtering ACKs, the framing of other link layers, NAT lookup, autorate ingress, and the
tins of diffserv8 and precedence. Flows never share a queue, whereas the kernel has 1024 queues per
tin and an 8-way set-associative hash that makes sharing rare. Tins share the link by weight even if
it is shaped, whereas the kernel then limits the priority of higher tins to their share of the
bandwidth.
"""

from __future__ import annotations

from collections import Counter
from math import sqrt

from ccplay.lab.disciplines.base import MTU, Discipline, Options, Packet
from ccplay.lab.disciplines.rounds import Rounds, Turn

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


_BULK, _BEST_EFFORT, _VIDEO, _VOICE = 1 / 16, 1.0, 1 / 2, 1 / 4
"""Weights of tins; ``cake_config_diffserv4``."""

_QUANTUM = 1024
"""Bytes per round for a tin of weight 1; ``cake_config_diffserv4``."""

_BULKS = frozenset((1, 8))
"""Code points of bulk: LE and CS1."""

_VOICES = {3: frozenset((4, 44, 46, 48, 56)), 4: frozenset((46, 48, 56))}
"""Code points of voice by the number of tins: EF, CS6, CS7, and in ``diffserv3`` VA and 4 (formerly
"minimise delay")."""

_VIDEOS = frozenset((4, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, 38, 40, 44))
"""Code points of video in ``diffserv4`` since Linux 6.14: 4, CS2 to CS5, AF2x to AF4x, and VA."""

_TINS: dict[str, tuple[tuple[str, float], ...]] = {
    "besteffort": (("best_effort", _BEST_EFFORT),),
    "diffserv3": (("bulk", _BULK), ("best_effort", _BEST_EFFORT), ("voice", _VOICE)),
    "diffserv4": (
        ("bulk", _BULK),
        ("best_effort", _BEST_EFFORT),
        ("video", _VIDEO),
        ("voice", _VOICE),
    ),
}
"""Names and weights of tins by ``diffserv_mode``."""

_LEAST_MEMORY = 4 << 20
"""Smallest room for packets in bytes, at any rate; ``cake_reconfigure``."""


class CakeFlow(Turn):
    """The queue of one flow, or of a host or pair of hosts if ``flow_mode`` ignores flows."""

    __slots__ = ("control", "destination", "key", "source")

    def __init__(self, key: int, packet: Packet) -> None:
        super().__init__()
        self.key = key
        self.source, self.destination = packet.source, packet.destination
        self.control = Cobalt()


class Tin:
    """The flows of one class of service."""

    def __init__(self, name: str, weight: float) -> None:
        self.name = name
        self.weight = weight
        self.flows: dict[int, CakeFlow] = {}
        self.rounds: Rounds[CakeFlow] = Rounds()
        self.sources: Counter[int] = Counter()
        """Number of flows with a queue, by source."""
        self.destinations: Counter[int] = Counter()
        self.backlog = 0
        self.deficit = 0.0


class CAKE(Discipline):
    """Tins of queues, one for each flow or host."""

    def __init__(self, options: Options, seed: int = 0) -> None:
        self.tins: list[Tin] = []
        super().__init__(options, seed)

    def configure(self, options: Options) -> None:
        """Set the parameters, those of tc-cake(8).

        Raises ``ValueError`` for a value that is left out here.
        """
        mode = options.word("diffserv_mode")
        if mode not in _TINS:
            known = ", ".join(_TINS)
            raise ValueError(f"cake.py has no diffserv_mode {mode} (it has: {known})")
        if options.flag("ack_filter"):
            raise ValueError("cake.py filters no ACKs: leave ack_filter off")
        self.flow_mode = options.word("flow_mode")
        self.bandwidth = options.count("bandwidth") or None
        self.interval = options.seconds("rtt")
        self.mtu_s = frame_s(self.bandwidth)
        self.target = target_of(self.interval, self.mtu_s)
        room = int((self.bandwidth or 0) / 8 * self.interval * 4)
        self.memory = options.count("memlimit") or max(_LEAST_MEMORY, room)
        if [tin.name for tin in self.tins] != [name for name, _ in _TINS[mode]]:
            self.tins = [Tin(name, share) for name, share in _TINS[mode]]

    @property
    def rate(self) -> int | None:
        """Rate in bits per second to which the link is shaped; None if it is not."""
        return self.bandwidth

    def enqueue(self, packet: Packet, now: float) -> None:
        """Append the packet to its flow's queue; drop from the longest queue if memory is full."""
        tin = self.tins[self._tin(packet.dscp)]
        key = self._key(packet)
        flow = tin.flows.get(key)
        if flow is None:
            flow = tin.flows[key] = CakeFlow(key, packet)
            tin.sources[packet.source] += 1
            tin.destinations[packet.destination] += 1
        flow.queue.push(packet)
        tin.backlog += packet.length
        tin.rounds.begin(flow, MTU * self._share(tin, flow))
        if self.backlog + packet.length > self.memory:
            self._make_room(now)

    def _tin(self, dscp: int) -> int:
        tins = len(self.tins)
        if tins == 1 or dscp in _BULKS:
            return 0
        if dscp in _VOICES[tins]:
            return tins - 1
        return 2 if tins == 4 and dscp in _VIDEOS else 1

    def _key(self, packet: Packet) -> int:
        """Return the key of a packet's queue: its flow or hosts, according to ``flow_mode``."""
        match self.flow_mode:
            case "srchost":
                return packet.source
            case "dsthost":
                return packet.destination
            case "hosts":
                return packet.source << 32 | packet.destination
        return packet.flow

    def _share(self, tin: Tin, flow: CakeFlow) -> float:
        """Return the part of a quantum that a flow gets, given the other flows of its hosts."""
        loads = [1]
        if self.flow_mode in ("dual-srchost", "triple-isolate"):
            loads.append(tin.sources[flow.source])
        if self.flow_mode in ("dual-dsthost", "triple-isolate"):
            loads.append(tin.destinations[flow.destination])
        return 1 / max(loads)

    def _make_room(self, now: float) -> None:
        """Drop the oldest packet of the longest queue in the fullest tin; ``cake_drop``."""
        tin = max(self.tins, key=lambda each: each.backlog)
        flow = tin.rounds.longest()
        packet = flow.queue.pop()
        if packet is not None:
            tin.backlog -= packet.length
            flow.control.overflowed(now, self.interval, self.target)
            self.drop(packet, "memory")

    def dequeue(self, now: float) -> Packet | None:
        """Return the next packet of the queue whose turn it is, in the tin whose turn it is."""
        while any(tin.backlog for tin in self.tins):
            for tin in self.tins:
                if tin.backlog and tin.deficit > 0:
                    packet = self._from(tin, now)
                    if packet is not None:
                        tin.deficit -= packet.length
                        return packet
            for tin in self.tins:
                if not tin.backlog:
                    tin.deficit = 0.0
            self._go_round()
        return None

    def _go_round(self) -> None:
        """Give each tin with packets the quanta of as many rounds as it takes until one may send.

        Quanta are smaller than a full packet, so tins alternate packet by packet.
        """
        waiting = [tin for tin in self.tins if tin.backlog]
        if not waiting:
            return
        rounds = min(int(-tin.deficit / (_QUANTUM * tin.weight)) + 1 for tin in waiting)
        for tin in waiting:
            tin.deficit += rounds * _QUANTUM * tin.weight

    def _from(self, tin: Tin, now: float) -> Packet | None:
        limits = self.target, self.interval, self.mtu_s

        def pull(flow: CakeFlow) -> Packet | None:
            while (packet := flow.queue.pop()) is not None:
                tin.backlog -= packet.length
                decision = flow.control.decide(packet, now, limits, self)
                # The last packet of a queue is always sent.
                if decision == SEND or not flow.queue:
                    return packet
                if decision != DROP and self.mark(packet):
                    return packet
                flow.credits -= packet.length
                self.drop(packet, "cobalt")
            flow.control.emptied(now, self.interval, self.target)
            return None

        def retire(flow: CakeFlow) -> None:
            del tin.flows[flow.key]
            for hosts, host in ((tin.sources, flow.source), (tin.destinations, flow.destination)):
                hosts[host] -= 1
                if not hosts[host]:
                    del hosts[host]

        return tin.rounds.next(MTU, pull, lambda flow: self._share(tin, flow), retire)

    def statistics(self) -> dict[str, int]:
        """Return the numbers of bytes and of flows in each tin."""
        found = {}
        for tin in self.tins:
            found[f"cake_{tin.name}_bytes"] = tin.backlog
            found[f"cake_{tin.name}_flows"] = len(tin.flows)
        return found

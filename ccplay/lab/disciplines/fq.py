"""FQ, a queue for each flow, served in turn: tc-fq(8), sch_fq.c.

Each flow has a queue of its own, which no flow with the same hash shares, and sends ``quantum``
bytes in turn, new flows first (``rounds.py``); a new flow begins with ten MTU (RFC 6928). Apart
from marks above ``ce_threshold`` there is no active queue management: at most ``flow_limit``
packets of a flow wait, and further ones are dropped. So a flow that fills its queue delays no other
flow.

The kernel's FQ also holds packets back until the moment that their sender's TCP has set for them
(pacing). In front of a router's link packets have no such moment: pacing is left to the sender.
"""

from __future__ import annotations

from ccplay.lab.disciplines.base import MTU, Discipline, Options, Packet
from ccplay.lab.disciplines.rounds import Rounds, Turn

_INITIAL_QUANTUM = 10 * MTU


class FqFlow(Turn):
    """The queue of one flow."""

    __slots__ = ("flow",)

    def __init__(self, flow: int) -> None:
        super().__init__()
        self.flow = flow


class FQ(Discipline):
    """A queue for each flow, those of new flows first."""

    def __init__(self, options: Options, seed: int = 0) -> None:
        self.flows: dict[int, FqFlow] = {}
        self.rounds: Rounds[FqFlow] = Rounds()
        super().__init__(options, seed)

    def configure(self, options: Options) -> None:
        """Set the parameters, those of tc-fq(8)."""
        self.limit = options.count("limit")
        self.flow_limit = options.count("flow_limit")
        self.quantum = options.count("quantum")
        self.ce_threshold = options.seconds("ce_threshold", float("inf"))

    def enqueue(self, packet: Packet, now: float) -> None:
        """Append the packet to its flow's queue if there is room, else drop it."""
        flow = self.flows.get(packet.flow)
        if self.qlen >= self.limit:
            self.drop(packet, "limit")
        elif flow is not None and len(flow.queue) >= self.flow_limit:
            self.drop(packet, "flow_limit")
        else:
            if flow is None:
                flow = self.flows[packet.flow] = FqFlow(packet.flow)
            flow.queue.push(packet)
            self.rounds.begin(flow, _INITIAL_QUANTUM)

    def dequeue(self, now: float) -> Packet | None:
        """Return the next packet of the queue whose turn it is; forget flows without packets."""
        packet = self.rounds.next(
            self.quantum,
            lambda flow: flow.queue.pop(),
            retire=lambda flow: self.flows.pop(flow.flow, None),
        )
        if packet is not None and now - packet.arrived > self.ce_threshold:
            self.mark(packet)
        return packet

    def statistics(self) -> dict[str, int]:
        """Return the numbers of new and of old flows."""
        return {"fq_new_flows": len(self.rounds.new), "fq_old_flows": len(self.rounds.old)}

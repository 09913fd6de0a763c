"""FQ-PIE: a fair queue for each flow with PIE on each; sch_fq_pie.c, tc-fq_pie(8).

Queues and their turns are those of FQ-CoDel (``rounds.py``). Each queue has a drop probability of
its own (``pie.py``), computed every 15 ms from the delay of the queue's own packets. So a flow that
fills its queue loses packets, and one that sends little does not.
"""

from __future__ import annotations

from functools import partial

from ccplay.lab.disciplines.base import Options, Packet
from ccplay.lab.disciplines.pie import Probability, ProportionalIntegral
from ccplay.lab.disciplines.rounds import ControlledTurn, HashedRounds


class FQPIE(ProportionalIntegral):
    """A PIE queue for each flow, those of new flows first."""

    def __init__(self, options: Options, seed: int = 0) -> None:
        self.rounds = HashedRounds(partial(ControlledTurn, Probability), seed)
        super().__init__(options, seed)

    def configure(self, options: Options) -> None:
        """Set the parameters, those of tc-fq_pie(8)."""
        super().configure(options)
        self.queues = options.count("flows")
        self.quantum = options.count("quantum")
        self.memory_limit = options.count("memory_limit")

    def enqueue(self, packet: Packet, now: float) -> None:
        """Append the packet to its flow's queue unless it is dropped early."""
        flow = self.rounds.of(packet, self.queues)
        if self.backlog + packet.length > self.memory_limit:
            self.drop(packet, "memory")
        elif self.accepts(packet, flow.control, flow.queue):
            flow.queue.push(packet)
            self.rounds.begin(flow, self.quantum)

    def dequeue(self, now: float) -> Packet | None:
        """Return the next packet of the queue whose turn it is."""

        def pull(flow: ControlledTurn[Probability]) -> Packet | None:
            packet = flow.queue.pop()
            if packet is not None:
                flow.control.departed(packet, now, flow.queue.bytes)
            return packet

        return self.rounds.next(self.quantum, pull)

    def update(self, now: float) -> None:
        """Update the drop probability of each queue."""
        for flow in self.rounds.queues.values():
            flow.control.update(self.target, self.alpha, self.beta)

    def statistics(self) -> dict[str, int]:
        """Return the numbers of new and old queues, and the highest probability in millionths."""
        highest = max((flow.control.p for flow in self.rounds.queues.values()), default=0.0)
        return {
            "fq_pie_new_flows": len(self.rounds.new),
            "fq_pie_old_flows": len(self.rounds.old),
            "fq_pie_prob_1000000": round(highest * 1e6),
        }

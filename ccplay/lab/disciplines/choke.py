"""CHOKe, "choose and keep for responsive flows": Pan, Prabhakar, Psounis, INFOCOM 2000.

In the kernel it is sch_choke.c. CHOKe is RED (``red.py``) with a comparison first: from an average
queue of min on, an arriving packet is compared with one drawn at random from the queue:

    both of one flow     drop both
    otherwise            as RED: drop or mark with RED's probability, always from max on

A flow with a share s of the queue loses a share s of its arriving packets, and one waiting packet
for each of them. So a flow that fills the queue without reacting to drops is throttled, although no
state is kept for any flow. Thresholds count packets.
"""

from __future__ import annotations

from ccplay.lab.disciplines.base import Packet
from ccplay.lab.disciplines.red import RandomEarly


class CHOKe(RandomEarly):
    """One queue with CHOKe."""

    def enqueue(self, packet: Packet, now: float) -> None:
        """Append the packet unless it matches one of its flow, is chosen, or finds no room."""
        average, queue = self.average, self.queue
        average.arrived(len(queue), now, self)
        if average.avg >= self.least and self._meets_itself(packet):
            return
        if average.chooses(self, self.random()) and not (self.ecn and self.mark(packet)):
            self.drop(packet, "red")
        elif len(queue) >= self.limit:
            self.drop(packet, "limit")
        else:
            average.idle_since = None
            queue.push(packet)

    def _meets_itself(self, packet: Packet) -> bool:
        """Draw a waiting packet; drop both if it is of the same flow, and return whether it is."""
        queue = self.queue
        if not queue:
            return False
        place = int(self.random() * len(queue))
        if queue.packets[place].flow != packet.flow:
            return False
        self.drop(queue.take(place), "matched")
        self.drop(packet, "matched")
        self.average.count = 0
        return True

    def statistics(self) -> dict[str, int]:
        """Return the average queue in 1/1000 packet, packets that matched, and pb in millionths."""
        return {
            "choke_average_1000": round(self.average.avg * 1e3),
            "choke_matched_packets": self.drops["matched"],
            "choke_prob_1000000": round(self.average.probability(self) * 1e6),
        }

"""The random faults of a link: the models of tc-netem(8), without any I/O.

Loss is independent or follows the Gilbert-Elliott model. A packet may be duplicated, have a bit
flipped, or be sent at once, ahead of delayed packets. Source: ``netem_enqueue`` of
net/sched/sch_netem.c.
"""

from __future__ import annotations

import random
from typing import NamedTuple

from ccplay.lab.delay.engines import Impairment
from ccplay.model import distributions


class Fate(NamedTuple):
    """What happens to one packet."""

    lost: bool = False
    again: bool = False
    """Whether a duplicate follows the packet."""
    flipped: float = -1.0
    """Position of the flipped bit, as a share of the packet's bits; negative for none."""
    ahead: bool = False
    """Whether the packet is sent without delay, ahead of delayed packets."""
    delay_s: float = 0.0


class Model:
    """Draws the fates of a link's packets in the order of their arrival."""

    def __init__(self, seed: str) -> None:
        """Start without any fault; the same ``seed`` and settings draw the same fates."""
        self._chance = random.Random(seed).random  # noqa: S311
        self._bad = False
        self.change(Impairment())

    def change(self, path: Impairment) -> None:
        """Use other settings for later packets; Gilbert-Elliott starts in its good state."""
        self.path = path
        self._delay_s, self._jitter_s = path.delay_us / 1e6, path.jitter_us / 1e6
        self._table = distributions.table(path.distribution)
        self._bad = False
        lowest = self._table[0] / distributions.SCALE if self._table else -1.0
        self.shortest_s = max(0.0, self._delay_s + lowest * self._jitter_s)
        """Shortest delay in seconds that a later packet can have."""
        if path.reorder:
            self.shortest_s = 0.0
        self._plain = not (path.gemodel or path.reorder or path.duplicate or path.corrupt)

    @property
    def changes_packets(self) -> bool:
        """Whether packets are duplicated or changed, so that their content is needed."""
        return bool(self.path.duplicate or self.path.corrupt)

    def draw(self) -> Fate:
        """Return what happens to the next packet."""
        path, chance = self.path, self._chance
        if self._plain:
            if path.loss and chance() < path.loss:
                return _LOST
            return Fate(delay_s=self._delayed())
        # A packet drawn as both duplicated and lost is sent once, as in netem.
        copies = 1 + bool(path.duplicate and chance() < path.duplicate)
        copies -= bool(path.loss and chance() < path.loss) or self._in_burst()
        if not copies:
            return _LOST
        flipped = chance() if path.corrupt and chance() < path.corrupt else -1.0
        ahead = bool(path.reorder and chance() < path.reorder)
        return Fate(False, copies > 1, flipped, ahead, 0.0 if ahead else self._delayed())

    def _delayed(self) -> float:
        if not self._jitter_s:
            return self._delay_s
        if not self._table:
            return self._delay_s + (2.0 * self._chance() - 1.0) * self._jitter_s
        entry = self._table[int(self._chance() * distributions.SIZE)]
        return max(0.0, self._delay_s + self._jitter_s * entry / distributions.SCALE)

    def _in_burst(self) -> bool:
        """Return whether the Gilbert-Elliott model loses a packet, and advance its state.

        As in ``loss_gilb_ell`` of netem, the state before the step decides on the loss.
        """
        if not self.path.gemodel:
            return False
        p, r, lost_in_bad, lost_in_good = self.path.gemodel
        was_bad, chance = self._bad, self._chance
        if chance() < (r if was_bad else p):
            self._bad = not was_bad
        return chance() < (lost_in_bad if was_bad else lost_in_good)


_LOST = Fate(lost=True)

"""Theory of cwnd: CUBIC's W(t) (RFC 9438) and Reno's line (RFC 5681) for a measured flow.

Congestion avoidance is a chain of *epochs*. One begins where cwnd has been reduced and grows again:
Recovery, CWR or Loss is over, slow start after a timeout too. It ends with the next congestion, or
where the flow switches to another algorithm. Theory takes from an epoch only its first sweep and
the cwnd before the reduction, and then the measured RTT. Windows are in segments, times in seconds.

CUBIC is RFC 9438, Reno RFC 5681. Linux (net/ipv4/tcp_cubic.c) differs where it matters little:

- beta is 717/1024, C 410/1024, time goes in 1/1024 s, and windows are whole segments;
- an epoch begins with the first ACK that lets cwnd grow, not with the end of Recovery;
- each ACK aims at W_cubic one *least* RTT ahead, and gets there within an RTT as it is now, so
  cwnd follows the curve by as much as RTTs differ;
- as long as no loss is known, at first and after a timeout, cwnd grows by 5 % an RTT at the least;
- where W_est is beyond cwnd before the reduction, section 4.3 wants it to grow as fast as Reno.
  Linux lets it grow as before, and so does this.

Both take it that cwnd is what holds the sender back: one with less to send does not grow.

BBR follows a model of the path and has no epochs: what it does in Recovery is no reduction.
"""

from __future__ import annotations

import math
from array import array
from typing import NamedTuple

import msgspec

from ccplay.model.series import MISSING, Series
from ccplay.traffic.connections import Flow

C = 0.4
"""Segments per second cubed; RFC 9438 section 5."""

BETA_CUBIC = 0.7
"""Factor of cwnd at a reduction by CUBIC; RFC 9438 section 4.6."""

ALPHA_CUBIC = 3 * (1 - BETA_CUBIC) / (1 + BETA_CUBIC)
"""Segments per RTT by which CUBIC's estimate of Reno grows; RFC 9438 section 4.3."""

BETA_RENO = 0.5
"""Factor of cwnd at a reduction by Reno; RFC 5681 section 3.1, equation 4."""

_CWR, _RECOVERY, _LOSS = 2, 3, 4
"""Congestion states as numbered in include/uapi/linux/tcp.h: from CWR on cwnd is being reduced."""

_CUT = 0.9
"""Factor of cwnd between sweeps below which it counts as reduced, even if no sweep saw Recovery."""


class Epoch(msgspec.Struct, frozen=True):
    """A period of congestion avoidance: the values that theory needs."""

    tick: int
    """Index of the first sweep of the epoch."""
    start: float
    cc: str
    """Congestion control of the flow."""
    cwnd_prior: float
    """cwnd in segments just before the reduction."""
    w_max: float
    """Window in segments at which CUBIC's curve is flat."""
    cwnd_epoch: float
    """Window in segments at the start of the epoch."""

    @property
    def algorithm(self) -> str:
        """Name of ``cc`` in theory, the same for the kernel's and a BPF program of that name."""
        return self.cc.removesuffix(".bpf")

    @property
    def k(self) -> float:
        """Seconds from the start until W_cubic is at W_max; RFC 9438 figure 2."""
        return math.cbrt((self.w_max - self.cwnd_epoch) / C)

    def w_cubic(self, t: float) -> float:
        """Return the window of CUBIC's curve, ``t`` seconds after the start; RFC 9438 figure 1."""
        return C * (t - self.k) ** 3 + self.w_max

    def w_est(self, rounds: float) -> float:
        """Return CUBIC's estimate of Reno's window after some RTTs; RFC 9438 figure 4, summed."""
        return self.cwnd_epoch + ALPHA_CUBIC * rounds

    def cubic(self, t: float, rounds: float) -> float:
        """Return CUBIC's window: the curve, or the estimate in the Reno-friendly region."""
        return max(self.w_cubic(t), self.w_est(rounds))

    def reno(self, rounds: float) -> float:
        """Return Reno's window: half, plus a segment per RTT; RFC 5681 section 3.1."""
        return BETA_RENO * self.cwnd_prior + rounds


class _Sweep(NamedTuple):
    """The measurements of a flow in one sweep."""

    tick: int
    t: float
    cwnd: float
    ca_state: float
    ssthresh: float
    srtt_us: float

    @property
    def is_open(self) -> bool:
        """Return whether cwnd is neither being reduced nor in recovery."""
        return self.ca_state < _CWR


class Theory:
    """Both windows of one flow at each sweep, as far as it was measured by the last ``follow``.

    ::

        cwnd  ‾‾|      __.-  W(t): flat at W_max, for that is where loss came
                |_.-´´
                |______..·  Reno's line: half, and a segment an RTT
    """

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        timeline = flow.series["cwnd"].timeline
        self.cubic, self.reno = Series(timeline), Series(timeline)
        """Windows of W(t) and of Reno's line by sweep; unknown between epochs."""
        self.epochs: list[Epoch] = []
        self._epoch: Epoch | None = None
        """Epoch in progress; None between epochs."""
        self._rounds = 0.0
        """Number of RTTs since the epoch began."""
        self._next = 0
        self._before = _Sweep(-1, 0.0, 0.0, _LOSS, math.inf, 0.0)
        self._switches = 0
        self._prior: float | None = None
        """cwnd in segments before a reduction that no epoch has followed yet."""
        self._w_max = 0.0
        """Window at the last congestion; 0 if there was none."""

    def follow(self) -> None:
        """Process the measurements since the last call."""
        series = self.flow.series
        timeline = series["cwnd"].timeline
        start, end = max(self._next, series["cwnd"].first, timeline.first), series["cwnd"].end
        if start >= end:
            return
        self._next = end
        rows = (series[name].window(start, end) for name in _Sweep._fields[2:])
        sweeps = zip(range(start, end), timeline.moments(start, end), *rows, strict=True)
        cubic, reno = array("f"), array("f")
        for sweep in map(_Sweep._make, sweeps):
            if sweep.cwnd == sweep.cwnd:
                self._add_sweep(sweep)
            epoch = self._epoch
            cubic.append(epoch.cubic(sweep.t - epoch.start, self._rounds) if epoch else MISSING)
            reno.append(epoch.reno(self._rounds) if epoch else MISSING)
        self.cubic.extend(start, cubic.tobytes())
        self.reno.extend(start, reno.tobytes())

    def _add_sweep(self, sweep: _Sweep) -> None:
        before, self._before = self._before, sweep
        self._switch(sweep.t)
        if _congested(before, sweep):
            # Its first sweep may still have the cwnd before it; Recovery ends at ssthresh.
            mended = before.ca_state in (_CWR, _RECOVERY)
            self._reduce(before.ssthresh if mended else max(before.cwnd, sweep.cwnd))
        if sweep.ca_state == _LOSS:
            # RFC 9438 section 4.8: W_max is where avoidance begins, K is 0.
            self._w_max = 0.0
        # An infinite ssthresh is missing, and no cwnd is above it.
        if self._prior is not None and sweep.is_open and sweep.cwnd >= sweep.ssthresh:
            self._begin(sweep)
        elif self._epoch is not None and sweep.srtt_us > 0:
            self._rounds += (sweep.t - before.t) / (sweep.srtt_us * 1e-6)

    def _switch(self, t: float) -> None:
        """Start over when the flow switches to another algorithm, which keeps no state."""
        changes = self.flow.cc_changes
        while self._switches < len(changes) and changes[self._switches][0] <= t:
            self._switches += 1
            self._epoch, self._prior, self._w_max = None, None, 0.0

    def _reduce(self, cwnd: float) -> None:
        """End the epoch, with fast convergence: RFC 9438 section 4.7."""
        smaller = cwnd < self._w_max
        self._w_max = cwnd * (1 + BETA_CUBIC) / 2 if smaller else cwnd
        self._epoch, self._prior = None, cwnd

    def _begin(self, sweep: _Sweep) -> None:
        prior, self._prior = self._prior or 0.0, None
        changes = self.flow.cc_changes
        cc = changes[self._switches - 1][1] if self._switches else self.flow.cc
        # If cwnd is as large as before, it was not congestion after all.
        if sweep.cwnd < prior and not cc.startswith("bbr"):
            w_max = max(self._w_max, sweep.cwnd)
            self._epoch = Epoch(sweep.tick, sweep.t, cc, prior, w_max, sweep.cwnd)
            self._rounds = 0.0
            self.epochs.append(self._epoch)


def _congested(before: _Sweep, now: _Sweep) -> bool:
    """Return whether there was congestion between two sweeps, even if it is over.

    While cwnd is being reduced, only a lower ssthresh shows the next congestion.
    """
    if now.is_open:
        return before.is_open and now.cwnd < _CUT * before.cwnd
    return before.is_open or now.ssthresh < before.ssthresh

"""The clock of a link that moves: from a content and a beginning to moments. No I/O, no clock read.

Opportunities are those of mahimahi (src/frontend/link_queue.cc): at each, 1504 bytes may leave.
Several packets share one, a packet may need several and leaves with the last of them, and bytes
that nothing waits for are lost. Opportunity ``i`` of repetition ``n`` is at ``n * last + times[i]``
milliseconds, where ``last`` is the time of the last one.

With steps of the rate, a packet of L bytes that begins at ``b`` has left when the link has carried
L * 8 bits since ``b``: the integral of the rate, which repeats after its period.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable

from ccplay.trace.content import OPPORTUNITY, Content, Steps, carried

NEVER = math.inf

_ETHERNET_HEADER, _TUN_HEADER = 14, 4


def charged(frame_bytes: int) -> int:
    """Return the bytes of opportunities that a frame needs.

    mahimahi counts what a TUN device hands it: the IP packet and 4 bytes, without Ethernet's 14.
    """
    return max(1, frame_bytes - _ETHERNET_HEADER + _TUN_HEADER)


class Opportunities:
    """The opportunities of a content that begins at the moment ``start``, in seconds."""

    def __init__(self, content: Content, start: float, *, loop: bool = True) -> None:
        """Begin before the first opportunity."""
        self._times = content.opportunities
        self._period = content.period_ms
        self._start = start
        self._loop = loop
        self._round = self._index = 0
        self.next = self._moment()
        """Moment of the next opportunity; ``NEVER`` after the last one of a trace that ends."""

    def _moment(self) -> float:
        if self._round and not self._loop:
            return NEVER
        return self._start + (self._round * self._period + self._times[self._index]) / 1e3

    def use(self) -> float:
        """Consume the next opportunity, and return its moment."""
        moment = self.next
        self._index += 1
        if self._index == len(self._times):
            self._round, self._index = self._round + 1, 0
        self.next = self._moment()
        return moment

    def lose(self, until: float) -> None:
        """Lose all opportunities at or before ``until``, because nothing waits for them."""
        if self.next > until:
            return
        ms = (until - self._start) * 1e3
        rounds = max(self._round, math.floor(ms / self._period))
        index = bisect_right(self._times, ms - rounds * self._period)
        if index == len(self._times):
            rounds, index = rounds + 1, 0
        if (rounds, index) > (self._round, self._index):
            self._round, self._index = rounds, index
            self.next = self._moment()
        while self.next <= until:
            # The rounding of a moment may leave one behind.
            self.use()

    def bits(self, moment: float) -> float:
        """Return the bits of all opportunities from the start until a moment."""
        ms = (moment - self._start) * 1e3
        if ms < 0:
            return 0.0
        rounds = math.floor(ms / self._period)
        if rounds and not self._loop:
            rounds, ms = 0, float(self._period)
        count = rounds * len(self._times) + bisect_right(self._times, ms - rounds * self._period)
        return float(count * OPPORTUNITY * 8)


class RateSteps:
    """The integral of a rate with steps, from the moment ``start`` on."""

    def __init__(
        self, content: Content, start: float, *, loop: bool = True, after: float = 0
    ) -> None:
        """Begin; a trace that ends has the rate ``after`` from then on, in bits per second."""
        rates = content.rates
        self._times, self._rates = rates.times_us, rates.values
        self._period = rates.period_us
        self._start, self._loop, self._after = start, loop, after
        self._bits = content.carried if len(content.carried) else carried(rates)
        self._whole = self._bits[-1]

    def bits(self, moment: float) -> float:
        """Return the bits that the link carries from the start until a moment."""
        us = max(0.0, (moment - self._start) * 1e6)
        rounds, rest = divmod(us, self._period)
        if rounds and not self._loop:
            return self._whole + (us - self._period) * self._after / 1e6
        step = bisect_right(self._times, rest) - 1
        inside = self._bits[step] + (rest - self._times[step]) * self._rates[step] / 1e6
        return rounds * self._whole + inside

    def end(self, begin: float, size: int) -> float:
        """Return when ``size`` bytes have left that begin at ``begin``."""
        target = self.bits(begin) + size * 8
        rounds, rest = divmod(target, self._whole)
        if rounds and not self._loop:
            if not self._after:
                return NEVER
            over = (target - self._whole) / self._after
            return max(begin, self._start + self._period / 1e6 + over)
        # The first step at whose end so many bits have been carried.
        step = max(0, bisect_left(self._bits, rest) - 1)
        if not self._rates[step]:
            us = float(self._times[step])
        else:
            us = self._times[step] + (rest - self._bits[step]) / self._rates[step] * 1e6
        return max(begin, self._start + (rounds * self._period + us) / 1e6)


class Course:
    """A value with steps, from the moment ``start`` on: delay or loss."""

    def __init__(self, of: Steps, start: float, *, loop: bool = True, after: float = 0.0) -> None:
        """Begin; a trace that ends has the value ``after`` from then on."""
        self._times, self._values = of.times_us, of.values
        self._period = of.period_us
        self._start, self._loop, self._after = start, loop, after
        self.least = min(of.values)
        """Least value of a period."""

    def at(self, moment: float) -> float:
        """Return the value at a moment."""
        rounds, rest = divmod(max(0.0, (moment - self._start) * 1e6), self._period)
        if rounds and not self._loop:
            return self._after
        return float(self._values[bisect_right(self._times, rest) - 1])


class Bucket:
    """A policer's token bucket, RFC 2697 with one colour: a packet without tokens is dropped."""

    def __init__(self, rate: float, size: float, now: float) -> None:
        """Begin full; ``rate`` is in bits per second, ``size`` in bytes."""
        self._rate, self._size = rate / 8, size
        self._tokens, self._filled = size, now

    def passes(self, size: int, now: float) -> bool:
        """Return whether a packet conforms, and take its tokens if it does."""
        if now > self._filled:
            self._tokens = min(self._size, self._tokens + (now - self._filled) * self._rate)
            self._filled = now
        if self._tokens < size:
            return False
        self._tokens -= size
        return True


def capacity(
    content: Content, start: float, *, loop: bool = True, after: float = 0.0
) -> Callable[[float, float], float]:
    """Return a function from two moments to the mean capacity between them in bits per second.

    ``after`` is the link's own rate, which it has where the content says nothing. An opportunity
    counts as the frame of a full packet, which fills it, because queues count frames.
    """
    scale = 1.0
    if len(content.opportunities):
        bits = Opportunities(content, start, loop=loop).bits
        scale = (OPPORTUNITY - _TUN_HEADER + _ETHERNET_HEADER) / OPPORTUNITY
    elif len(content.rates):
        bits = RateSteps(content, start, loop=loop, after=after).bits
    else:
        fixed = min(filter(None, (content.policer[0], after)), default=0.0)
        return lambda _begin, _end: fixed
    return lambda begin, end: scale * (bits(end) - bits(begin)) / (end - begin)

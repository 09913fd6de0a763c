"""Models of paths that move, each with its source. The same seed gives the same path everywhere.

Only ``random.random`` is drawn from, whose numbers do not change between versions of Python.
"""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Callable, Mapping

from ccplay.model.moving import MODELS, Trace, with_defaults
from ccplay.trace.content import OPPORTUNITY, Content, Steps, steps

LENGTH_S = 300
"""Seconds after which a model repeats."""

Options = Mapping[str, float]


class Chance:
    """Random numbers of some distributions, each from uniform ones."""

    def __init__(self, seed: str) -> None:
        self.uniform = random.Random(seed).random  # noqa: S311 - a model, no secret

    def between(self, low: float, high: float) -> float:
        """Return a number between two bounds."""
        return low + (high - low) * self.uniform()

    def exponential(self, mean: float) -> float:
        """Return an interval of a Poisson process."""
        return -mean * math.log(1.0 - self.uniform())

    def normal(self) -> float:
        """Return a number of the standard normal distribution, by Box and Muller's transform."""
        radius = math.sqrt(-2.0 * math.log(1.0 - self.uniform()))
        return radius * math.cos(2.0 * math.pi * self.uniform())


SLOT_S = 15
"""Seconds between two assignments of satellites."""


def starlink(options: Options, chance: Chance) -> Content:
    """Return a path whose capacity and delay are new every 15 s, with loss at each change.

    The scheduler assigns satellites every 15 s (Tanveer et al., "Making Sense of Constellations",
    CoNEXT Companion 2023), at which latency steps and packets are lost (Mohan et al., "A
    Multifaceted Look at Starlink Performance", WWW 2024). Within a slot the capacity varies at a
    scale of 100 ms (Garcia et al., "Multi-Timescale Evaluation of Starlink Throughput", LEO-NET
    2023). The sizes of the steps are ours: capacity from half to one and a half of the mean, delay
    from 0.7 to 1.3 of it, both uniform, and 15 % of variation within a slot.
    """
    rates: list[float] = []
    delays: list[float] = []
    for _ in range(LENGTH_S // SLOT_S):
        rate = options["rate"] * chance.between(0.5, 1.5)
        delays.append(round(options["delay"] * chance.between(0.7, 1.3)))
        rates += [max(rate / 4, rate * (1.0 + 0.15 * chance.normal())) for _ in range(SLOT_S * 10)]
    slot_us, step_us, period_us = SLOT_S * 1_000_000, 100_000, LENGTH_S * 1_000_000
    starts = [number * slot_us for number in range(len(delays))]
    lossy = [moment for start in starts for moment in (start, start + step_us)]
    return Content(
        rates=steps([each * step_us for each in range(len(rates))], rates, period_us),
        delays=steps(starts, delays, period_us),
        losses=steps(lossy, [options["loss"], 0.0] * len(delays), period_us),
    )


_OUTAGE_BELOW = 0.03
"""Share of the mean rate below which a cell's rate counts as an outage."""


def cell(options: Options, chance: Chance) -> Content:
    """Return a cellular link: packets depart in a Poisson process whose rate wanders.

    The model of Sprout (Winstein, Sivaraman and Balakrishnan, "Stochastic Forecasts Achieve High
    Throughput and Low Delay over Cellular Networks", NSDI 2013, section 3.1): the rate is in
    Brownian motion, in steps of 20 ms, and an outage is sticky, left at random with a mean length.
    Ours: the motion is pulled towards the mean with a time constant of 5 s, and the rate is
    reflected at three times the mean. It never falls below 0, so that strong fading without long
    outages makes the mean up to a fifth higher than asked.
    """
    mean = options["rate"] / (OPPORTUNITY * 8e3)
    step_ms, rate = 20, mean
    noise = options["fading"] * mean * math.sqrt(step_ms / 1e3)
    outage_ms = options["outage"] / 1e3
    times = array("I")
    out_until = 0.0
    for begin in range(0, LENGTH_S * 1000, step_ms):
        rate += noise * chance.normal() + (mean - rate) * step_ms / 5000
        rate = min(rate, 6 * mean - rate)
        if rate < mean * _OUTAGE_BELOW:
            rate = mean * _OUTAGE_BELOW
            if outage_ms and out_until <= begin:
                out_until = begin + chance.exponential(outage_ms)
        if begin < out_until:
            continue
        # The process has no memory: each step draws by its own rate.
        at = begin + chance.exponential(1.0 / rate)
        while at < begin + step_ms:
            times.append(max(1, round(at)))
            at += chance.exponential(1.0 / rate)
    return Content(opportunities=times, period_ms=max(LENGTH_S * 1000, times[-1]))


_SIFS_US, _DIFS_US, _SLOT_US, _LEAST_WINDOW = 16, 34, 9, 15
"""Times of 802.11 at 5 GHz in microseconds, and the least contention window."""
_ACK_US = 44
"""Preamble and block acknowledgement in microseconds."""
_MODULATIONS = (0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 0.9, 1.0)
"""Rates of MCS 0 to 7 as shares of MCS 7: 6.5 to 65 Mbit/s for one stream of 20 MHz."""


def wifi(options: Options, chance: Chance) -> Content:
    """Return a station's share of a Wi-Fi channel: bursts at the rate of its modulation.

    Stations contend with DCF, and in saturation each has the same chance of every turn (Bianchi,
    "Performance Analysis of the IEEE 802.11 Distributed Coordination Function", JSAC 2000). A turn
    is one aggregate of at most ``burst``; 5.484 ms is the longest PPDU of 802.11n. Times are those
    of IEEE 802.11-2020. Ours: a turn of another station takes from a quarter to a whole burst, and
    the modulation moves by at most one of eight every 100 ms.
    """
    times: list[int] = []
    rates: list[float] = []
    now, index, adapted, period_us = 0.0, 6, 0.0, LENGTH_S * 1_000_000
    overhead = _DIFS_US + _SIFS_US + _ACK_US
    while now < period_us:
        if now >= adapted:
            index = min(7, max(2, index + int(chance.uniform() * 3) - 1))
            adapted = now + 100_000
        now += overhead + _SLOT_US * int(chance.uniform() * (_LEAST_WINDOW + 1))
        if chance.uniform() * (options["stations"] + 1) < 1.0:
            times += [round(now), round(now + options["burst"])]
            rates += [options["rate"] * _MODULATIONS[index], 0.0]
            now += options["burst"]
        else:
            now += options["burst"] * chance.between(0.25, 1.0)
    times, rates = [0, *times], [0.0, *rates]
    return Content(rates=steps(times, rates, max(period_us, times[-1] + 1)))


def policer(options: Options, chance: Chance) -> Content:
    """Return a token bucket that drops what exceeds its rate.

    As in Flach et al., "An Internet-Wide Analysis of Traffic Policing", SIGCOMM 2016: a bucket
    filled at a rate, no queue, and a link that is faster.
    """
    del chance
    return Content(policer=(options["rate"], options["burst"]))


_COMPUTED: dict[str, Callable[[Options, Chance], Content]] = {
    each.__name__: each for each in (starlink, cell, wifi, policer)
}


def compute(trace: Trace) -> Content:
    """Return the content of a model, or of a trace that comes with ccplay."""
    model = with_defaults(trace)
    seed = model.options.get("seed", 1)
    return _COMPUTED[model.model](model.options, Chance(f"{model.model}/{seed}"))


assert _COMPUTED.keys() == MODELS.keys()  # noqa: S101 - a model is both described and computed

_RATE_EVERY_MS = 20


def rates(content: Content) -> Content:
    """Return the opportunities of a content as a rate in steps of 20 ms, for our own format."""
    length_ms = content.period_ms
    carried = [0] * math.ceil(length_ms / _RATE_EVERY_MS)
    for each in content.opportunities:
        carried[min(len(carried) - 1, each // _RATE_EVERY_MS)] += 1
    found = [each * OPPORTUNITY * 8e3 / _RATE_EVERY_MS for each in carried]
    moments = range(0, len(found) * _RATE_EVERY_MS * 1000, _RATE_EVERY_MS * 1000)
    stepped = steps(moments, found, len(found) * _RATE_EVERY_MS * 1000)
    return Content(rates=stepped, delays=content.delays, losses=content.losses)


def opportunities(rates: Steps) -> Content:
    """Return the opportunities that carry what a rate with steps carries, for mahimahi's format."""
    times, bits = array("I"), 0.0
    for begin, end, rate in rates.spans():
        at = float(begin)
        while rate and (left := (OPPORTUNITY * 8 - bits) / rate * 1e6) <= end - at:
            at, bits = at + left, 0.0
            times.append(max(1, math.ceil(at / 1000)))
        bits += (end - at) * rate / 1e6
    return Content(opportunities=times, period_ms=times[-1] if times else 0)

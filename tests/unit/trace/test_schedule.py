"""The clock of a link that moves, against mahimahi's definition and against plain sums."""

import math
import random
from array import array
from collections import deque
from collections.abc import Sequence

import pytest

from ccplay.model.moving import SHIPPED, Trace
from ccplay.trace import models
from ccplay.trace.content import OPPORTUNITY, Content, steps
from ccplay.trace.schedule import NEVER, Bucket, Course, Opportunities, RateSteps, capacity, charged
from tests.unit.trace.mahimahi import departures

_START = 1000.0


def _by_clock(
    times: Sequence[int], packets: Sequence[tuple[float, int]], until_ms: int
) -> list[tuple[int, int]]:
    """Return what ``Opportunities`` lets depart, asked as the queue in software asks it."""
    clock = Opportunities(Content(array("I", times), times[-1]), _START)
    waiting: deque[list[int]] = deque()
    arrivals = deque((at, number, size) for number, (at, size) in enumerate(packets))
    found = []
    while True:
        # Opportunities before the next arrival, if anything waits for them.
        arrival = arrivals[0][0] if arrivals else math.inf
        limit = min(_START + arrival / 1e3, _START + until_ms / 1e3 + 1e-7)
        while waiting and clock.next <= limit:
            moment, left = clock.use(), OPPORTUNITY
            while waiting and left:
                sent = min(left, waiting[0][1])
                left -= sent
                waiting[0][1] -= sent
                if not waiting[0][1]:
                    found.append((round((moment - _START) * 1e3), waiting.popleft()[0]))
        clock.lose(limit)
        if not arrivals or arrival > until_ms:
            return found
        _, number, size = arrivals.popleft()
        waiting.append([number, size])


def _random_times(chance: random.Random) -> list[int]:
    """Return a trace of random shape: bursts, gaps, several opportunities in a millisecond."""
    times: list[int] = []
    now = 0
    for _ in range(chance.randint(1, 400)):
        now += chance.choice((0, 0, 1, 1, 2, 5, chance.randint(0, 200)))
        times.append(now)
    times.append(now + 1)
    return times


def _random_packets(chance: random.Random, until_ms: int) -> list[tuple[float, int]]:
    """Return arrivals between milliseconds, of all sizes, some longer than an opportunity."""
    count = chance.randint(1, 600)
    # Half a millisecond off, so that no arrival falls on an opportunity.
    moments = sorted(chance.randint(0, until_ms) + 0.5 for _ in range(count))
    sizes = [chance.choice((1504, 1504, 44, 700, chance.randint(1, 4000))) for _ in moments]
    return list(zip(moments, sizes, strict=True))


@pytest.mark.parametrize("seed", range(10))
def test_departures_equal_those_of_mahimahi(seed: int) -> None:
    chance = random.Random(seed)
    times = _random_times(chance)
    until_ms = 3 * times[-1] + 7
    packets = _random_packets(chance, 2 * times[-1])
    expected = departures(times, packets, until_ms)
    assert _by_clock(times, packets, until_ms) == expected


@pytest.mark.parametrize("name", [*SHIPPED])
def test_departures_of_the_shipped_traces_equal_those_of_mahimahi(name: str) -> None:
    content = models.compute(Trace(name=name))
    if not len(content.opportunities):
        content = models.opportunities(content.rates)
    times = [each for each in content.opportunities if each <= 5_000]
    packets = [(0.5 + number, 1504 if number % 3 else 64) for number in range(4000)]
    until_ms = 9_000
    assert _by_clock(times, packets, until_ms) == departures(times, packets, until_ms)


def test_a_full_frame_fills_one_opportunity() -> None:
    assert charged(1514) == OPPORTUNITY
    assert charged(54) == 44


def test_unused_opportunities_are_lost() -> None:
    clock = Opportunities(Content(array("I", [1, 2, 3, 10]), 10), 0.0)
    clock.lose(0.0025)
    assert clock.next == pytest.approx(0.003)
    clock.lose(0.010)
    # The trace repeats from its last time: 10 + 1.
    assert clock.next == pytest.approx(0.011)
    clock.lose(86_400.0)
    assert clock.next == pytest.approx(86_400.001)


def test_losing_never_goes_back() -> None:
    clock = Opportunities(Content(array("I", [1, 1, 1, 5]), 5), 0.0)
    clock.use()
    clock.lose(0.0005)
    assert clock.next == pytest.approx(0.001)
    clock.lose(0.001)
    assert clock.next == pytest.approx(0.005)


def test_a_trace_that_ends_has_no_more_opportunities() -> None:
    clock = Opportunities(Content(array("I", [1, 2]), 2), 0.0, loop=False)
    clock.use()
    clock.use()
    assert clock.next == NEVER
    clock.lose(100.0)
    assert clock.next == NEVER
    assert clock.bits(50.0) == 2 * OPPORTUNITY * 8


def test_capacity_counts_the_opportunities_of_all_repetitions() -> None:
    content = Content(array("I", [5, 10]), 10)
    between = capacity(content, 0.0)
    # As frames with Ethernet's header, of which a full one fills an opportunity.
    assert between(0.0, 10.0) == pytest.approx(2 * 1514 * 8 / 0.010, rel=1e-3)


def test_a_packet_leaves_when_the_link_has_carried_it() -> None:
    # 8 kbit/s for a second, nothing for a second, 16 kbit/s for two.
    rates = steps([0, 1_000_000, 2_000_000], [8000.0, 0.0, 16_000.0], 4_000_000)
    clock = RateSteps(Content(rates=rates), 10.0)
    assert clock.end(10.0, 500) == pytest.approx(10.5)
    assert clock.end(10.5, 1000) == pytest.approx(12.25)
    assert clock.end(11.5, 2000) == pytest.approx(13.0)
    # 5000 bytes are what a period carries.
    assert clock.end(10.25, 5000) == pytest.approx(14.25)
    assert clock.bits(18.5) - clock.bits(10.5) == pytest.approx(2 * 5000 * 8)


@pytest.mark.parametrize("seed", range(10))
def test_the_integral_and_its_inverse_agree(seed: int) -> None:
    chance = random.Random(seed)
    count = chance.randint(1, 60)
    times = sorted(chance.sample(range(1, 10_000_000), count))
    rates = [chance.choice((0.0, chance.uniform(1e4, 1e8))) for _ in times]
    rates[0] = 1e6
    clock = RateSteps(Content(rates=steps(times, rates, times[-1] + 1000)), 5.0)
    for _ in range(200):
        begin, size = 5.0 + chance.uniform(0, 40), chance.randint(1, 100_000)
        end = clock.end(begin, size)
        assert clock.bits(end) - clock.bits(begin) == pytest.approx(size * 8, abs=1.0, rel=1e-6)


def test_a_trace_of_rates_that_ends_gives_the_fixed_rate_back() -> None:
    clock = RateSteps(Content(rates=steps([0], [8000.0], 1_000_000)), 0.0, loop=False, after=80_000)
    assert clock.end(0.0, 500) == pytest.approx(0.5)
    assert clock.end(2.0, 10_000) == pytest.approx(3.0)
    assert clock.bits(2.0) == pytest.approx(8000 + 80_000)


def test_values_hold_until_the_next_step_and_repeat() -> None:
    course = Course(steps([0, 10, 20], [5.0, 7.0, 9.0], 30), 1.0)
    moments = (0.0, 1.0, 1.000_011, 1.000_029, 1.000_031)
    assert [course.at(each) for each in moments] == [5.0, 5.0, 7.0, 9.0, 5.0]


def test_a_policer_passes_a_burst_and_then_its_rate() -> None:
    bucket = Bucket(8_000_000, 15_000, 0.0)
    passed = [bucket.passes(1500, 0.0) for _ in range(20)]
    assert passed == [True] * 10 + [False] * 10
    # A megabyte a second fills 1500 bytes in 1.5 ms.
    assert not bucket.passes(1500, 0.001)
    assert bucket.passes(1500, 0.0016)

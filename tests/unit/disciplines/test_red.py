"""RED and CHOKe average, drop, space their drops and adapt as in their papers."""

from collections import Counter

import pytest

from ccplay.lab.disciplines.base import ECT_0
from ccplay.lab.disciplines.choke import CHOKe
from ccplay.lab.disciplines.red import RED, weight
from ccplay.lab.rtnl import red_eval_ewma
from tests.unit.disciplines.traces import arrive, discipline, packet

OPTIONS = {"limit": 600_000, "min": 30_000, "max": 90_000, "bandwidth": 10_000_000}


def red(**more: int | bool) -> RED:
    made = discipline("red", **OPTIONS, **more)
    assert isinstance(made, RED)
    return made


@pytest.mark.parametrize(("least", "most"), [(30_000, 90_000), (12_500, 37_500), (5_000, 50_000)])
def test_the_weight_is_that_of_tc(least: int, most: int) -> None:
    burst = (2 * least + most) // 3000
    assert weight(least / 1000, burst) == 2.0 ** -red_eval_ewma(least, burst, 1000)
    options = OPTIONS | {"min": least, "max": most}
    assert discipline("red", **options).w == weight(least / 1000, burst)  # type: ignore[attr-defined]


def test_the_average_is_a_moving_one_and_decays_while_idle() -> None:
    queue = red()
    average = 0.0
    for _ in range(50):
        before = queue.backlog
        arrive(queue, [packet()], 0.0)
        # The first packet finds an empty queue.
        average = average + queue.w * (before - average) if before else 0.0
    assert queue.average.avg == pytest.approx(average)
    while queue.depart(1.0) is not None:
        pass
    arrive(queue, [packet()], 1.0 + 10 * queue.packet_s)
    assert queue.average.avg == pytest.approx(average * (1 - queue.w) ** 10)


def test_no_drop_below_min_and_each_above_max() -> None:
    queue = red()
    queue.average.avg = 29_000
    assert not queue.average.chooses(queue, 0.0)
    queue.average.avg = 90_000
    assert queue.average.chooses(queue, 0.999)


def test_drops_between_are_spread_evenly() -> None:
    """The distance between two drops is uniform from 1 to 1 / pb: RED's paper, section 6."""
    queue = red()
    queue.average.avg = 60_000
    pb = 0.02 / 2
    assert queue.average.probability(queue) == pytest.approx(pb)
    distances, since = Counter[int](), 0
    for _ in range(50_000):
        since += 1
        if queue.average.chooses(queue, queue.random()):
            distances[since] += 1
            since = 0
    assert max(distances) <= 1 / pb + 1
    drops = distances.total()
    assert sum(at * count for at, count in distances.items()) / drops == pytest.approx(
        (1 + 1 / pb) / 2, rel=0.05
    )


def test_it_marks_what_uses_ecn() -> None:
    queue = red(ecn=True)
    arrive(queue, (packet() for _ in range(70)))
    queue.average.avg = 1e6
    assert arrive(queue, [packet(ecn=ECT_0)]) == []
    assert queue.marks == 1
    assert len(arrive(queue, [packet()])) == 1
    assert queue.drops == {"red": 1}


def test_adaptive_red_moves_max_p_to_keep_the_average_in_the_middle() -> None:
    """Every 0.5 s max_p rises by min(0.01, max_p / 4) or falls by a factor of 0.9.

    The average is to be from 54 to 66 kB.
    """
    queue = red(adaptive=True)
    for average, expected in ((70_000, 0.025), (60_000, 0.025), (50_000, 0.0225)):
        queue.average.avg = average
        queue.update(0.0)
        assert queue.average.max_p == pytest.approx(expected)
    assert queue.update_s == 0.5
    assert red().update_s == 0.0


def test_the_limit_is_in_bytes() -> None:
    queue = red()
    queue.w = 0.0
    arrive(queue, (packet() for _ in range(500)))
    assert queue.backlog == 600_000 // 1514 * 1514
    assert queue.drops == {"limit": 500 - 600_000 // 1514}


def test_choke_drops_both_that_are_of_one_flow() -> None:
    queue = discipline("choke", limit=100, min=10, max=50, bandwidth=10_000_000)
    assert isinstance(queue, CHOKe)
    arrive(queue, (packet(flow=1, number=n) for n in range(20)))
    queue.average.avg = 30.0
    gone = arrive(queue, [packet(flow=1, number=99)])
    assert len(gone) == 2
    assert gone[1].number == 99
    assert queue.qlen == len(queue.queue) == 19
    # The waiting packet may be any of them, not always the oldest.
    drawn = [arrive(queue, [packet(flow=1)])[0].number for _ in range(10)]
    assert drawn != sorted(drawn)
    assert arrive(queue, [packet(flow=2)]) == []


def test_choke_throttles_what_does_not_react() -> None:
    """A flow that sends 90 % of a load of twice the link's rate gets less than 85 % of the link."""
    queue = discipline("choke", limit=300, min=20, max=200, bandwidth=12_000_000)
    sent = Counter[int]()
    for tick in range(30_000):
        now = tick / 1000
        flows = [1, 1] if tick % 5 else [2, 1]
        arrive(queue, [packet(flow=each) for each in flows], now)
        if (out := queue.depart(now)) is not None:
            sent[out.flow] += 1
    offered = 0.1
    assert sent[2] / sent.total() > 1.5 * offered
    assert queue.drops["matched"] > 1000

"""PIE and FQ-PIE adjust their probability, and spare packets, as in RFC 8033."""

import pytest

from ccplay.lab.disciplines.base import ECT_0
from ccplay.lab.disciplines.pie import PIE, Probability
from tests.unit.disciplines.traces import arrive, discipline, drain, packet

TARGET, ALPHA, BETA = 0.015, 0.125, 1.25


def step(p: float, delay: float, old: float) -> float:
    """Return the step of the probability of RFC 8033, sections 4.2 and 5.6; delays are in s."""
    size = ALPHA * (delay - TARGET) + BETA * (delay - old)
    shares = (1e-6, 2048), (1e-5, 512), (1e-4, 128), (1e-3, 32), (1e-2, 8), (0.1, 2)
    share = next((share for limit, share in shares if p < limit), None)
    return min(size, 0.02) if share is None else size / share


@pytest.mark.parametrize("p", [0.0, 5e-6, 5e-5, 5e-4, 5e-3, 0.05, 0.3])
@pytest.mark.parametrize(("delay", "old"), [(0.030, 0.020), (0.016, 0.030), (0.2, 0.1)])
def test_a_step_follows_distance_and_trend(p: float, delay: float, old: float) -> None:
    control = Probability()
    control.p, control.delay_s, control.delay_old_s = p, delay, old
    control.update(TARGET, ALPHA, BETA)
    assert control.p == pytest.approx(max(0.0, p + step(p, delay, old)))
    assert control.delay_old_s == delay


def test_an_empty_queue_lets_the_probability_decay() -> None:
    control = Probability()
    control.p = 0.5
    control.update(TARGET, ALPHA, BETA)
    assert control.p == pytest.approx((0.5 - ALPHA * TARGET) * 0.98)


def test_a_burst_of_150_ms_passes() -> None:
    control = Probability()
    for _ in range(9):
        control.delay_s += 0.1
        control.update(TARGET, ALPHA, BETA)
        assert not control.drop_early(100_000, TARGET, 0.0)
    control.update(TARGET, ALPHA, BETA)
    control.accumulated = 9.0
    assert control.drop_early(100_000, TARGET, 0.0)


@pytest.mark.parametrize(
    ("change", "dropped"),
    [
        ({}, True),
        ({"backlog": 3028}, False),
        ({"old": 0.007, "p": 0.19}, False),
        ({"old": 0.007, "p": 0.21}, True),
        ({"sum": 0.5}, False),
        ({"sum": 8.4, "draw": 0.99}, True),
        ({"draw": 0.99}, False),
    ],
)
def test_when_a_packet_is_dropped(change: dict[str, float], dropped: bool) -> None:
    """A packet is dropped or spared by each condition of RFC 8033, sections 4.1 and 5.4."""
    case = {"p": 0.15, "old": 0.020, "sum": 0.8, "draw": 0.1, "backlog": 20_000, **change}
    control = Probability()
    control.burst_s = 0.0
    control.p, control.delay_old_s, control.accumulated = case["p"], case["old"], case["sum"]
    assert control.drop_early(int(case["backlog"]), TARGET, case["draw"]) is dropped


def test_under_load_the_delay_comes_to_the_target() -> None:
    """With twice the load of the link the mean delay is near the target, and the limit unused."""
    queue = discipline("pie", limit=10_000)
    delays = []
    for tick in range(40_000):
        now = tick / 1000
        arrive(queue, [packet(), packet()], now)
        if (out := queue.depart(now)) is not None and now > 30:
            delays.append(now - out.arrived)
    assert sum(delays) / len(delays) == pytest.approx(TARGET, rel=0.5)
    assert queue.drops["limit"] == 0


def test_marks_where_ecn_is_used_and_drops_when_it_gets_too_much() -> None:
    queue = discipline("pie", ecn=True, limit=10_000)
    assert isinstance(queue, PIE)
    queue.control.burst_s, queue.control.delay_old_s = 0.0, 0.1
    for p, marked in ((0.09, True), (0.11, False)):
        queue.control.p, queue.control.accumulated = p, 9.0
        queue.backlog = queue.queue.bytes = 100_000
        before = queue.marks
        gone = arrive(queue, [packet(ecn=ECT_0)])
        assert (queue.marks > before) is marked
        assert bool(gone) is not marked


def test_fq_pie_drops_from_the_flow_that_stands() -> None:
    queue = discipline("fq_pie")
    dropped = []
    for tick in range(20_000):
        now = tick / 1000
        dropped += arrive(queue, [packet(flow=1), packet(flow=1)], now)
        if tick % 20 == 0:
            dropped += arrive(queue, [packet(98, flow=2)], now)
        queue.depart(now)
    assert {each.flow for each in dropped} == {1}
    assert queue.drops["pie"] > 1000
    assert queue.statistics()["fq_pie_prob_1000000"] > 100_000


def test_fq_pie_takes_turns() -> None:
    queue = discipline("fq_pie")
    arrive(queue, [*(packet(flow=1) for _ in range(10)), *(packet(flow=2) for _ in range(10))])
    assert [each.flow for _, each in drain(queue, 1.0, 3.0).sent] == [1, 2, 1, 2]

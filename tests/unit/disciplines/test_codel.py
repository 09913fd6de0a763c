"""CoDel starts, stops and resumes dropping as in RFC 8289."""

from itertools import accumulate
from math import sqrt

import pytest

from ccplay.lab.disciplines import options_of
from ccplay.lab.disciplines.base import ECT_0
from tests.unit.disciplines.traces import arrive, discipline, drain, packet

TARGET_MS, INTERVAL_MS = 5.0, 100.0


def control_law(first: float, drops: int) -> list[float]:
    """Return the times of drops in ms: the first one, then each interval / sqrt(n) later."""
    return [*accumulate((INTERVAL_MS / sqrt(n) for n in range(1, drops)), initial=first)]


def test_it_drops_by_the_control_law() -> None:
    """CoDel drops at the times of the control law, from 105 ms on.

    1000 packets wait and one leaves each ms, so a packet sent at t has waited for t: the sojourn
    time reaches the target at 5 ms, and has exceeded it for an interval 100 ms later.
    """
    queue = discipline("codel", limit=2000)
    arrive(queue, (packet() for _ in range(1000)))
    dropped = drain(queue, 1.0, 800.0).dropped_at()
    expected = control_law(TARGET_MS + INTERVAL_MS, len(dropped))
    assert len(dropped) > 10
    # A packet is dropped when one leaves, at most 1 ms late; the first drop times the others.
    assert dropped == pytest.approx([each + 1.0 for each in expected], abs=1.1)


def test_a_burst_that_drains_within_an_interval_loses_nothing() -> None:
    queue = discipline("codel")
    arrive(queue, (packet() for _ in range(100)))
    seen = drain(queue, 1.0, 200.0)
    assert len(seen.sent) == 100
    assert seen.dropped == []


def test_one_waiting_frame_is_never_too_much() -> None:
    """Up to a full frame may wait behind the one that leaves, even for longer than the target.

    See RFC 8289, section 4.2.
    """
    queue = discipline("codel")
    arrive(queue, [packet()])
    for at in range(0, 2000, 20):
        arrive(queue, [packet()], at / 1e3)
        assert queue.depart((at + 19) / 1e3) is not None
    assert queue.drops.total() == 0


def test_it_marks_what_uses_ecn_and_sends_it() -> None:
    queue = discipline("codel", limit=2000, ecn=True)
    arrive(queue, (packet(ecn=ECT_0) for _ in range(1000)))
    seen = drain(queue, 1.0, 800.0)
    marked = [at for at, _ in seen.marked]
    assert seen.dropped == []
    assert len(marked) > 10
    expected = control_law(TARGET_MS + INTERVAL_MS, len(marked))
    assert marked == pytest.approx([each + 1.0 for each in expected], abs=1.1)
    assert queue.marks == len(marked)


def test_what_does_not_use_ecn_is_dropped_all_the_same() -> None:
    queue = discipline("codel", limit=2000, ecn=True)
    arrive(queue, (packet() for _ in range(1000)))
    assert len(drain(queue, 1.0, 800.0).dropped) > 10
    assert queue.marks == 0


def test_ce_threshold_marks_whatever_waited_longer() -> None:
    queue = discipline("codel", ce_threshold=2_000)
    arrive(queue, (packet(ecn=ECT_0) for _ in range(6)))
    assert [at for at, _ in drain(queue, 1.0, 5.0).marked] == [3.0, 4.0, 5.0]


def test_dropping_ends_below_target_and_resumes_at_its_rate() -> None:
    """Dropping that resumes soon begins at its previous rate: RFC 8289, section 4.3."""
    queue = discipline("codel", limit=5000)
    arrive(queue, (packet() for _ in range(1000)))
    first = drain(queue, 1.0, 800.0).dropped
    before = queue.statistics()["codel_count"]
    assert before == len(first)
    assert queue.statistics()["codel_dropping"] == 1
    while queue.depart(0.8) is not None:
        pass
    queue.dropped.clear()
    # A packet that hardly waits ends the dropping state.
    arrive(queue, [packet()], 0.801)
    assert queue.depart(0.802) is not None
    assert queue.statistics()["codel_dropping"] == 0
    arrive(queue, (packet() for _ in range(1000)), 0.81)
    again = drain(queue, 1.0, 1000.0, start_ms=811.0).dropped_at()
    assert again[0] == pytest.approx(810 + TARGET_MS + INTERVAL_MS, abs=1)
    # The count resumes from the drops of the previous dropping state, not from 1.
    assert again[1] - again[0] == pytest.approx(INTERVAL_MS / sqrt(before - 1), abs=1)


def test_the_limit_drops_what_arrives() -> None:
    queue = discipline("codel", limit=3)
    gone = arrive(queue, (packet(number=n) for n in range(5)))
    assert [each.number for each in gone] == [3, 4]
    assert (queue.qlen, queue.backlog) == (3, 3 * 1514)
    assert queue.drops == {"limit": 2}


def test_parameters_change_under_waiting_packets() -> None:
    """A shorter interval applies from the next drop on, and no waiting packet is lost."""
    queue = discipline("codel", limit=2000)
    arrive(queue, (packet() for _ in range(1000)))
    drain(queue, 1.0, 50.0)
    queue.configure(options_of("codel", {"interval": 20_000, "limit": 2000}))
    assert queue.qlen == 949
    dropped = drain(queue, 1.0, 300.0, start_ms=51.0).dropped_at()
    # The time of the first drop was already set.
    assert dropped[0] == pytest.approx(105, abs=1)
    assert dropped[1] == pytest.approx(125, abs=1)


def test_time_never_counts_from_the_number_of_packets() -> None:
    """Drops come at the same times at half the packet rate: the control law counts time."""
    moments = {}
    for every in (1.0, 0.5):
        queue = discipline("codel", limit=5000)
        arrive(queue, (packet() for _ in range(4000)))
        moments[every] = drain(queue, every, 400.0).dropped_at()
    for slow, fast in zip(moments[1.0], moments[0.5], strict=False):
        assert slow == pytest.approx(fast, abs=1)

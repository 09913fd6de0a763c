"""DualPI2 has the gains, coupling, step and share of the classic queue of RFC 9332."""

from collections import Counter

import pytest

from ccplay.lab.disciplines.base import CE, ECT_0, ECT_1
from ccplay.lab.disciplines.dualpi2 import DualPI2
from tests.unit.disciplines.traces import arrive, discipline, leave, packet


def dual(**more: int) -> DualPI2:
    made = discipline("dualpi2", **more)
    assert isinstance(made, DualPI2)
    return made


def test_gains_are_those_of_the_rfc() -> None:
    """The gains are alpha = 0.1 * 16 ms / (100 ms)^2 = 0.16 Hz and beta = 0.3 / 100 ms = 3 Hz.

    See RFC 9332, figure 2.
    """
    queue = dual()
    assert queue.alpha == pytest.approx(0.16)
    assert queue.beta == pytest.approx(3.0)


def test_the_base_probability_follows_distance_and_trend() -> None:
    queue = dual()
    arrive(queue, [packet()], 0.0)
    queue.delay_old = 0.040
    queue.update(0.050)
    assert queue.p == pytest.approx(0.16 * (0.050 - 0.015) + 3.0 * 0.010)


def test_l4s_packets_have_their_own_queue_and_go_first() -> None:
    queue = dual()
    arrive(queue, [packet(flow=1), packet(flow=2, ecn=ECT_0), packet(flow=3, ecn=ECT_1)])
    arrive(queue, [packet(flow=4, ecn=CE)])
    told = queue.statistics()
    assert (told["dualpi2_classic_packets"], told["dualpi2_l4s_packets"]) == (2, 2)
    assert leave(queue).flow == 3


@pytest.mark.parametrize("p", [0.1, 0.2, 0.4])
def test_probabilities_are_coupled(p: float) -> None:
    """A share p'^2 of classic packets is dropped, a share 2 p' of L4S packets is marked."""
    queue = dual()
    lost, marked = 0, 0
    queue.update_s = 0.0
    queue.p = p
    for _ in range(2000):
        lost += len(arrive(queue, [packet()]))
        queue.depart(0.0)
        lost += len(queue.dropped)
        queue.dropped.clear()
        arrive(queue, [packet(ecn=ECT_1)])
        out = queue.depart(0.0)
        marked += out is not None and out.ecn == CE
    assert lost / 2000 == pytest.approx(p**2, abs=0.01)
    assert marked / 2000 == pytest.approx(2 * p, abs=0.01)


def test_classic_packets_with_ecn_are_marked_instead() -> None:
    queue = dual()
    queue.update_s, queue.p = 0.0, 0.4
    for _ in range(100):
        arrive(queue, [packet(ecn=ECT_0)])
        assert queue.depart(0.0) is not None
    assert queue.marks == 16
    assert queue.drops.total() == 0


def test_l4s_packets_that_waited_longer_than_the_step_are_marked() -> None:
    queue = dual()
    arrive(queue, [packet(ecn=ECT_1), packet(ecn=ECT_1)])
    assert leave(queue, 0.002).ecn == CE
    # The last packet is not marked, since none waits behind it.
    assert leave(queue, 0.004).ecn == ECT_1


def test_the_classic_queue_gets_its_share() -> None:
    """The classic queue gets 10 % of the link by default while both queues have packets."""
    queue = dual()
    queue.update_s = 0.0
    arrive(queue, [packet(flow=1) for _ in range(500)])
    arrive(queue, [packet(flow=2, ecn=ECT_1) for _ in range(1000)])
    sent = Counter(leave(queue).flow for _ in range(500))
    assert sent[1] == pytest.approx(50, abs=3)


def test_overload_drops_l4s_packets_too() -> None:
    queue = dual()
    queue.update_s, queue.p = 0.0, 0.7
    for _ in range(400):
        arrive(queue, [packet(ecn=ECT_1)])
        queue.depart(0.0)
    assert queue.drops["overload"] > 100

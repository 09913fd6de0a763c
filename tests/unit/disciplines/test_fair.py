"""FQ, SFQ, DRR and PRIO have their order of service, shares in bytes, and drops when full."""

from collections import Counter

import pytest

from ccplay.lab.disciplines.base import ECT_0
from ccplay.lab.disciplines.drr import DRR
from ccplay.lab.disciplines.sfq import SFQ
from tests.unit.disciplines.test_fq_codel import apart
from tests.unit.disciplines.traces import arrive, discipline, drain, leave, order, packet


@pytest.mark.parametrize("kind", ["fq", "fq_codel"])
def test_a_new_flow_goes_first(kind: str) -> None:
    """A ping next to a bulk flow waits only for the packet on the wire."""
    bulk, ping = apart(2, 1024)
    queue = discipline(kind)
    arrive(queue, (packet(flow=bulk) for _ in range(50)))
    assert [each.flow for _, each in drain(queue, 1.0, 9.0).sent] == [bulk] * 10
    arrive(queue, [packet(98, flow=ping)], 0.0105)
    assert leave(queue, 0.011).flow == ping


def test_fq_bounds_each_flow_by_itself() -> None:
    queue = discipline("fq", flow_limit=10)
    assert len(arrive(queue, (packet(flow=1) for _ in range(15)))) == 5
    assert arrive(queue, [packet(flow=2)]) == []
    assert queue.drops == {"flow_limit": 5}


def test_fq_marks_what_waited_longer_than_its_threshold() -> None:
    queue = discipline("fq", ce_threshold=1500)
    arrive(queue, (packet(ecn=ECT_0) for _ in range(4)))
    assert [at for at, _ in drain(queue, 1.0, 3.0).marked] == [2.0, 3.0]


def test_fq_forgets_flows_that_have_nothing() -> None:
    queue = discipline("fq")
    for flow in range(1000):
        arrive(queue, [packet(flow=flow)])
        queue.depart(0.0)
        queue.depart(0.0)
    assert queue.statistics() == {"fq_new_flows": 0, "fq_old_flows": 0}


@pytest.mark.parametrize("kind", ["fq", "sfq", "drr", "fq_pie", "cake"])
def test_two_flows_share_bytes_whatever_their_packets(kind: str) -> None:
    """A flow with frames of 1500 bytes and one with 500 send equally many bytes."""
    long, short = apart(2, 127)
    queue = discipline(kind, limit=1000) if kind != "cake" else discipline(kind)
    arrive(queue, [packet(1500, flow=long) for _ in range(100)])
    arrive(queue, [packet(500, flow=short) for _ in range(100)])
    sent = Counter[int]()
    while sum(sent.values()) < 90_000:
        out = leave(queue)
        sent[out.flow] += out.length
    assert sent[long] == pytest.approx(sent[short], abs=16_000)


def test_sfq_drops_the_last_of_the_longest() -> None:
    fat, thin = apart(2, 127)
    queue = discipline("sfq", limit=10)
    arrive(queue, [packet(flow=thin, number=50)])
    gone = arrive(queue, (packet(flow=fat, number=n) for n in range(12)))
    assert [each.number for each in gone] == [9, 10, 11]
    assert queue.qlen == 10


def test_sfq_keeps_what_waits_when_the_hash_changes() -> None:
    queue = discipline("sfq", limit=100, perturb=10)
    assert isinstance(queue, SFQ)
    for n in range(20):
        arrive(queue, [packet(flow=n % 4, number=n)], n / 1000)
    before = queue.perturbation
    queue.advance(0.02)
    queue.advance(11.0)
    assert queue.perturbation != before
    numbers: dict[int, list[int]] = {}
    while (out := queue.depart(11.0)) is not None:
        numbers.setdefault(out.flow, []).append(out.number)
    assert sum(len(each) for each in numbers.values()) == 20
    assert all(each == sorted(each) for each in numbers.values())


def test_drr_counts_deficits_as_in_the_paper() -> None:
    """With a quantum of 500, two packets of 200 leave per turn, then three with the remainder."""
    a, b = apart(2, 1024)
    queue = discipline("drr", quantum=500)
    assert isinstance(queue, DRR)
    arrive(queue, [*(packet(200, flow=a) for _ in range(6)), packet(750, flow=b)])
    # a: 500 -> 2 packets, 100 left. b: 500 < 750. a: 600 -> 3. b: 1000 -> sends, then empty.
    assert order(queue) == [a, a, a, a, a, b, a]


def test_prio_bounds_each_band() -> None:
    queue = discipline("prio", limit=2)
    assert len(arrive(queue, [packet(), packet(), packet(), packet(dscp=4)])) == 1

"""PRIO and DRR classify packets, queue each class in a discipline, and report on each class."""

import pytest

from ccplay.lab.disciplines.base import ECT_0
from ccplay.model.base import Option
from ccplay.model.disciplines import validate
from ccplay.model.values import Qdisc
from tests.unit.disciplines.traces import arrive, discipline, drain, leave, order, packet

TOS, DSCP = {"by": "tos"}, {"by": "dscp"}


@pytest.mark.parametrize(
    ("options", "packets", "expected"),
    [
        # TOS bits for throughput, none, and low delay (0x08, 0 and 0x10): bands 2, 1, 0.
        ({}, [{"dscp": each} for each in (2, 2, 0, 0, 4)], [4, 2, 3, 0, 1]),
        (TOS, [{"dscp": 2}, {"dscp": 0}, {"dscp": 4}], [2, 1, 0]),
        # Best effort, class selector 1, expedited forwarding, network control.
        ({**DSCP, "bands": 8}, [{"dscp": each} for each in (0, 8, 46, 56)], [3, 2, 1, 0]),
        # Hosts get bands in the order of their first packets; the third is in the first band again.
        ({"by": "source", "bands": 2}, [{"source": each} for each in (3, 2, 5, 3)], [0, 2, 3, 1]),
        (
            {"by": "destination", "bands": 2},
            [{"destination": each} for each in (1, 2, 1)],
            [0, 2, 1],
        ),
    ],
)
def test_strict_priority_sends_the_first_band_with_a_packet(
    options: dict[str, Option], packets: list[dict[str, int]], expected: list[int]
) -> None:
    queue = discipline("prio", **options)
    arrive(queue, (packet(flow=flow, **each) for flow, each in enumerate(packets)))
    assert order(queue) == expected


def test_a_lower_band_waits_as_long_as_a_higher_one_has_packets() -> None:
    queue = discipline("prio", by="source", bands=2)
    arrive(queue, [packet(flow=1, source=2), packet(flow=7, source=1)])
    assert queue.statistics()["prio_band_1_packets"] == 1
    for moment in range(50):
        arrive(queue, [packet(flow=1, source=2)], moment / 1e3)
        assert leave(queue, moment / 1e3).flow == 1
    assert order(queue, 0.05) == [1, 7]
    assert queue.statistics()["prio_band_1_delay_us"] == 50_000


def test_a_class_holds_a_discipline_that_drops_and_marks_in_it_alone() -> None:
    """CoDel drops only in the band with a standing queue; the other band is served first.

    Band 1 is above target from the beginning, so it drops after 100 ms.
    """
    queue = discipline("prio", by="source", bands=2, inner="codel")
    arrive(queue, [packet(source=2, number=999)])
    arrive(queue, (packet(flow=1, source=1, number=each) for each in range(300)))
    arrive(queue, (packet(flow=0, source=2, number=1000 + each) for each in range(3)))
    seen = drain(queue, 1.0, 400.0)
    assert [each.flow for _, each in seen.sent[:5]] == [0, 0, 0, 0, 1]
    assert seen.dropped
    assert {each.flow for _, each in seen.dropped} == {1}
    told = queue.statistics()
    assert told["prio_band_0_drops"] == 0
    assert told["prio_band_1_drops"] == len(seen.dropped) == queue.drops.total()
    assert set(queue.drops) == {"class 1"}


def test_what_a_class_marks_is_counted() -> None:
    queue = discipline("drr", flows=2, by="source", inner="fq_codel")
    for number in range(300):
        arrive(queue, [packet(flow=1, source=1, ecn=ECT_0, number=number)], 0.0)
    seen = drain(queue, 1.0, 400.0)
    assert len(seen.marked) == queue.marks > 0
    assert not seen.dropped


def test_drr_shares_between_hosts_however_many_flows_they_have() -> None:
    """DRR by host shares equally between a host with nine flows and one with a single flow.

    The nine flows have small packets, the single one has full-sized ones.
    """
    queue = discipline("drr", flows=2, by="source")
    arrive(queue, (packet(200, flow=each % 9, source=1, number=each) for each in range(900)))
    arrive(queue, (packet(flow=99, source=2, number=1000 + each) for each in range(90)))
    sent = {1: 0, 2: 0}
    for _ in range(300):
        out = leave(queue, 1.0)
        sent[out.source] += out.length
    assert sent[1] == pytest.approx(sent[2], abs=1514)


def test_a_full_drr_steals_from_the_longest_class() -> None:
    queue = discipline("drr", flows=2, by="source", limit=5)
    gone = arrive(queue, (packet(flow=1, source=1, number=each) for each in range(5)))
    gone += arrive(queue, [packet(flow=2, source=2, number=9)])
    assert [each.number for each in gone] == [4]
    gone = arrive(queue, [packet(flow=1, source=1, number=10)])
    assert [each.number for each in gone] == [10]
    assert sorted(order(queue)) == [1, 1, 1, 1, 2]
    told = queue.statistics()
    assert (told["drr_class_0_drops"], told["drr_class_1_drops"]) == (2, 0)


def test_statistics_of_the_first_classes_have_fixed_names() -> None:
    queue = discipline("prio", bands=16)
    assert list(queue.statistics())[-1] == "prio_band_3_drops"
    assert list(discipline("drr").statistics()) == ["drr_flows"]
    assert len(discipline("drr", flows=4).statistics()) == 13


@pytest.mark.parametrize("options", [{"inner": "cake"}, {"by": "colour"}, {"bands": 1}])
def test_what_no_class_can_be_is_refused(options: dict[str, Option]) -> None:
    with pytest.raises(ValueError, match="prio"):
        validate(Qdisc(kind="prio", options=options))

"""Every discipline in software is complete and counts correctly."""

import random

import pytest

from ccplay.lab.disciplines import CLASSES
from ccplay.lab.disciplines.base import ECT_0, ECT_1, NOT_ECT
from ccplay.model.base import Option
from ccplay.model.disciplines import DISCIPLINES
from ccplay.model.variables import variable
from tests.unit.disciplines.traces import discipline, packet

NEEDED: dict[str, dict[str, Option]] = {"choke": {"bandwidth": 10_000_000}}


def test_the_table_is_that_of_the_model() -> None:
    assert list(CLASSES) == [each.kind for each in DISCIPLINES.values() if each.software]


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("load", [0.5, 1.0, 3.0])
def test_no_packet_is_lost_track_of(kind: str, load: float) -> None:
    """Each packet leaves once or is dropped once, and ``qlen`` and ``backlog`` always agree."""
    queue = discipline(kind, **NEEDED.get(kind, {}))
    draw = random.Random(5)
    inside: dict[int, int] = {}
    number = 0
    for tick in range(3000):
        now = 100 + tick / 1000
        for _ in range(int(load) + (draw.random() < load % 1)):
            number += 1
            each = packet(
                draw.choice([98, 600, 1514]),
                flow=draw.randrange(6),
                ecn=draw.choice([NOT_ECT, ECT_0, ECT_1]),
                number=number,
                source=draw.randrange(2),
                dscp=draw.choice([0, 8, 46]),
            )
            inside[number] = each.length
            each.arrived = now
            queue.arrive(each, now)
        out = queue.depart(now) if draw.random() < 0.9 else None
        for each in [*queue.dropped, *([out] if out else [])]:
            del inside[each.number]
        queue.dropped.clear()
        assert (queue.qlen, queue.backlog) == (len(inside), sum(inside.values()))
    while inside:
        out = queue.depart(200.0)
        for each in [*queue.dropped, *([out] if out else [])]:
            del inside[each.number]
        queue.dropped.clear()
        assert out is not None or not inside
    assert (queue.qlen, queue.backlog) == (0, 0)


@pytest.mark.parametrize("kind", CLASSES)
def test_statistics_have_names_that_variables_understand(kind: str) -> None:
    """Each statistic is named after its discipline, followed by words that describe it."""
    queue = discipline(kind, **NEEDED.get(kind, {}))
    told = queue.statistics()
    queue.arrive(packet(), 1.0)
    assert list(queue.statistics()) == list(told)
    for name, value in told.items():
        assert len(name) <= 40
        assert name.startswith(f"{kind}_")
        assert variable(name).words
        assert value >= 0

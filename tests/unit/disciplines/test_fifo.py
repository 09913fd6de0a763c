"""pfifo and bfifo in software drop at the tail, as net/sched/sch_fifo.c does."""

import pytest

from tests.unit.disciplines.traces import discipline, packet


@pytest.mark.parametrize(("kind", "limit", "room"), [("pfifo", 3, 3), ("bfifo", 4542, 3)])
def test_a_packet_beyond_the_limit_is_dropped(kind: str, limit: int, room: int) -> None:
    queue = discipline(kind, limit=limit)
    for number in range(5):
        queue.arrive(packet(1514, number=number), 1.0)
    assert queue.qlen == room
    assert [each.number for each in queue.dropped] == [3, 4]
    left = [queue.depart(2.0) for _ in range(room + 1)]
    assert [each and each.number for each in left] == [0, 1, 2, None]


def test_bfifo_still_takes_a_packet_that_fits() -> None:
    queue = discipline("bfifo", limit=1600)
    for length in (1514, 100, 86):
        queue.arrive(packet(length), 1.0)
    assert (queue.qlen, queue.backlog) == (2, 1600)

"""FQ-CoDel serves flows in order, shares bytes and drops as in RFC 8290."""

from collections import Counter

from ccplay.lab.disciplines.base import spread
from tests.unit.disciplines.traces import arrive, discipline, drain, leave, order, packet


def apart(flows: int, queues: int, seed: int = 1) -> list[int]:
    """Return this many flow numbers that hash to different queues."""
    found: dict[int, int] = {}
    flow = 0
    while len(found) < flows:
        found.setdefault(spread(flow, seed, queues), flow)
        flow += 1
    return list(found.values())


def test_flows_send_in_turn_a_quantum_each() -> None:
    a, b = apart(2, 1024)
    queue = discipline("fq_codel")
    arrive(queue, [*(packet(flow=a) for _ in range(3)), *(packet(flow=b) for _ in range(3))])
    assert order(queue) == [a, b, a, b, a, b]


def test_a_flow_that_empties_as_new_waits_once_among_the_old() -> None:
    """A flow whose queue empties as a new one becomes an old one: RFC 8290, section 4.2.

    Otherwise it could starve the old flows by sending one packet at a time.
    """
    bulk, sparse = apart(2, 1024)
    queue = discipline("fq_codel")
    arrive(queue, (packet(flow=bulk) for _ in range(50)))
    drain(queue, 1.0, 4.0)
    sent = []
    for step in range(20):
        at = 0.005 + step / 1e3
        arrive(queue, [packet(flow=sparse)], at)
        sent.append(leave(queue, at).flow)
    assert sent.count(bulk) in (9, 10, 11)


def test_fairness_is_in_bytes() -> None:
    """Flows share in bytes: three frames of 500 bytes leave for each of 1500."""
    long, short = apart(2, 1024)
    queue = discipline("fq_codel", quantum=1500, limit=1000, target=1_000_000)
    arrive(queue, [packet(1500, flow=long) for _ in range(100)])
    arrive(queue, [packet(500, flow=short) for _ in range(300)])
    sent = Counter(each.flow for _, each in drain(queue, 0.01, 2.0).sent)
    assert abs(sent[short] - 3 * sent[long]) <= 3


def test_a_full_queue_drops_half_of_the_longest_from_its_head() -> None:
    fat, thin = apart(2, 1024)
    queue = discipline("fq_codel", limit=20)
    arrive(queue, [packet(flow=thin, number=100)])
    gone = arrive(queue, (packet(flow=fat, number=n) for n in range(20)))
    assert [each.number for each in gone] == list(range(10))
    assert queue.qlen == 11
    assert queue.drops == {"limit": 10}


def test_at_most_64_packets_are_dropped_at_once() -> None:
    queue = discipline("fq_codel", limit=1000)
    gone = arrive(queue, (packet(flow=1) for _ in range(1001)))
    assert len(gone) == 64


def test_codel_works_on_each_flow_by_itself() -> None:
    """CoDel drops packets of the flow with a standing queue, never those of a sparse flow."""
    bulk, ping = apart(2, 1024)
    queue = discipline("fq_codel")
    arrive(queue, (packet(flow=bulk) for _ in range(2000)))
    for step in range(1000):
        at = step / 1e3
        if step % 10 == 0:
            arrive(queue, [packet(98, flow=ping)], at)
        queue.depart(at)
    assert queue.drops["codel"] > 10
    assert {each.flow for each in queue.dropped} == {bulk}


def test_it_reports_its_lists() -> None:
    a, b = apart(2, 1024)
    queue = discipline("fq_codel")
    arrive(queue, [packet(flow=a), packet(flow=a), packet(flow=b)])
    assert queue.statistics()["fq_codel_new_flows"] == 2
    for _ in range(2):
        queue.depart(0.0)
    queue.depart(0.0)
    assert queue.statistics()["fq_codel_memory_bytes"] == 0

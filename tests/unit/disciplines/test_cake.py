"""CAKE in software has host fairness, tins and COBALT, and refuses the options it lacks."""

from collections import Counter

import pytest

from ccplay.lab.disciplines.cake import CAKE, target_of
from ccplay.model.algorithms import CODE_POINTS
from tests.unit.disciplines.traces import arrive, discipline, drain, leave, packet


def shares(mode: str, load: dict[tuple[int, int, int], int]) -> Counter[int]:
    """Return packets sent by source host; ``load`` has packets by flow, source and destination."""
    queue = discipline("cake", flow_mode=mode)
    for (flow, source, destination), count in load.items():
        arrive(
            queue, (packet(flow=flow, source=source, destination=destination) for _ in range(count))
        )
    sent = Counter[int]()
    for _ in range(300):
        sent[leave(queue).source] += 1
    return sent


FIVE_TO_ONE = {**{(flow, 1, 9): 200 for flow in range(5)}, (10, 2, 8): 200}
"""Load in which host 1 has five flows and host 2 has one."""


@pytest.mark.parametrize(
    ("mode", "share"),
    [
        ("flows", 5 / 6),
        ("triple-isolate", 1 / 2),
        ("dual-srchost", 1 / 2),
        ("dual-dsthost", 1 / 2),
        ("hosts", 1 / 2),
        ("srchost", 1 / 2),
    ],
)
def test_hosts_share_as_the_mode_has_it(mode: str, share: float) -> None:
    """A mode that isolates hosts gives each half; by flows, the host with five of six gets 5/6."""
    sent = shares(mode, FIVE_TO_ONE)
    assert sent[1] / sent.total() == pytest.approx(share, abs=0.06)


def test_voice_goes_before_bulk_by_its_weight() -> None:
    queue = discipline("cake", diffserv_mode="diffserv3")
    assert isinstance(queue, CAKE)
    arrive(queue, (packet(flow=1, dscp=8) for _ in range(300)))
    arrive(queue, (packet(flow=2) for _ in range(300)))
    sent = Counter(each.flow for _, each in drain(queue, 0.001, 0.3).sent)
    assert sent[1] / sent.total() == pytest.approx(1 / 17, abs=0.03)
    arrive(queue, [packet(98, flow=3, dscp=46)])
    assert 3 in [each.flow for _, each in drain(queue, 0.001, 0.33, 0.3).sent]
    assert queue.statistics()["cake_bulk_flows"] == 1


def test_cobalt_drops_from_a_standing_queue_only() -> None:
    queue = discipline("cake", diffserv_mode="besteffort")
    arrive(queue, (packet(flow=1) for _ in range(2000)))
    dropped = []
    for step in range(1000):
        if step % 10 == 0:
            dropped += arrive(queue, [packet(98, flow=2)], step / 1e3)
        queue.depart(step / 1e3)
    assert len(dropped) > 10
    assert {each.flow for each in dropped} == {1}


def test_the_target_is_a_twentieth_of_the_rtt() -> None:
    queue = discipline("cake", rtt=40_000)
    assert isinstance(queue, CAKE)
    assert queue.target == pytest.approx(0.002)
    assert target_of(0.1, 0.012) == pytest.approx(0.018)


def test_the_longest_queue_loses_when_memory_is_short() -> None:
    queue = discipline("cake", memlimit=15_140)
    gone = arrive(queue, [packet(flow=1, number=n) for n in range(10)] + [packet(flow=2)])
    assert [each.number for each in gone] == [0]


def test_it_shapes_to_its_bandwidth() -> None:
    assert discipline("cake", bandwidth=5_000_000).rate == 5_000_000
    assert discipline("cake").rate is None


@pytest.mark.parametrize("option", [{"ack_filter": True}, {"diffserv_mode": "diffserv8"}])
def test_what_it_leaves_out_is_refused(option: dict[str, bool | str]) -> None:
    with pytest.raises(ValueError, match=r"cake\.py"):
        discipline("cake", **option)


@pytest.mark.parametrize(
    ("mode", "tins"),
    [
        ("besteffort", {"best_effort": "CS0 CS1 LE AF11 AF41 CS5 VA EF CS7"}),
        (
            "diffserv3",
            {
                "bulk": "CS1 LE",
                "best_effort": "CS0 AF11 AF21 AF43 CS2 CS3 CS4 CS5",
                "voice": "VA EF CS6 CS7",
            },
        ),
        (
            "diffserv4",
            {
                "bulk": "CS1 LE",
                "best_effort": "CS0 AF11 AF13",
                "video": "AF21 AF33 AF43 CS2 CS3 CS4 CS5 VA",
                "voice": "EF CS6 CS7",
            },
        ),
    ],
)
def test_code_points_have_the_tins_of_the_kernel(mode: str, tins: dict[str, str]) -> None:
    """Code points map to the tins of ``diffserv3`` and ``diffserv4`` in sch_cake.c, Linux 6.14."""
    queue = discipline("cake", diffserv_mode=mode)
    assert isinstance(queue, CAKE)
    for tin, names in tins.items():
        for name in names.split():
            assert queue.tins[queue._tin(CODE_POINTS[name])].name == tin, name


def test_tins_take_turns_packet_by_packet() -> None:
    """Tins share the link packet by packet: best effort 16, voice 4 and bulk 1 of 21 packets.

    Between two packets of voice there are at most six others; in bursts, a flow or ping in a tin
    would wait for longer than the target.
    """
    queue = discipline("cake", diffserv_mode="diffserv3")
    for flow, dscp in ((1, 0), (2, 46), (3, 8)):
        arrive(queue, (packet(flow=flow, dscp=dscp) for _ in range(300)))
    sent = [leave(queue).flow for _ in range(210)]
    # 16 : 4 : 1 of 210 packets.
    assert [sent.count(flow) for flow in (1, 2, 3)] == pytest.approx([160, 40, 10], abs=2)
    gaps = [len(each) for each in "".join("v" if f == 2 else "." for f in sent).split("v")[1:-1]]
    assert max(gaps) <= 6

"""A link's impairments are translated to netem's options, or drawn by the delay line's models."""

import math
import struct
from itertools import groupby
from statistics import fmean, pstdev

import pytest

from ccplay.lab.delay import netem_options, netem_request, path_of
from ccplay.lab.delay_line import Fate, Impairment, Model, flip_bit
from ccplay.lab.netlink import split
from ccplay.model.algorithms import DISTRIBUTIONS, SCALE, SIZE, table

EXAMPLES = [
    Impairment(),
    Impairment(delay_us=10_000),
    Impairment(delay_us=20_001, jitter_us=5_000),
    Impairment(loss=0.02),
    Impairment(gemodel=(0.01, 0.25, 0.8, 0.001)),
    Impairment(delay_us=10_000, reorder=0.05),
    Impairment(duplicate=0.1),
    Impairment(corrupt=0.001),
]


@pytest.mark.parametrize("path", EXAMPLES)
def test_a_path_survives_the_way_through_netlink(path: Impairment) -> None:
    image = netem_options(path, seed=2**63 + 5)
    assert path_of(image) == path
    found = split(image[24:])
    # With a rate, netem keeps the order that jitter or a shorter delay would break.
    assert struct.unpack("=IiIi", found[6])[0] == 34_000_000_000 // 8
    # Attribute 14 of include/uapi/linux/pkt_sched.h.
    assert struct.pack("=HHQ", 12, 14, 2**63 + 5) in netem_request(1, path, seed=2**63 + 5)


def test_what_is_off_is_shown_as_off() -> None:
    """A request sets what is off to 0 and names a table: netem keeps the options it omits."""
    found = split(netem_options(Impairment())[24:])
    assert {3: bytes(8), 4: bytes(8)}.items() <= found.items()
    assert 5 not in found
    uniform = split(netem_options(Impairment(jitter_us=1))[24:])[2]
    assert struct.unpack(f"={SIZE}h", uniform)[:: SIZE - 1] == (-SCALE, SCALE - 4)


@pytest.mark.parametrize("name", DISTRIBUTIONS[1:])
def test_tables_are_those_of_iproute2(name: str) -> None:
    """A table has iproute2's mean and deviation (in units of the jitter) and its end values.

    iproute2 computes the quantiles of the normal distribution by an approximation, which is off
    by up to 300 of 8192 at the ends.
    """
    mean, deviation, first, last = {
        "normal": (-0.0008, 1.0001, -28307, 28858),
        "pareto": (-0.0335, 0.8197, -5460, 32767),
        "paretonormal": (-0.0253, 0.8339, -11171, 31789),
    }[name]
    entries = table(name)
    assert list(entries) == sorted(entries)
    assert fmean(entries) / SCALE == pytest.approx(mean, abs=0.002)
    assert pstdev(entries) / SCALE == pytest.approx(deviation, abs=0.002)
    assert entries[1] == pytest.approx(first, abs=300)
    assert entries[-1] == pytest.approx(last, abs=300)


# --- the delay line --------------------------------------------------------------------------

PACKETS = 40_000


def fates(path: Impairment, seed: str = "1/1") -> list[Fate]:
    model = Model(seed)
    model.change(path)
    return [model.draw() for _ in range(PACKETS)]


def share(hits: list[bool]) -> float:
    return fmean(hits)


def bound(p: float) -> float:
    """Return four standard deviations of a share of independent packets; 1 seed in 16,000 fails."""
    return 4 * math.sqrt(p * (1 - p) / PACKETS)


def test_the_same_seed_draws_the_same_and_another_one_does_not() -> None:
    path = Impairment(delay_us=9_000, jitter_us=3_000, gemodel=(0.1, 0.3, 1.0, 0.0), corrupt=0.1)
    assert fates(path) == fates(path) != fates(path, "2/1")


@pytest.mark.parametrize("p", [0.001, 0.02, 0.5])
def test_independent_faults_come_as_often_as_said(p: float) -> None:
    lost = [each.lost for each in fates(Impairment(loss=p))]
    again = [each.again for each in fates(Impairment(duplicate=p))]
    wrong = [each.flipped >= 0 for each in fates(Impairment(corrupt=p))]
    ahead = [each.ahead for each in fates(Impairment(delay_us=1_000, reorder=p))]
    for hits in (lost, again, wrong, ahead):
        assert share(hits) == pytest.approx(p, abs=bound(p))


def test_packets_sent_ahead_skip_the_delay_and_the_others_have_it() -> None:
    drawn = fates(Impairment(delay_us=7_000, reorder=0.2))
    assert {(each.ahead, each.delay_s) for each in drawn} == {(True, 0.0), (False, 0.007)}


@pytest.mark.parametrize(
    "model", [(0.01, 0.25, 1.0, 0.0), (0.02, 0.1, 0.7, 0.005), (0.05, 0.95, 1.0, 0.0)]
)
def test_bursts_have_the_share_and_the_length_of_gilbert_and_elliott(
    model: tuple[float, ...],
) -> None:
    """The bad state holds p / (p + r) of the packets, in bursts of 1 / r on average.

    Successive packets are correlated: the variance of the share is (2 - p - r) / (p + r) times
    that of independent packets.
    """
    p, r, lost_in_bad, lost_in_good = model
    lost = [each.lost for each in fates(Impairment(gemodel=model))]
    bad = p / (p + r)
    expected = bad * lost_in_bad + (1 - bad) * lost_in_good
    wider = max(1.0, (2 - p - r) / (p + r)) ** 0.5
    assert share(lost) == pytest.approx(expected, abs=wider * bound(expected))
    if lost_in_bad == 1.0:
        bursts = [len(list(run)) for is_lost, run in groupby(lost) if is_lost]
        # The standard deviation of a geometric distribution is about its mean.
        assert fmean(bursts) == pytest.approx(1 / r, abs=4 / r / len(bursts) ** 0.5)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_jitter_has_its_distribution(name: str) -> None:
    """Jitter has its table's mean and deviation; at a delay of 100 ms nothing is cut off at 0.

    The mean may deviate by four of its standard errors.
    """
    jitter = 0.02
    path = Impairment(delay_us=100_000, jitter_us=20_000, distribution=name)
    delays = [each.delay_s for each in fates(path)]
    entries = table(name)
    mean, deviation = (
        (fmean(entries) / SCALE, pstdev(entries) / SCALE) if entries else (0.0, 3**-0.5)
    )
    scatter = deviation * jitter / PACKETS**0.5
    assert fmean(delays) - 0.1 == pytest.approx(mean * jitter, abs=4 * scatter)
    assert pstdev(delays) == pytest.approx(deviation * jitter, rel=0.05)
    model = Model("1/1")
    model.change(path)
    assert model.shortest_s <= min(delays) <= model.shortest_s + 0.005


def test_one_bit_is_flipped_behind_the_header_and_a_header_is_betrayed_by_its_checksum() -> None:
    packet = bytes([0x45, *range(1, 100)])
    assert flip_bit(packet, 0.1) is None
    places = [at / 1000 for at in range(1000)]
    for changed in filter(None, (flip_bit(packet, place) for place in places)):
        different = [a ^ b for a, b in zip(packet, changed, strict=True)]
        assert sum(each.bit_count() for each in different) == 1
        assert not any(different[:20])

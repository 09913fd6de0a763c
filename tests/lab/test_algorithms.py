"""Each algorithm as a BPF program, alone on a path, held to its textbook by recorded samples.

Where nothing else is said the path takes 16.5 packets, its queue 50: loss comes at a cwnd of 67,
and one RTT is 20 to 80 ms. Bounds are wide: cwnd is read 100 times a second, a few segments late.
"""

from itertools import pairwise
from statistics import fmean, median
from typing import TypeAlias

import pytest

from ccplay.assets import algorithms
from ccplay.bpf.support import lack
from ccplay.model.commands import Build
from ccplay.model.network import Topology
from ccplay.model.series import Series
from ccplay.traffic.flow import StartFlow
from tests.lab import rides
from tests.lab.conftest import running
from tests.lab.rides import OPEN, Path, Ride, gained
from tests.lab.trust import Measured, physical

_missing = lack()
pytestmark = [
    pytest.mark.skipif(_missing is not None, reason=f"{_missing}"),
    pytest.mark.xdist_group("rides"),
]

PLAIN = Path()
DEEP = Path(limit=200)
"""Path with a long queue: loss comes at a cwnd of 217."""
LONG = Path(delay_us=50_000)
"""Path with an RTT of 100 ms and more: 83 packets in flight, loss at 133 or more."""
SHALLOW = Path(delay_us=50_000, limit=8)
"""Path with an RTT of 100 ms, and a tenth more when the queue is full: loss at 91."""
RANDOM = Path(limit=400, loss=0.01)
"""Path that loses packets without a queue."""
MARKED = Path(limit=200, mark=20)
"""Path that signals congestion by marks, long before the queue is full."""

WANTED = {
    "reno": ("reno", PLAIN, 22.0),
    "reno.bpf": ("reno.bpf", PLAIN, 22.0),
    "cubic": ("cubic", PLAIN, 22.0),
    "cubic.bpf": ("cubic.bpf", PLAIN, 22.0),
    "bic.bpf": ("bic.bpf", PLAIN, 12.0),
    "dctcp.bpf": ("dctcp.bpf", PLAIN, 14.0),
    "dctcp.bpf, marked": ("dctcp.bpf", MARKED, 10.0),
    "highspeed.bpf": ("highspeed.bpf", DEEP, 34.0),  # A tooth takes 7.7 s, and two are needed.
    "htcp.bpf": ("htcp.bpf", LONG, 18.0),
    "hybla.bpf": ("hybla.bpf", LONG, 12.0),
    "illinois.bpf": ("illinois.bpf", PLAIN, 24.0),
    "ledbat.bpf": ("ledbat.bpf", DEEP, 20.0),
    "lia.bpf": ("lia.bpf", PLAIN, 12.0),
    "prague.bpf": ("prague.bpf", PLAIN, 12.0),
    "scalable.bpf": ("scalable.bpf", DEEP, 20.0),
    "vegas.bpf": ("vegas.bpf", PLAIN, 10.0),
    "veno.bpf": ("veno.bpf", PLAIN, 18.0),
    "veno.bpf, random": ("veno.bpf", RANDOM, 12.0),
    "westwood.bpf": ("westwood.bpf", PLAIN, 15.0),
    "westwood-plus.bpf": ("westwood-plus.bpf", PLAIN, 15.0),
    "yeah.bpf": ("yeah.bpf", DEEP, 8.0),
    "yeah.bpf, fast": ("yeah.bpf", SHALLOW, 14.0),
}

Ridden: TypeAlias = Measured[Ride]

AT_ONCE = 4
"""Number of rides at a time."""

START_S = 4.0
"""Seconds after which slow start, and the recovery of its losses, are over."""


@pytest.fixture(scope="module")
def ridden(request: pytest.FixtureRequest) -> Ridden:
    """Run all rides once, several at a time; each lab loads its algorithms under names of its own.

    A few rides are run when a test first uses them. Four labs use a core: six were too much for two
    cores that run other labs too.
    """
    found = Measured(lambda name: rides.ride(*WANTED[name]), lambda each: each.health)
    if len([item for item in request.session.items if item.path == request.path]) > AT_ONCE:
        # The longest first, or all would wait for one that was begun last.
        found.measure(sorted(WANTED, key=lambda name: -WANTED[name][2]), AT_ONCE)
    return found


def settled(ridden: Ridden, name: str) -> Ride:
    return ridden[name].since(START_S)


def undisturbed(ridden: Ridden, name: str, variable: str, full_us: int) -> Ride:
    """Return a ride whose algorithm saw no delay longer than that of a full queue, in a variable.

    If the machine held a packet of a full queue once, that delay counts in all later cuts: the
    algorithm rides once more, alone. One that measures too long a delay does so again, and fails.
    """
    if max(settled(ridden, name).at_cuts(variable)) > full_us:
        del ridden[name]
    return settled(ridden, name)


@pytest.mark.parametrize("name", sorted(algorithms()))
@physical
def test_each_carries_traffic_under_its_own_name(ridden: Ridden, name: str) -> None:
    ride = settled(ridden, name)
    assert {each.cc for each in ride.samples} == {name}
    # One flow alone fills 10 Mbit/s; the frame leaves 95.6 % of it to the payload, and what was
    # received out of order before the first sample may be acknowledged after it.
    assert 0.85 * ride.path.rate < ride.goodput < 0.98 * ride.path.rate


@pytest.mark.parametrize("name", ["reno", "cubic"])
@physical
def test_ours_does_what_the_kernels_own_does(ridden: Ridden, name: str) -> None:
    """Goodput and sawtooth agree. The kernel uses the same equations with other rounding."""
    kernels, ours = settled(ridden, name), settled(ridden, f"{name}.bpf")
    assert {each.cc for each in kernels.samples} == {name}
    assert ours.goodput == pytest.approx(kernels.goodput, rel=0.02)
    assert fmean(ours.tops()) == pytest.approx(fmean(kernels.tops()), rel=0.05)
    assert ours.cut() == pytest.approx(kernels.cut(), abs=0.03)
    assert ours.period() == pytest.approx(kernels.period(), rel=0.12)
    assert ours.mean_queue() == pytest.approx(kernels.mean_queue(), rel=0.08)


@pytest.mark.parametrize("name", ["reno", "reno.bpf", "cubic", "cubic.bpf"])
@physical
def test_cwnd_is_where_theory_has_it(ridden: Ridden, name: str) -> None:
    """On Reno's line, or on W(t) with its Reno-friendly region; measured, 1 % away from it.

    A whole segment is 2 % of these windows, and srtt lags behind a growing queue. The path is so
    short that W(t) differs from Reno's cwnd by only 3 to 6 %; on a long path they differ by 17 %.
    """
    ride = ridden[name]
    theory = ride.theory()
    lines = {"reno": theory.reno, "cubic": theory.cubic}
    own = lines.pop(name.removesuffix(".bpf"))
    (other,) = lines.values()
    assert _distance(ride, own) < 0.03
    assert _distance(ride, own) < _distance(ride, other)


def _distance(ride: Ride, line: Series) -> float:
    """Return the mean distance of cwnd from a line, as a share of it, after slow start."""
    begin = ride.samples[0].t + START_S
    known = [
        abs(each.cwnd / value - 1)
        for tick, each in enumerate(ride.samples)
        if each.t >= begin and (value := line.at(tick)) is not None
    ]
    # The rest is Recovery.
    assert len(known) > 0.8 * sum(each.t >= begin for each in ride.samples)
    return fmean(known)


@pytest.mark.parametrize(
    ("name", "cut", "growth"),
    [
        # RFC 5681: half, and one segment an RTT.
        ("reno.bpf", 0.5, 1.0),
        # RFC 9438: beta = 0.7. Reno's line, 0.53 an RTT, is above the curve for most of a tooth.
        ("cubic.bpf", 0.7, 0.6),
        # RFC 3649: at 217, b = 0.41; a is 2.1 at 130 and 3.0 at 217.
        ("highspeed.bpf", 0.59, 2.5),
        # Kelly 2003: an eighth, and 1 % of 190 to 217 an RTT.
        ("scalable.bpf", 0.875, 2.0),
        # Fu 2003: with more than 3 packets in the queue the half, and one segment in two RTTs.
        ("veno.bpf", 0.5, 0.5),
        # Caini 2004: rho = 100 ms / 25 ms, so 16 an RTT.
        ("hybla.bpf", 0.5, 15.0),
        # RFC 8257 without ECN: no marks, so losses only, as Reno.
        ("dctcp.bpf", 0.5, 1.0),
        # Baiocchi 2007, fast mode: an eighth, for less is queued; and an ACK's 1/cwnd below 100.
        ("yeah.bpf, fast", 0.875, 1.0),
    ],
)
@physical
def test_cut_and_growth(ridden: Ridden, name: str, cut: float, growth: float) -> None:
    ride = settled(ridden, name)
    assert ride.cut() == pytest.approx(cut, abs=0.04)
    # srtt lags behind a growing queue, and segments come in whole numbers.
    assert ride.growth() == pytest.approx(growth, rel=0.25), ride.tops()


@physical
def test_cubic_is_concave_below_its_last_maximum(ridden: Ridden) -> None:
    """Fast at first, flat towards W_max."""
    ride = settled(ridden, "cubic.bpf")
    assert ride.growth(0.0, 0.3) > 1.5 * ride.growth(0.7, 1.0)


@physical
def test_bic_halves_the_way_to_its_maximum(ridden: Ridden) -> None:
    """From 0.8 W_max the first step is a tenth of W_max, 6 to 7 segments; then ever less.

    A loss that comes earlier than the last makes room: W_max is then a tenth less than cwnd was.
    """
    ride = settled(ridden, "bic.bpf")
    assert ride.cut() == pytest.approx(0.8, abs=0.04)
    teeth = list(ride.teeth())
    late = [
        now
        for last, before, now in zip(teeth, teeth[1:], teeth[2:], strict=False)
        if before[-1].cwnd >= last[-1].cwnd
    ]
    first = median(gained(tooth[: len(tooth) * 3 // 10]) for tooth in late)
    assert first > 3.0
    assert first > 1.5 * median(gained(tooth[len(tooth) * 7 // 10 :]) for tooth in late)


@physical
def test_htcp_grows_ever_faster_from_a_second_after_the_loss(ridden: Ridden) -> None:
    """beta = RTT_min / RTT_max = 100 / 161 ms; Reno for a second, then (1 + 10 D) * 2 (1 - beta).

    Loss comes after 2.2 s, where D = 1.2 s: (1 + 12 + 0.4) * 0.76 = 10 segments an RTT.
    """
    ride = undisturbed(ridden, "htcp.bpf", "htcp_rtt_max_us", 165_000)
    assert ride.cut() == pytest.approx(0.62, abs=0.04)
    assert ride.growth(0.0, 0.4) == pytest.approx(0.76, rel=0.3)
    # The mean of the last fifth, and srtt lags behind.
    assert 6.0 < ride.growth(0.8, 1.0) < 11.0
    # Reno's tooth would last for 51 RTTs, 6.6 s.
    assert ride.period() < 3.0


@physical
def test_vegas_keeps_two_to_four_segments_in_the_queue(ridden: Ridden) -> None:
    ride = settled(ridden, "vegas.bpf")
    # A packet more or less: what is being sent, and delayed ACKs.
    assert 1.0 < ride.mean_queue() < 6.0
    assert ride.losses() == 0
    assert ride.path.wires + 1 < median(each.cwnd for each in ride.samples) < ride.path.wires + 8


@physical
def test_veno_takes_loss_without_a_queue_for_random(ridden: Ridden) -> None:
    """4/5 remain; at a cwnd of 10 to 20 rounding distorts single cuts, so the median counts."""
    assert 0.7 < median(ridden["veno.bpf, random"].every_cut()) < 0.85


@pytest.mark.parametrize("name", ["westwood.bpf", "westwood-plus.bpf"])
@physical
def test_westwood_falls_to_what_the_wires_hold(ridden: Ridden, name: str) -> None:
    """Bandwidth times minimum RTT is 16.5 segments, where Reno would fall to 33."""
    ride = settled(ridden, name)
    falls = [tooth[0].ssthresh for tooth in ride.teeth()]
    assert 0.7 * ride.path.wires < median(each or 0 for each in falls) < 1.4 * ride.path.wires
    assert ride.growth() == pytest.approx(1.0, rel=0.25)


@physical
def test_yeah_clears_the_queue_before_it_overflows(ridden: Ridden) -> None:
    """Above 80 packets in the queue, cwnd falls by the queue's length, without any loss."""
    falls = [
        before
        for before, after in pairwise(ridden["yeah.bpf"].samples)
        if (before.ca_state, after.ca_state, after.lost) == (OPEN, OPEN, before.lost)
        and after.cwnd < 0.75 * before.cwnd
    ]
    assert falls
    # Q counts what is in the queue; cwnd also what is in the wires, and slack for lagging samples.
    assert all(each.cwnd > 80 for each in falls)


@physical
def test_illinois_grows_the_less_the_more_delay_there_is(ridden: Ridden) -> None:
    """Half remains after a loss, as the queue is full; alpha falls from 0.9 after it to 0.3."""
    ride = undisturbed(ridden, "illinois.bpf", "illinois_dm_us", 65_000)
    assert ride.cut() == pytest.approx(0.5, abs=0.04)
    assert 0.45 < ride.growth(0.0, 0.3) < 1.1
    assert 0.2 < ride.growth(0.7, 1.0) < 0.45


@physical
def test_ledbat_holds_its_delay_at_the_target(ridden: Ridden) -> None:
    """60 ms of queueing on top of 20 ms, reached from above."""
    ride = ridden["ledbat.bpf"].since(14.0)
    assert ride.losses() == 0
    assert median(each.srtt_s for each in ride.samples) == pytest.approx(0.080, abs=0.012)


@physical
def test_dctcp_holds_the_queue_at_the_marking_threshold(ridden: Ridden) -> None:
    """RFC 8257: a few marks, small cuts; Reno would halve and leave the link idle for a while.

    Marks come at 20 packets; 16.5 are under way, so a halved cwnd of 37 would empty the queue.
    """
    ride = settled(ridden, "dctcp.bpf, marked")
    assert ride.losses() == 0
    assert 12 < ride.mean_queue() < 24
    assert max(each.qlen for each in ride.samples) < 30
    windows = sorted(each.cwnd for each in ride.samples)
    # The equilibrium of the paper: an oscillation of about sqrt(2 * 37) / 2 = 4 segments.
    assert windows[-1] - windows[0] < 12
    assert ride.goodput > 0.93 * ride.path.rate


async def test_a_plain_name_is_the_kernels_where_it_has_one() -> None:
    """Otherwise ours, shown under its own name."""
    async with running(Build(topology=Topology(kind="linear"))) as lab:
        lab.send(StartFlow(flow="a", cc="reno"), StartFlow(flow="b", cc="scalable"))
        await lab.until(lambda state: {"a", "b"} <= set(state.flows))
        assert lab.state.flows["a"].cc == "reno"
        offered = {each.name for each in lab.state.hello.capabilities.congestion_controls}  # type: ignore[union-attr]
        assert lab.state.flows["b"].cc in ("scalable", "scalable.bpf")
        assert {"reno.bpf", "scalable.bpf", "scalable"} <= offered

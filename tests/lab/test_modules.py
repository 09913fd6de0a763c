"""Our BPF algorithms beside the modules of the same names, under a full kernel that has them.

Both ride in a guest. Where it is emulated its clock counts instructions, so that nothing comes late
however busy the machine is: what differs is the algorithms, not the weather. A lab that loses some
samples in a row all the same rides again.
"""

import asyncio
from collections.abc import Sequence
from itertools import chain
from statistics import fmean, median

import pytest

from ccplay.guest import boot
from ccplay.session import launch
from tests.lab.rides import Path, Ride, ride_in_turn
from tests.lab.trust import ATTEMPTS

_missing = boot.lack()
pytestmark = [
    pytest.mark.skipif(_missing is not None, reason=f"{_missing}"),
    pytest.mark.xdist_group("guest-rides"),
    pytest.mark.guest,
]

PLAIN = Path()
LONG = Path(delay_us=50_000)
"""Path with an RTT of 100 ms, which H-TCP uses unscaled; 161 ms when the queue is full."""
MARKED = Path(limit=200, mark=20)

OURS = {
    "vegas": "vegas.bpf",
    # The module of this name is Westwood+, too.
    "westwood": "westwood-plus.bpf",
    "htcp": "htcp.bpf",
    "dctcp": "dctcp.bpf",
}
PATHS = {
    "vegas": (PLAIN, 8.0),
    "westwood": (PLAIN, 18.0),
    "htcp": (LONG, 24.0),
    "dctcp": (MARKED, 9.0),
}

START_S = {"vegas": 3.0, "westwood": 4.0, "htcp": 11.0, "dctcp": 4.0}
"""Seconds after which losses of slow start are repaired, and H-TCP has measured its throughput."""

GUESTS = [(("westwood", "dctcp"), 50.0), (("htcp", "vegas"), 25.0)]
"""Pairs that ride in turn in each guest, with samples per second: two per RTT for sawtooths.

With a full queue the path of Westwood has an RTT of 80 ms, that of H-TCP 161 ms and never below
100; DCTCP's stays at 44 ms. Vegas has no sawtooth, so only its means are compared."""

MOST_GAP = 3
"""Sampling intervals between two samples from which on a tooth is not known."""


@pytest.fixture(scope="module")
def ridden() -> dict[str, Ride]:
    """Run all pairs once, each module beside ours, over a bottleneck each.

    A guest emulates only one CPU, so there are two guests. Booting one takes as long as some rides.
    """
    return asyncio.run(_ridden(launch.guest_argv(paced=False)))


async def _ridden(argv: Sequence[str]) -> dict[str, Ride]:
    async def guest(modules: Sequence[str], sample_hz: float) -> dict[str, Ride]:
        pairs = [[(cc, *PATHS[name]) for cc in (name, OURS[name])] for name in modules]
        for _ in range(ATTEMPTS):
            done = await ride_in_turn(pairs, argv, sample_hz)
            if max(ride.longest_gap() for ride in done) < MOST_GAP / sample_hz:
                break
        return {cc: ride for (cc, _, _), ride in zip(chain(*pairs), done, strict=True)}

    found = dict[str, Ride]()
    guests = (guest(*each) for each in GUESTS)
    for each in await asyncio.gather(*guests, return_exceptions=True):
        if isinstance(each, BaseException):
            # Not before all labs have ended in order.
            raise each
        found |= each
    return found


def both(ridden: dict[str, Ride], module: str) -> tuple[Ride, Ride]:
    """Return the module's ride and ours after their start."""
    found = [ridden[cc].since(START_S[module]) for cc in (module, OURS[module])]
    assert [{each.cc for each in ride.samples} for ride in found] == [{module}, {OURS[module]}]
    rate = next(sample_hz for names, sample_hz in GUESTS if module in names)
    gaps = [ride.longest_gap() for ride in found]
    assert max(gaps) < MOST_GAP / rate, gaps
    return found[0], found[1]


@pytest.mark.parametrize("module", sorted(OURS))
def test_the_same_goodput(ridden: dict[str, Ride], module: str) -> None:
    """All of them fill the path."""
    theirs, ours = both(ridden, module)
    assert ours.goodput == pytest.approx(theirs.goodput, rel=0.02)
    assert theirs.goodput > 0.85 * theirs.path.rate


def test_westwood_has_the_same_sawtooth(ridden: dict[str, Ride]) -> None:
    """Losses are as frequent, at the same cwnd within a segment."""
    theirs, ours = both(ridden, "westwood")
    assert fmean(ours.tops()) == pytest.approx(fmean(theirs.tops()), rel=0.05)
    assert ours.period() == pytest.approx(theirs.period(), rel=0.12)
    assert ours.mean_queue() == pytest.approx(theirs.mean_queue(), rel=0.12)
    assert ours.growth() == pytest.approx(theirs.growth(), rel=0.1)


def test_htcp_has_the_same_sawtooth(ridden: dict[str, Ride]) -> None:
    """It cuts to RTT_min / RTT_max, and ends a tooth growing by 8 segments per RTT.

    The module rounds alpha down to whole numbers, and drops fractions of a segment: its teeth last
    a fifth longer.
    """
    theirs, ours = both(ridden, "htcp")
    assert fmean(ours.tops()) == pytest.approx(fmean(theirs.tops()), rel=0.05)
    # The module counts in ticks, 4 ms of 100 to 161.
    assert ours.cut() == pytest.approx(theirs.cut(), abs=0.05)
    assert 0.75 * theirs.period() < ours.period() < 1.02 * theirs.period()
    grown = [ride.growth(0.8, 1.0) for ride in (theirs, ours)]
    assert grown[1] == pytest.approx(grown[0], rel=0.2), grown
    assert ours.mean_queue() == pytest.approx(theirs.mean_queue(), rel=0.15)


def test_westwood_falls_alike(ridden: dict[str, Ride]) -> None:
    """To bandwidth times lowest RTT, which the module rounds up to ticks: 24 ms for 20.3 ms."""
    theirs, ours = (
        median(tooth[0].ssthresh or 0 for tooth in ride.teeth())
        for ride in both(ridden, "westwood")
    )
    assert ours <= theirs <= ours * 24 / 20 + 1


def test_vegas_keeps_as_much_in_the_queue(ridden: dict[str, Ride]) -> None:
    """Both settle between alpha and beta, 2 and 4 segments, within one packet.

    The module has Diff = cwnd (RTT - BaseRTT) / BaseRTT; the paper, and ours, divides by RTT, here
    a fifth more: ours may keep one more.
    """
    theirs, ours = both(ridden, "vegas")
    assert 1.0 < theirs.mean_queue() < 5.0
    assert 1.0 < ours.mean_queue() < 6.0
    assert abs(ours.mean_queue() - theirs.mean_queue()) < 2.5
    assert (theirs.losses(), ours.losses()) == (0, 0)


def test_dctcp_holds_the_same_queue(ridden: dict[str, Ride]) -> None:
    """Near the threshold, swinging by alpha / 2 of cwnd, the cut that alpha causes."""
    theirs, ours = both(ridden, "dctcp")
    assert ours.mean_queue() == pytest.approx(theirs.mean_queue(), rel=0.08)
    assert max(each.qlen for each in ours.samples) == pytest.approx(
        max(each.qlen for each in theirs.samples), abs=3
    )
    # The mean: a single one is of 37 segments, so that medians are 0.027 apart or not at all.
    assert fmean(ours.cuts()) == pytest.approx(fmean(theirs.cuts()), abs=0.03)
    assert (theirs.losses(), ours.losses()) == (0, 0)

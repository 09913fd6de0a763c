"""The kernel's own disciplines and netem in the guest, and the delay line here, against tc(8)."""

from itertools import groupby, pairwise
from statistics import fmean
from typing import Any, TypeAlias

import pytest

from ccplay.analysis.trust import HealthResult
from ccplay.guest import boot
from ccplay.lab.delay_line import Impairment, Model
from tests.lab.model_cases import EVERY_S
from tests.lab.namespaced import call, judged
from tests.lab.trust import note, physical
from tests.unit.test_qdiscs import EXAMPLES

pytestmark = pytest.mark.xdist_group("kernel")

_missing = boot.lack()
in_guest = pytest.mark.skipif(_missing is not None, reason=f"{_missing}")

NEWER = {"dualpi2": "is not in this kernel"}
"""Kinds missing in Debian 12's kernels."""

FAULTS: list[dict[str, Any]] = [
    {"gemodel": [0.05, 0.25, 1.0, 0.0]},
    {"duplicate": 0.2},
    {"corrupt": 0.2},
    {"delay_us": 20_000, "reorder": 0.2},
    {"delay_us": 40_000, "jitter_us": 5_000, "distribution": "normal"},
]
PINGS = 300
LINKS = [{"rate": 2_500_000, "delay_us": 2_500, "loss": 0.001}, *FAULTS]

Made: TypeAlias = tuple[dict[str, Any], HealthResult | None]


@pytest.fixture(scope="module")
def made() -> Made:
    """Return what the guest's kernel has and does, all from one guest, with its timekeeping."""
    return judged("tests.lab.kernel_cases:every", EXAMPLES, LINKS, FAULTS, PINGS, guest=True)


@in_guest
@pytest.mark.guest
@pytest.mark.parametrize("kind", EXAMPLES)
def test_every_parameter_is_set_live_and_read_back_and_tc_makes_the_same(
    kind: str, made: Made
) -> None:
    seen = made[0]["kinds"][kind]
    if kind in NEWER and "refused" in seen:
        assert NEWER[kind] in seen["refused"]
        pytest.skip(seen["refused"])
    unreported = EXAMPLES[kind].keys() - seen["told"].keys()
    assert {name: EXAMPLES[kind][name] for name in seen["told"]} == seen["told"]
    assert unreported <= {"bandwidth", "burst", "avpkt", "max_rtt", "redflowlimit"}
    assert not seen["said"]
    assert seen["ours"] == seen["tc"]


@in_guest
@pytest.mark.guest
def test_tc_changes_a_link_as_ccplay_does(made: Made) -> None:
    for seen in made[0]["links"]:
        assert not seen["said"]
        assert seen["ours"] == seen["tc"]


@physical
@pytest.mark.parametrize(
    "engine", ["delay line", pytest.param("netem", marks=[in_guest, pytest.mark.guest])]
)
def test_faults_come_as_often_as_said(engine: str, request: pytest.FixtureRequest) -> None:
    """The bounds are four standard deviations for 300 packets; a burst counts as one."""
    guest = engine == "netem"
    found, health = request.getfixturevalue("made") if guest else ({}, None)
    # Not what the guest made before: whoever tries again pings anew.
    seen = found.pop("faults", None)
    if seen is None:
        seen = call("tests.lab.model_cases:pings", engine, FAULTS, PINGS, EVERY_S, guest=guest)
    elif health is not None:
        note(health)
    assert [each["told"] for each in seen] == FAULTS
    bursts, twice, wrong, ahead, spread = seen

    # A sixth in the bad state: 50 packets, in bursts of four.
    answered = {seq for seq, _ in bursts["answers"]}
    lost = [seq not in answered for seq in range(1, PINGS + 1)]
    assert 10 <= sum(lost) <= 105
    lengths = [len(list(run)) for is_lost, run in groupby(lost) if is_lost]
    assert fmean(lengths) > 1.5
    assert bursts["lost"] == sum(lost)

    assert len(twice["answers"]) == PINGS
    assert 32 <= len(twice["again"]) <= 88
    # Of these some hit the IP header, others ICMP's checksum: nothing wrong is answered.
    assert 32 <= PINGS - len(wrong["answers"]) <= 88

    order = [seq for seq, _ in ahead["answers"]]
    assert sorted(order) == list(range(1, PINGS + 1))
    # One that is ahead of another that is ahead, too, is not out of order behind it.
    assert 20 <= sum(a > b for a, b in pairwise(order)) <= 75
    skipped = [rtt for _, rtt in ahead["answers"] if rtt < 10]
    assert 32 <= len(skipped) <= 88

    rtts = sorted(rtt for _, rtt in spread["answers"])
    # Kept in order, a packet waits for those ahead: the mean is later, by less than a deviation.
    assert 39 <= fmean(rtts) <= 47
    assert rtts[PINGS // 20] < 37
    assert rtts[-PINGS // 20] > 44


@physical
def test_the_delay_line_loses_what_its_seed_says() -> None:
    """A link's packets are drawn in the order of their arrival, and only pings are sent."""
    (seen,) = call("tests.lab.model_cases:pings", "delay line", FAULTS[:1], PINGS, EVERY_S)
    model = Model(f"1/{seen['number']}")
    model.change(Impairment(gemodel=tuple(FAULTS[0]["gemodel"])))
    kept = [seq for seq in range(1, PINGS + 1) if not model.draw().lost]
    assert [seq for seq, _ in seen["answers"]] == kept

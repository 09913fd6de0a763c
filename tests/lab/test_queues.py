"""Queue disciplines do what was asked of them, where the kernel has them."""

from typing import Any

import pytest

from ccplay.lab.qdiscs import _IN_TICKS, _UNREPORTED
from ccplay.model.base import Option
from ccplay.model.disciplines import DISCIPLINES
from ccplay.model.qdiscs import KERNEL
from tests.lab.namespaced import call
from tests.lab.trust import physical

CASES = "tests.lab.queue_cases"

pytestmark = pytest.mark.xdist_group("queues")

CHOICES: dict[str, list[dict[str, Option]]] = {
    "pfifo": [{"limit": 100}, {"limit": 20}],
    "bfifo": [{"limit": 150_000}, {"limit": 30_000}],
    "tbf": [
        {"rate": 8_000_000, "burst": 15_000, "limit": 60_000},
        {"rate": 5_000_000, "burst": 10_000, "limit": 30_000},
    ],
    "codel": [{"target": 20_000, "limit": 50, "ecn": True, "ce_threshold": 3_000}, {}],
    "fq_codel": [
        {"limit": 200, "flows": 64, "quantum": 300, "memory_limit": 4_000_000},
        {"limit": 100, "flows": 64},
        {},
    ],
    "cake": [
        {"bandwidth": 8_000_000, "rtt": 50_000, "flow_mode": "flows", "ack_filter": True},
        {"diffserv_mode": "besteffort"},
        {},
    ],
    "sfq": [{"limit": 60, "flows": 16}, {"limit": 30, "flows": 8, "perturb": 10}],
    "choke": [
        {"bandwidth": 10_000_000, "limit": 100, "min": 10, "max": 50, "ecn": True},
        {"bandwidth": 10_000_000, "limit": 50},
    ],
    "red": [
        {"bandwidth": 10_000_000, "limit": 150_000, "min": 15_000, "max": 75_000, "ecn": True},
        {"bandwidth": 10_000_000, "limit": 60_000, "adaptive": True},
    ],
    "pie": [{"target": 20_000, "limit": 50, "ecn": True, "alpha": 4, "beta": 10}, {}],
    "fq_pie": [{"limit": 200, "flows": 64, "quantum": 300, "target": 5_000}, {"flows": 64}, {}],
    "pfifo_fast": [{}],
    "prio": [{"bands": 4, "priomap": "1 2 2 2 1 2 0 0 3 1 1 1 1 1 1 1"}, {}],
    "sfb": [{"limit": 200, "max": 30, "target": 22, "penalty_rate": 2000}, {}],
    "hhf": [{"limit": 200, "quantum": 3000, "evict_timeout": 2_000_000}, {}],
    "dualpi2": [{"limit": 200, "target": 20_000, "step_thresh": 2_000}, {"limit": 100}],
    "fq": [{"limit": 200, "flow_limit": 50, "quantum": 3000, "ce_threshold": 3_000}, {}],
}
"""Settings installed for each kind, one after the other, while packets wait."""

MARKING = ("sfb", "codel", "fq_codel", "cake", "choke", "red", "pie", "fq_pie", "fq")


@pytest.fixture(scope="module")
def missing() -> dict[str, str]:
    """Return why each kind or engine is unavailable here; empty if it is available."""
    found, _ = call("tests.lab.traffic_cases:survey")
    features = {each["name"]: each for each in (*found["qdiscs"], *found["delay_engines"])}
    return {
        # Where the kernel has none of a kind, that of software takes its name.
        name: "only in software"
        if each.get("summary") == features.get(f"{name}.py", {}).get("summary", "")
        else each.get("reason", "")
        for name, each in features.items()
    }


@pytest.fixture(scope="module")
def replaced(missing: dict[str, str]) -> dict[str, list[dict[str, Any]]]:
    """Return the outcome of every setting of every available kind."""
    there = {kind: choices for kind, choices in CHOICES.items() if not missing[kind]}
    seen: dict[str, list[dict[str, Any]]] = call(f"{CASES}:replacements", there)
    return seen


@pytest.fixture(params=CHOICES)
def kind(request: pytest.FixtureRequest, missing: dict[str, str]) -> str:
    """Return each kind in turn."""
    name = str(request.param)
    if missing[name]:
        pytest.skip(f"{name}: {missing[name]}")
    return name


def test_every_discipline_is_tried() -> None:
    assert CHOICES.keys() == {each.kind for each in DISCIPLINES.values() if each.in_kernel}


def test_a_live_replacement_holds_all_that_was_asked_and_nothing_older(
    kind: str, replaced: dict[str, list[dict[str, Any]]]
) -> None:
    """Parameters left out of a request have their defaults, whatever an earlier request set."""
    for asked, seen in zip(CHOICES[kind], replaced[kind], strict=True):
        for parameter in DISCIPLINES[kind].of(KERNEL):
            name, held = parameter.name, seen["held"].get(parameter.name)
            if name in _UNREPORTED.get(kind, ()):
                continue  # the kernel takes a table made of it and tells nothing
            if name in asked:
                assert seen["told"][name] == asked[name]
            expected = asked.get(name, parameter.default)
            if expected is None:
                assert held not in [each[name] for each in CHOICES[kind] if name in each]
            elif isinstance(expected, str | bool):
                assert held == expected
            else:
                # CoDel keeps times in units of 1.024 us, tbf its burst in ticks of 64 ns.
                near = 10_000 if name in _IN_TICKS else 2
                assert held == pytest.approx(expected, rel=0.001, abs=near)


def test_the_probe_reads_packets_and_bytes_of_full_frames(
    kind: str, replaced: dict[str, list[dict[str, Any]]]
) -> None:
    """Backlog over qlen is iperf3's frame of 1514 bytes, except for a control packet among them."""
    for seen in replaced[kind]:
        assert seen["sampled"] == kind
        assert seen["frame"] is None or 1000 <= seen["frame"] <= 1514
        assert (seen["marks"] is not None) == (kind in MARKING)


@physical
def test_fq_codel_keeps_the_rtt_low_under_load(missing: dict[str, str]) -> None:
    """A ping has its own queue there: it waits for a frame or two, 1.2 ms each.

    Behind a FIFO it waits for all packets that CUBIC leaves: most of 100 frames, 121 ms.
    """
    if missing["fq_codel"]:
        pytest.skip(f"fq_codel: {missing['fq_codel']}")
    engine = "delay line" if missing["netem"] else "netem"
    rtts = call(f"{CASES}:rtts_under_load", engine, ["pfifo", "fq_codel"])
    assert 19.6 <= rtts["fq_codel"] <= 30.0
    assert rtts["pfifo"] >= 70.0

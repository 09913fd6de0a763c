"""The network's physics: what is asked for is what packets meet."""

from pathlib import Path
from statistics import NormalDist
from typing import Any

import pytest

from ccplay.lab.rtnl import RTM_NEWQDISC, RTM_NEWTFILTER
from tests.lab.namespaced import call
from tests.lab.trust import physical

CASES = "tests.lab.network_cases"

FRAME_BITS = 1514 * 8


@pytest.fixture(scope="module")
def engines() -> dict[str, str]:
    """Return why each delay engine is unavailable here; empty if it is available."""
    found, _ = call("tests.lab.traffic_cases:survey")
    return {each["name"]: each.get("reason", "") for each in found["delay_engines"]}


@pytest.fixture(params=["delay line", "netem"])
def engine(request: pytest.FixtureRequest, engines: dict[str, str]) -> str:
    """Return each delay engine in turn, because they must treat packets the same."""
    name = str(request.param)
    if engines[name]:
        pytest.skip(f"{name}: {engines[name]}")
    return name


@pytest.mark.parametrize("rootless", [False, True], ids=["root", "rootless"])
@pytest.mark.parametrize(
    ("kind", "pairs"), [("linear", 1), ("dumbbell", 1), ("dumbbell", 8), ("parking-lot", 2)]
)
def test_every_host_reaches_every_node(kind: str, pairs: int, rootless: bool) -> None:
    assert call(f"{CASES}:reach", kind, pairs, rootless=rootless) == []


def test_building_leaves_the_machine_alone() -> None:
    """Mininet itself would raise these limits for the whole machine."""
    limits = [Path("/proc/sys/fs/file-max"), Path("/proc/sys/kernel/pty/max")]
    before = [each.read_text() for each in limits]
    call(f"{CASES}:reach", "dumbbell", 1)
    assert [each.read_text() for each in limits] == before


@pytest.mark.parametrize("rootless", [False, True], ids=["root", "rootless"])
@physical
def test_delay_is_what_was_asked(engine: str, rootless: bool) -> None:
    """RTT is twice the one-way delay, plus up to 1 ms for a busy machine's wake-ups both ways."""
    # From 100 ms on ping rounds to whole milliseconds.
    *delayed, bare = call(f"{CASES}:delays", engine, [1_000, 10_000, 49_000], rootless=rootless)
    for measured, asked in zip(delayed, (2.0, 20.0, 98.0), strict=True):
        # Never less than asked; that of the bare path may have been up to 0.1 ms too long.
        assert asked - 0.1 <= measured - bare <= asked + 1.0
    assert bare < 1.0


@physical
def test_tcp_fills_the_rate_and_no_more() -> None:
    """HTB is exact to its burst (1 ms of 2 s); stolen time may reduce the rate."""
    asked = [100_000_000, 10_000_000, 1_500_000]
    for (measured, offloads), rate in zip(call(f"{CASES}:wire_rates", asked), asked, strict=True):
        assert 0.95 * rate <= measured <= 1.01 * rate
        assert not offloads


@physical
def test_full_queue_and_changes_under_load(engine: str) -> None:
    """100 frames at 10 Mbit/s take 121 ms; a rate change keeps them, a new kind starts empty."""
    seen = call(f"{CASES}:full_queue", engine)
    expected = 20 + 100 * FRAME_BITS / 10_000_000 * 1000
    # A ping that got in found 99 or 100 frames ahead of it, its own being shorter.
    assert expected * 0.95 <= seen["rtt_ms"] <= expected * 1.03
    assert seen["same_queue"]
    # Between the two readings frames leave at twice the rate; a burst of HTB may be one more.
    assert seen["lost"] <= 2
    assert seen["rate_after"] == 20_000_000
    assert seen["shrunk_to"] == 20
    assert seen["replaced_by_bfifo"]
    assert seen["new_queue"]


def test_loss_is_binomial(engine: str) -> None:
    """Five standard deviations: one run in two million is outside."""
    count, share = 2000, 0.02
    spread = NormalDist(count * share, (count * share * (1 - share)) ** 0.5)
    lost = call(f"{CASES}:losses", engine, count, share)
    assert abs(spread.zscore(lost)) < 5


@physical
def test_a_killed_delay_line_comes_back() -> None:
    seen = call(f"{CASES}:killed_line")
    assert [level for level, _ in seen["said"]] == ["warning"]
    assert "signal 9" in seen["said"][0][1]
    assert 19.6 <= seen["rtt_ms"] <= 21.5


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"delay_us": 10_000}),
        ({"delay_us": 30_000}, {"delay_us": 0}),
        ({}, {"qdisc": {"kind": "codel.py"}}),
        ({"qdisc": {"kind": "codel.py"}}, {"qdisc": {"kind": "drr.py"}}),
        ({"qdisc": {"kind": "codel.py"}}, {"qdisc": {"kind": "pfifo", "options": {"limit": 9}}}),
    ],
)
@physical
def test_an_order_reaches_the_successor_of_a_process_that_dies(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    """So a network whose delay line dies while it is built has its delays."""
    seen = call(f"{CASES}:killed_before_it_answers", before, after)
    assert seen["said"] == ["warning"]
    assert after.items() <= seen["setting"].items()
    delay_ms = seen["setting"]["delay_us"] / 1000
    assert delay_ms <= seen["rtt_ms"] <= delay_ms + 1.5


def test_ending_a_delay_loses_and_leaves_nothing(engine: str) -> None:
    """No packet overtakes those that are still being delayed."""
    seen = call(f"{CASES}:ending_delay", engine)
    assert seen == {"received": 500, "in_order": True, "engine": "none", "rules": 0}


@physical
def test_jitter_spreads_and_keeps_order(engine: str) -> None:
    """Some of 300 packets come early and some late, but none before one sent earlier."""
    seen = call(f"{CASES}:jitter", engine)
    assert seen["in_order"]
    assert 4.5 <= seen["lowest"] < 10.0
    # Later than the delay alone, and no later than delay and jitter: 1 ms covers the wake-ups.
    assert 11.0 < seen["late"] < 16.0


def test_offloads_follow_the_rate() -> None:
    """Enabled with the last direction that becomes fast, disabled with the first slow one."""
    up, down = call(f"{CASES}:offload_crossing")
    assert up == [["r1->r2", False], ["r2->r1", True], ["r1->r2", True]]
    assert down == [["r1->r2", False], ["r2->r1", False], ["r2->r1", False]]


def test_a_control_connection_loses_no_packets_of_other_traffic() -> None:
    """A new qdisc, such as clsact, drops what is sent meanwhile; a filter does not."""
    kinds = call(f"{CASES}:announced")
    assert RTM_NEWTFILTER in kinds
    assert RTM_NEWQDISC not in kinds


def test_netem_detour_carries_arrivals() -> None:
    seen = call(f"{CASES}:ifb_detour")
    assert seen["answered"] == 10
    assert seen["through_ifb"] >= 10


def test_a_change_of_several_links_that_fails_anywhere_changes_nothing() -> None:
    """Each call of the kernel and of a process fails once, in each of 15 commands."""
    found = call(f"{CASES}:failing_anywhere")
    assert found["differed"] == []
    # Each but the removal of a rate asks for at least one thing of each of two links.
    assert len(found["failed"]) == 15
    assert min(found["failed"].values()) >= 2


def test_what_cannot_be_changed_back_is_reported_as_the_kernel_has_it() -> None:
    message, queues, kernels = call(f"{CASES}:undoing_that_fails")
    assert message.startswith("link r2->r1: ")
    assert "link r1->r2 can't be changed back" in message
    assert {name: qdisc["kind"] for name, qdisc in queues.items()} == {
        "r1->r2": "bfifo",
        "r2->r1": "pfifo",
    }
    assert kernels.count("bfifo") == 1

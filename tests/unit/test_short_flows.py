"""Short flows are drawn from a seed, and a session reports their progress and results."""

from itertools import islice
from statistics import fmean

from ccplay.analysis.summary import summarise
from ccplay.state.lab_state import LabState
from ccplay.traffic.connections import Flow
from ccplay.traffic.flow import FlowStarted
from ccplay.traffic.ping import Ping, PingEnded, PingSample, PingStarted
from ccplay.traffic.short_flows import (
    ShortFlows,
    ShortFlowsEnded,
    ShortFlowsProgress,
    ShortFlowsStarted,
    size_classes,
)
from ccplay.traffic.short_flows.transfers import REACH, arrivals
from tests.events import folded


def test_a_seed_gives_the_same_transfers_and_another_one_others() -> None:
    one, again, other = (
        list(islice(arrivals(4_000_000, 50_000, "pareto", seed), 100)) for seed in (7, 7, 8)
    )
    assert one == again
    assert one != other


def test_the_load_and_the_mean_size_are_what_was_asked_for() -> None:
    drawn = list(islice(arrivals(8_000_000, 10_000, "fixed", 1), 20_000))
    assert {size for _, size in drawn} == {10_000}
    # 100 flows/s; the mean of 20,000 exponential gaps has a standard error of 0.7 %; 3 % is 4 SE.
    assert abs(fmean(gap for gap, _ in drawn) - 0.01) < 0.0003


def test_heavy_tailed_sizes_have_the_mean_and_the_bounds() -> None:
    sizes = [size for _, size in islice(arrivals(8_000_000, 100_000, "pareto", 1), 200_000)]
    # The standard deviation is about 5 times the mean: the standard error is 1 %; 6 % are allowed.
    assert abs(fmean(sizes) / 100_000 - 1) < 0.06
    assert max(sizes) <= min(sizes) * REACH * 1.001
    assert sorted(sizes)[len(sizes) // 2] < 50_000


def test_completion_times_are_reported_by_size() -> None:
    state = told()
    (result,) = summarise(state, "x").short_flows
    assert (result.started, result.finished, result.failed, result.under_way) == (6, 4, 1, 1)
    assert (result.small_finished, result.medium_finished, result.large_finished) == (2, 1, 1)
    assert result.small_fct_mean_ms == 30
    assert result.large_fct_p50_ms == 900
    assert result.bytes == 1_000 + 99_999 + 100_000 + 2_000_000
    every, small, *_ = size_classes(result)
    assert (every.sizes, every.finished) == ("all, h1 → h2", "4 of 6")
    assert (small.sizes, small.finished, small.fct_mean_ms) == ("below 100 kB", "2", 30.0)
    # 2,200,999 bytes of all flows, and those of the small ones, in the 1 s from start to end.
    assert (result.goodput_bps, small.goodput_bps) == (17_607_992.0, 807_992.0)


def test_the_screen_has_what_was_done_by_the_moment_shown() -> None:
    flows = told().of(ShortFlows)["x1"]
    assert flows.lines(1.2)[1] == "short flows, none yet"
    assert flows.lines(1.6)[0].startswith("short flows 2 done, 1 under way, FCT p50 30.0 ms")
    assert flows.lines(2.5)[0].startswith("short flows 4 of 6 done, FCT")


def told() -> LabState:
    return folded(
        ShortFlowsStarted(
            t=1.0, short_flows="x1", src="h1", dst="h2", cc="cubic", rate_bps=1, port=1
        ),
        progress(1.5, 3, 0, [1_000, 99_999], [20e3, 40e3]),
        progress(2.0, 6, 1, [100_000, 2_000_000], [100e3, 900e3]),
        ShortFlowsEnded(t=2.0, short_flows="x1"),
    )


def progress(
    t: float, started: int, failed: int, sizes: list[int], fct_us: list[float]
) -> ShortFlowsProgress:
    return ShortFlowsProgress(
        t=t, short_flows="x1", started=started, failed=failed, bytes=sizes, fct_us=fct_us
    )


def test_a_recording_in_which_a_flow_and_a_ping_share_a_name_keeps_both() -> None:
    """A flow and a ping of one name are both kept: recordings of version 0.1 may have them."""
    state = folded(
        FlowStarted(t=1.0, flow="p1", src="h1", dst="h2", cc="reno", port=1),
        PingStarted(t=1.5, ping="p1", src="h1", dst="h2", interval_s=0.2),
        PingSample(t=2.0, ping="p1", seq=1, rtt_us=20e3),
        PingEnded(t=3.0, ping="p1", sent=1, lost=0),
    )
    assert state.of(Flow)["p1"].running
    assert state.of(Ping)["p1"].ended == 3.0
    result = summarise(state, "x")
    assert [each.id for each in result.flows] == [each.id for each in result.pings] == ["p1"]
    assert result.pings[0].p50_ms == 20

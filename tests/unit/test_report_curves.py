"""Curves of figures lose no peak, interpolate counters, and keep the worst state of a column."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccplay.model.series import Series, Timeline
from ccplay.report.data import curves
from ccplay.traffic.connections import Flow
from tests.events import series_of


@given(
    st.integers(min_value=1, max_value=9000),
    st.integers(min_value=0, max_value=8999),
    st.sampled_from([-7.0, 7.0]),
)
def test_a_single_spike_survives_thinning(length: int, where: int, spike: float) -> None:
    values: list[float | None] = [0.0] * length
    values[where % length] = spike
    line = curves.curve(series_of(values))
    assert spike in line.y
    assert len(line.y) <= 4 * curves.COLUMNS + 8


def test_a_short_series_is_drawn_as_it_is() -> None:
    line = curves.curve(series_of([1.0, None, 3.0]), factor=2.0, start=0.02)
    assert line.t == pytest.approx([-0.02, 0.0, 0.02])
    assert line.y[0] == 2.0
    assert math.isnan(line.y[1])
    assert line.y[2] == 6.0


@pytest.mark.parametrize("length", [4, 9000])
def test_what_was_not_meant_is_a_gap(length: int) -> None:
    """Values above ``most`` are a gap, also in a thinned line, which keeps greatest values."""
    values: list[float | None] = [20.0] * length
    values[length // 2 :] = [2.0**31] * (length - length // 2)
    values[-1] = 30.0
    line = curves.curve(series_of(values), most=2.0**24)
    assert line.top == 30.0
    assert any(math.isnan(y) for y in line.y)
    assert curves.curve(series_of(values)).top == 2.0**31


def test_a_pause_between_sweeps_is_a_gap() -> None:
    timeline = Timeline()
    series = Series(timeline)
    for t in (0.0, 0.02, 0.04, 0.06, 0.08, 0.1, 3.0, 3.02):
        series.put(timeline.append(t), 1.0)
    line = curves.curve(series)
    assert [math.isnan(y) for y in line.y].count(True) == 1


def test_points_without_neighbours_are_known() -> None:
    line = curves.curve(series_of([1.0, None, 3.0, None, 5.0, 6.0, None, 8.0]))
    assert line.lone.y == [1.0, 3.0, 8.0]
    assert line.lone.t == pytest.approx([0.0, 0.04, 0.14])


def test_thinned_points_are_in_the_order_of_time() -> None:
    line = curves.curve(series_of([math.sin(i / 50) for i in range(8000)]))
    assert line.t == sorted(line.t)


@given(st.lists(st.integers(min_value=0, max_value=10_000), min_size=1, max_size=200))
def test_transfers_of_all_bins_add_up_to_the_counter(steps: list[int]) -> None:
    """The amounts of all bins add up to the growth of the counter, wherever the bins begin."""
    total, counts = 0, []
    for step in steps:
        total += step
        counts.append(float(total))
    series = series_of(list(counts))
    edges = curves.bins(-0.5, len(steps) * 0.02 + 0.5, 0.3)
    moved = sum(curves.count_at(series, b) - curves.count_at(series, a) for a, b in pairwise(edges))
    assert moved == pytest.approx(total)


def test_a_counter_is_read_between_two_sweeps_by_proportion() -> None:
    assert curves.count_at(series_of([0.0, 100.0]), 0.005) == pytest.approx(25.0)


def test_bins_cover_the_whole_time() -> None:
    edges = curves.bins(1.0, 3.5, 1.0)
    assert edges == [1.0, 2.0, 3.0, 4.0]


def test_states_are_joined_and_open_is_left_out() -> None:
    spans = curves.state_spans(series_of([0, 3, 3, 3, 0, 4, 0]))
    assert [state for _, _, state in spans] == [3, 4]
    assert spans[0][:2] == pytest.approx((0.02, 0.08))


def test_a_short_loss_is_seen_in_a_long_run() -> None:
    values: list[float | None] = [0.0] * 50_000
    values[31_234] = 4.0
    assert [state for _, _, state in curves.state_spans(series_of(values))] == [4]


def switching(seconds: float) -> Flow:
    """Return a flow that runs Reno, CUBIC and BBR in turn; cwnd is reduced to 50 every second."""
    timeline = Timeline()
    names = ("ca_state", "cwnd", "ssthresh", "srtt_us")
    every = {name: Series(timeline) for name in names}
    flow = Flow(name="1", src="h1", dst="h2", cc="bbr", started=0.0, series=every)
    for third, cc in enumerate(("reno", "cubic.bpf", "bbr")):
        flow.cc_changes.append((third * seconds / 3, cc))
    for number in range(round(seconds * 50)):
        tick = timeline.append(number * 0.02)
        row = (3, 50, 50, 1e5) if number % 50 < 5 else (0, 50 + number % 50, 50, 1e5)
        for series, value in zip(flow.series.values(), row, strict=True):
            series.put(tick, value)
    return flow


def test_theory_is_that_of_the_algorithm_that_ran() -> None:
    """The line of Reno or CUBIC is drawn only while that algorithm ran; BBR has none."""
    lines = curves.theory(switching(30.0), start=1.0)
    assert list(lines) == ["Reno's line", "W(t)"]
    reno, cubic = lines.values()
    assert reno.t[0] == pytest.approx(0.1)
    assert reno.y[0] == pytest.approx(0.5 * 99)
    assert max(reno.t) < 9.1 <= min(cubic.t)
    assert max(cubic.t) < 19.1


def test_theory_has_a_gap_between_epochs_however_long_the_run() -> None:
    """W(t) never falls within an epoch, and has at most ``COLUMNS`` points."""
    for seconds in (30.0, 900.0):
        line = curves.theory(switching(seconds))["W(t)"]
        backwards = [b for a, b in pairwise(line.y) if b < a]
        assert backwards == []
        assert sum(y == y for y in line.y) <= curves.COLUMNS
    assert curves.theory(switching(0.1)) == {}


def test_growths_are_the_moments_at_which_a_counter_grew() -> None:
    moments = curves.growths(series_of([0.0, 0.0, 5.0, 5.0, 6.0]))
    assert moments == pytest.approx([0.04, 0.08])

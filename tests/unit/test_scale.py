"""Axes have round labels and room for the peak, and seldom change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccplay.ui.plot_traces import Scale, moment, short, time_ticks


@given(st.floats(min_value=0.0, max_value=1e9), st.integers(min_value=1, max_value=10))
def test_the_axis_has_room_and_few_labels(peak: float, labels: int) -> None:
    scale = Scale()
    scale.fit(peak, labels)
    assert scale.top >= peak
    assert scale.ticks()[0] == 0
    assert scale.ticks()[-1] == pytest.approx(scale.top)
    assert len(scale.ticks()) <= labels + 1


def test_the_axis_grows_at_once_and_shrinks_with_reluctance() -> None:
    scale = Scale()
    assert scale.fit(90.0, 4)
    assert scale.top == 100.0
    assert not scale.fit(60.0, 4)
    assert scale.fit(120.0, 4)
    assert scale.fit(10.0, 4)
    assert scale.top < 20.0


@pytest.mark.parametrize(("peak", "top"), [(250.0, 300.0), (181.0, 300.0), (100.0, 120.0)])
def test_the_axis_shrinks_below_60_percent_of_it(peak: float, top: float) -> None:
    """The axis shrinks once the peak of slow start has left the window, so a sawtooth fills it."""
    scale = Scale()
    scale.fit(280.0, 6)
    assert scale.top == 300.0
    scale.fit(peak, 6)
    assert scale.top == top


def test_a_held_axis_stays_until_it_is_released() -> None:
    scale = Scale()
    scale.fit(90.0, 4)
    scale.held = True
    scale.forget()
    assert not scale.fit(5000.0, 4)
    assert not scale.fit(1.0, 4)
    assert scale.top == 100.0
    assert scale.height(5000.0) == 1.0
    scale.held = False
    assert scale.fit(5000.0, 4)


def logarithmic(peak: float, least: float = 1.0) -> Scale:
    scale = Scale(least)
    scale.logarithmic = True
    scale.fit(peak, 4)
    return scale


def test_equal_ratios_are_equal_heights_of_a_logarithmic_axis() -> None:
    scale = logarithmic(900.0)
    assert (scale.bottom, scale.top) == (1.0, 1000.0)
    assert scale.ticks() == [1.0, 10.0, 100.0, 1000.0]
    assert scale.minor_ticks()[:10] == [2, 3, 4, 5, 6, 7, 8, 9, 20, 30]
    assert scale.minor_ticks()[-1] == 900
    heights = [scale.height(value) for value in (0.0, 0.5, 1.0, 10.0, 100.0, 1000.0)]
    assert heights == pytest.approx([0, 0, 0, 1 / 3, 2 / 3, 1])


@given(st.floats(min_value=0.0, max_value=1e9), st.sampled_from([0.1, 1.0, 2.0, 8.0]))
def test_a_logarithmic_axis_has_room_and_four_decades_at_most(peak: float, least: float) -> None:
    scale = logarithmic(peak, least)
    assert peak <= scale.top
    assert scale.top >= 2 * scale.bottom
    assert scale.top / scale.bottom <= 10_001
    assert len(scale.ticks()) <= 5
    assert scale.bottom <= scale.ticks()[0] * 1.001


def test_a_logarithmic_axis_that_becomes_linear_keeps_what_is_held() -> None:
    scale = logarithmic(430.0)
    assert scale.top == 500.0
    scale.held = True
    scale.logarithmic = False
    assert scale.ticks()[-1] <= scale.top
    assert 3 <= len(scale.ticks()) <= 6


def test_an_empty_axis_has_labels_too() -> None:
    scale = Scale(8)
    scale.fit(0.0, 4)
    assert scale.ticks() == [0, 2, 4, 6, 8]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (87, "87"), (0.5, "0.5"), (9999, "9999"), (12_000, "12k"), (2.5e6, "2.5M")],
)
def test_labels_take_four_cells(value: float, text: str) -> None:
    assert short(value) == text


def test_moments_are_round() -> None:
    assert time_ticks(7.5, 30.0, 4) == [10, 20, 30]


def test_moments_of_a_tenth_of_a_second_are_round_too() -> None:
    ticks = time_ticks(64.975, 0.1, 5)
    assert ticks == [64.98, 65.0, 65.02, 65.04, 65.06]
    assert [moment(each) for each in ticks[:3]] == ["01:04.98", "01:05", "01:05.02"]

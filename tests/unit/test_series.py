"""Series keep every peak at any zoom, and forget only the oldest quarter."""

import math
import struct

from hypothesis import example, given
from hypothesis import strategies as st

from ccplay.model.series import Series, Timeline
from tests.events import series_of

VALUES = st.lists(
    st.one_of(st.none(), st.integers(min_value=-1000, max_value=1000)), min_size=1, max_size=900
)


@given(values=VALUES, data=st.data())
def test_extremes_equal_those_of_a_plain_search(
    values: list[int | None], data: st.DataObject
) -> None:
    """Extremes are right at any size of the pyramid, which grows as ranges are read."""
    series = series_of(values)
    for _ in range(data.draw(st.integers(min_value=1, max_value=6))):
        start = data.draw(st.integers(min_value=-5, max_value=len(values)))
        end = data.draw(st.integers(min_value=start, max_value=len(values) + 5))
        window = [v for v in values[max(start, 0) : max(end, 0)] if v is not None]
        assert series.extremes(start, end) == ((min(window), max(window)) if window else None)


def test_a_peak_survives_any_zoom_and_later_growth() -> None:
    """Extremes are the same before and after the pyramid has grown to cover them."""
    timeline = Timeline()
    series = Series(timeline)
    for number in range(10_000):
        series.put(timeline.append(number), 7 if number == 4321 else 1)
        if number % 1000 == 0:
            series.extremes(0, number)
    assert series.extremes(0, 10_000) == (1, 7)
    assert series.extremes(4322, 10_000) == (1, 1)


def test_skipped_ticks_are_gaps() -> None:
    timeline = Timeline()
    series = Series(timeline)
    ticks = [timeline.append(each) for each in range(5)]
    series.put(ticks[1], 10)
    series.put(ticks[4], 20)
    assert [series.at(tick) for tick in ticks] == [None, 10, None, None, 20]
    assert series.values(0, 5) == [10, 20]


def test_the_oldest_quarter_goes_when_full_and_ticks_stay_valid() -> None:
    timeline = Timeline(limit=64)
    series = Series(timeline)
    for number in range(1000):
        series.put(timeline.append(number), number)
    assert series.end == timeline.end == 1000
    assert series.first == timeline.first > 900
    assert series.at(999) == 999
    assert series.extremes(0, 1000) == (series.first, 999)
    assert timeline.time(999) == 999


@given(
    lengths=st.lists(st.integers(min_value=1, max_value=90), min_size=1, max_size=30),
    limit=st.integers(min_value=8, max_value=200),
    skips=st.integers(min_value=0, max_value=40),
)
def test_many_values_at_once_are_as_good_as_one_by_one(
    lengths: list[int], limit: int, skips: int
) -> None:
    """Appending many values at once equals appending each, also with old and skipped ticks."""
    timelines = Timeline(limit), Timeline(limit)
    one, many = (Series(each) for each in timelines)
    for round_, length in enumerate(lengths):
        moments = [float(timelines[0].end + at) for at in range(length + skips)]
        ticks = [timelines[0].append(moment) for moment in moments]
        assert timelines[1].extend(moments) == ticks[0]
        values = [(round_ * 7 + at) % 50 for at in range(length)]
        for tick, value in zip(ticks, values, strict=False):
            one.put(tick, value)
        many.extend(ticks[0], struct.pack(f"{length}f", *values))
        span = many.first, many.end
        assert (one.first, one.end) == span
        assert [one.at(tick) for tick in range(*span)] == [many.at(tick) for tick in range(*span)]
        assert one.extremes(*span) == many.extremes(*span)
        assert (timelines[0].first, timelines[0].end) == (timelines[1].first, timelines[1].end)


def test_moments_are_found_from_both_sides() -> None:
    timeline = Timeline()
    for moment in (1.0, 2.0, 3.0):
        timeline.append(moment)
    assert timeline.at_or_after(1.5) == 1
    assert timeline.before_or_at(1.5) == 0
    assert timeline.before_or_at(0.5) == -1
    assert timeline.at_or_after(9) == timeline.end


@given(VALUES, st.integers(min_value=0, max_value=950), st.integers(min_value=0, max_value=950))
def test_a_window_has_each_tick_known_or_not(
    values: list[int | None], start: int, length: int
) -> None:
    series = series_of(values)
    window = series.window(start, start + length)
    known = [None if value != value else value for value in window]
    assert known == [series.at(tick) for tick in range(start, start + length)]


def test_a_missing_last_value_is_none_not_nan() -> None:
    series = series_of([1, None])
    assert series.last is None
    assert not math.isnan(series.latest(0) or 0)


@given(VALUES)
def test_the_median_of_few_values_is_exact(values: list[int | None]) -> None:
    few = values[:31]
    known = sorted(v for v in few if v is not None)
    assert series_of(few).median(0, 99) == (known[len(known) // 2] if known else None)


@given(
    period=st.floats(min_value=1.1, max_value=2000.0),
    length=st.integers(min_value=32, max_value=6000),
    start=st.integers(min_value=0, max_value=500),
)
@example(period=15.0, length=1871, start=2)
def test_the_median_of_many_is_near_the_middle(period: float, length: int, start: int) -> None:
    """The sampled median of a sawtooth is near its middle, whatever the period."""
    series = series_of([int(at % period / period * 1000) for at in range(start + length)])
    found = series.median(start, start + length)
    window = sorted(series.values(start, start + length))
    assert found is not None
    below = sum(value < found for value in window) / len(window)
    above = sum(value > found for value in window) / len(window)
    # The median of 47 random values would differ so much once in 10,000 times.
    assert below < 0.78
    assert above < 0.78


def test_a_median_leaves_out_what_is_missing_or_not_meant() -> None:
    series = series_of([None, 5, 7, None, 900, 6])
    assert series.median(0, 6) == 7
    assert series.median(0, 6, 100.0) == 6
    assert series.median(0, 1) is None
    assert series.median(6, 9) is None


def test_shares_of_numbers() -> None:
    series = series_of([0, 0, 3, 0, None, 1, 3, 3])
    assert series.shares(0, 8, 5) == (3 / 7, 1 / 7, 0, 3 / 7, 0)
    assert series.shares(4, 5, 5) is None
    many = series_of([3 if at % 10 == 0 else 0 for at in range(5000)])
    found = many.shares(0, 5000, 5)
    assert found is not None
    assert abs(found[3] - 0.1) < 0.1


def test_built_a_little_at_a_time_it_is_ready_to_be_seen_whole() -> None:
    """A pyramid built in steps is complete when the user zooms out to an hour, without a wait."""
    timeline = Timeline()
    series = Series(timeline)
    for number in range(20_000):
        series.put(timeline.append(number / 50), number % 7)
    steps = 0
    while series.build(4096):
        steps += 1
    assert steps == 5
    assert series._pyramid.covered > 20_000 - 1024


@given(values=VALUES, data=st.data())
def test_rates_of_many_stretches_are_those_of_each(
    values: list[int | None], data: st.DataObject
) -> None:
    """Rates equal those of a plain search, in any order of the periods."""
    series = series_of(values)
    moments = st.floats(min_value=-1.0, max_value=20.0)
    stretches = data.draw(st.lists(st.tuples(moments, moments), max_size=8))
    expected: list[float | None] = []
    for start, end in stretches:
        within = [at for at in range(len(values)) if start <= at / 50 <= end]
        rate = None
        if len(within) > 1 and (within[-1] - within[0]) / 50 >= 0.1:
            first, last = (values[at] for at in (within[0], within[-1]))
            if first is not None and last is not None:
                rate = (last - first) / (within[-1] / 50 - within[0] / 50)
        expected.append(rate)
    every = series.rates(stretches, 0.1)
    assert [rate and round(rate, 6) for rate in every] == [
        rate and round(rate, 6) for rate in expected
    ]
    assert [series.rates([each], 0.1)[0] for each in stretches] == every

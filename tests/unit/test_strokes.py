"""Strokes show medians and bands if a slice of time has more values than a line can show."""

import math
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from ccplay.ui.cells import ASCII, UNICODE, Glyphs
from ccplay.ui.plot_canvas import Bars
from ccplay.ui.plot_ghosts import GroupTrace, stacked
from ccplay.ui.plot_traces import CountTrace, Pen, Picture, SeriesTrace, StepTrace, is_long, read
from tests.events import series_of

COLUMNS = 30


def sawtooth(
    seconds: float, period_s: float, low: float = 50.0, high: float = 100.0
) -> list[float]:
    """Return samples at 50 Hz that rise from ``low`` to ``high`` in each period."""
    return [low + (high - low) * (at / 50 % period_s) / period_s for at in range(int(seconds * 50))]


def trace(values: Sequence[float | None], style: str = "line", factor: float = 1.0) -> SeriesTrace:
    return SeriesTrace(series_of(values), Pen("#ffffff", style), factor)  # type: ignore[arg-type]


def test_a_short_window_shows_all_that_values_cover() -> None:
    """A window of 10 s shows the spans of the values, without medians or bands."""
    one = trace(sawtooth(10.0, 2.0))
    picture = Picture(left=0.0, width=10.0, until=10.0, traces=(one,))
    [stroke] = read(picture, COLUMNS, 2, 0, COLUMNS)
    edges = [10.0 / 60 * at for at in range(60)]
    assert not is_long(10.0 / COLUMNS)
    assert [*stroke.lines][:59] == one.spans(edges)
    assert not any(stroke.bands)


@pytest.mark.parametrize("window", [60.0, 300.0, 3600.0])
def test_a_long_window_shows_medians_over_a_band(window: float) -> None:
    """The line of medians stays thin at any phase of the sawtooth; the band loses no peak."""
    one = trace(sawtooth(window, 1.3))
    picture = Picture(left=0.0, width=window, until=window, traces=(one,))
    [stroke] = read(picture, COLUMNS, 2, 0, COLUMNS)
    assert is_long(window / COLUMNS)
    assert all(level and 60 < level < 90 for level in stroke.levels)
    lines = [line for line in stroke.lines if line]
    assert len(lines) == 2 * COLUMNS
    assert sum(high - low for low, high in lines) / len(lines) < 10
    bands = [band for band in stroke.bands if band]
    assert len(bands) == 2 * COLUMNS
    # The last slice of a minute is a little over half a sawtooth long.
    assert sum(high - low > 40 for low, high in bands) >= 0.6 * len(bands)
    assert max(high for _, high in bands) == pytest.approx(max(sawtooth(window, 1.3)))


def test_of_many_flows_only_the_uppermost_has_a_band() -> None:
    some = tuple(trace(sawtooth(300.0, 2.0 + at)) for at in range(8))
    for count, bands in ((2, 2), (3, 3), (4, 1), (8, 1)):
        picture = Picture(left=0.0, width=300.0, until=300.0, traces=some[:count])
        drawn = read(picture, COLUMNS, 2, 0, COLUMNS)
        assert [any(stroke.bands) for stroke in drawn] == [False] * (count - bands) + [True] * bands


def test_the_axis_has_room_for_what_is_drawn() -> None:
    """The axis has room for limits and bands, not for the peak of a flow without a band."""
    peaked = [*sawtooth(100.0, 2.0), 900.0, *sawtooth(199.0, 2.0)]
    some = (*(trace(peaked) for _ in range(4)), trace(sawtooth(300.0, 2.0)))
    limit = StepTrace(((0.0, 150.0),), Pen("#ffffff", "dotted"))
    picture = Picture(left=0.0, width=300.0, until=300.0, traces=(limit, *some))
    drawn = read(picture, COLUMNS, 2, 0, COLUMNS)
    assert [stroke.peak(0.0, 300.0) > 101 for stroke in drawn] == [True] + [False] * 5
    picture = Picture(left=0.0, width=300.0, until=300.0, traces=some[:1])
    assert read(picture, COLUMNS, 2, 0, COLUMNS)[0].peak(0.0, 300.0) == 900.0


def test_a_part_is_drawn_as_the_whole() -> None:
    """Columns drawn one by one as time passes equal those of the whole plot."""
    one = trace(sawtooth(300.0, 7.0))
    picture = Picture(left=0.0, width=300.0, until=300.0, traces=(one,))
    [whole] = read(picture, COLUMNS, 2, 0, COLUMNS)
    [part] = read(picture, COLUMNS, 2, 12, 15)
    assert [*part.lines] == [*whole.lines][24:30]
    assert [*part.bands] == [*whole.bands][24:30]


def test_a_gap_stays_a_gap_in_a_long_window_too() -> None:
    one = trace([*sawtooth(100.0, 2.0), *[None] * 5000, *sawtooth(100.0, 2.0)])
    picture = Picture(left=0.0, width=300.0, until=300.0, traces=(one,))
    [stroke] = read(picture, COLUMNS, 1, 0, COLUMNS)
    # The value before a gap holds for a moment.
    known = [line is not None for line in stroke.lines]
    assert known == [True] * 10 + [False] * 10 + [True] * 10


def test_sparse_samples_stand_until_the_next() -> None:
    slow = SeriesTrace(series_of([5.0, 6.0, 7.0], interval=1.0), Pen("#ffffff"), interval=0.4)
    assert slow.middles([0.0, 0.8, 1.6, 2.4], long=True) == [5.0, 6.0, 7.0]
    assert slow.middles([0.0, 0.8, 1.6, 2.4], long=False) is None


# --- bars ---------------------------------------------------------------------------------------


def counted(values: list[float]) -> tuple[Bars, Picture]:
    """Return bars and picture of a counter that grows by one of ``values`` per 10 s and column."""
    total, series = 0.0, [0.0]
    for value in values:
        total += value
        series.append(total)
    counter = CountTrace(series_of(series, interval=10.0), Pen("#ff0000", glyph="×"))
    width = len(values) * 10.0
    bars, picture = Bars(), Picture(left=0.1, width=width, until=width + 0.2, counts=(counter,))
    bars.count(picture, range(len(values)), 10.0)
    return bars, picture


def test_drops_of_a_column_are_a_bar_as_high_as_the_greatest() -> None:
    bars, picture = counted([0, 1, 40, 80, 4])
    cells = [bars.cell(picture, 0, x) for x in range(5)]
    assert [cell and cell[0] for cell in cells] == [None, "▁", "▄", "█", "▁"]
    assert bars.label(picture, 0, 4) == (" ×80", "#ff0000")


def test_a_counter_that_did_not_grow_has_no_line() -> None:
    bars, _ = counted([0, 0, 0])
    assert bars.lines == []


def test_a_greatest_count_of_four_digits_keeps_its_sign() -> None:
    """The label keeps its sign, without which it would look like a value of the axis below."""
    for count, label in {1234: " ×1k", 12345: "×12k", 123_456: "×.1M", 1_200_000: " ×1M"}.items():
        bars, picture = counted([count])
        assert bars.label(picture, 0, 4)[0] == label


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=lambda each: each.name)
def test_the_least_drop_shows(glyphs: Glyphs) -> None:
    bars, picture = counted([1, 100_000])
    cells = [bars.cell(replace(picture, glyphs=glyphs), 0, x) for x in range(2)]
    assert [cell and cell[0] for cell in cells] == [glyphs.bars[0], glyphs.bars[-1]]
    assert len(set(glyphs.bars)) == len(glyphs.bars)


# --- traces of traces ---------------------------------------------------------------------------


def test_a_stack_adds_up() -> None:
    layers = stacked([trace([10.0] * 100), trace([None] * 50 + [5.0] * 50), trace([1.0] * 100)])
    edges = [0.0, 0.5, 1.0, 1.5, 2.0]
    assert layers[0].spans(edges) == [(0.0, 10.0)] * 4
    assert layers[1].spans(edges) == [None, None, (10.0, 15.0), (10.0, 15.0)]
    assert layers[2].spans(edges) == [(10.0, 11.0)] * 2 + [(15.0, 16.0)] * 2
    assert layers[2].peak(0.0, 2.0) == 16.0
    assert {layer.pen.style for layer in layers} == {"layer"}


def test_a_group_is_its_mean_over_its_extremes() -> None:
    group = GroupTrace((trace([10.0] * 100), trace([30.0] * 100)), Pen("#ffffff"))
    assert group.middles([0.0, 1.0, 2.0], long=False) == [20.0, 20.0]
    assert group.spans([0.0, 1.0, 2.0]) == [(10.0, 30.0)] * 2
    picture = Picture(left=0.0, width=2.0, until=2.0, traces=(group,))
    [stroke] = read(picture, 1, 2, 0, 1)
    assert [*stroke.bands] == [(10.0, 30.0)] * 2
    assert stroke.lines[1] == (20.0, 20.0)
    assert math.isclose(stroke.peak(0.0, 2.0), 30.0)

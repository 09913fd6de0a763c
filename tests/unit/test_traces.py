"""A trace returns the range of its values in each slice of time."""

import math

from msgspec.structs import replace

from ccplay.analysis.trust import credible
from ccplay.ui.plot_traces import CountTrace, DotTrace, Pen, SeriesTrace, StepTrace
from tests.events import series_of

PEN = Pen("#ffffff")


def test_a_peak_is_never_lost() -> None:
    """A slice of any width includes its peak, even one sample among ten thousand."""
    series = series_of([10.0] * 5000 + [99.0] + [10.0] * 5000)
    spans = SeriesTrace(series, PEN).spans([0.0, 50.0, 150.0, 250.0])
    assert [span and span[1] for span in spans] == [10.0, 99.0, 10.0]


def test_a_gap_stays_a_gap() -> None:
    series = series_of([5.0] * 50 + [None] * 100 + [7.0] * 50)
    spans = SeriesTrace(series, PEN).spans([0.0, 1.0, 2.0, 2.9, 4.0])
    assert [span is None for span in spans] == [False, False, True, False]


def test_slices_shorter_than_the_interval_hold_the_value() -> None:
    series = series_of([1.0, 2.0, 3.0], interval=0.02)
    edges = [0.0, 0.005, 0.01, 0.015, 0.02, 0.025]
    assert None not in SeriesTrace(series, PEN).spans(edges)


def test_neighbouring_slices_join() -> None:
    """Adjacent slices share a value, so that a fall between samples is a line without a gap."""
    series = series_of([100.0] * 5 + [50.0] * 5)
    spans = SeriesTrace(series, PEN).spans([0.0, 0.1, 0.2])
    assert spans == [(100.0, 100.0), (50.0, 100.0)]


def test_a_setting_holds_until_it_changes() -> None:
    trace = StepTrace(((1.0, 100.0), (5.0, 20.0), (7.0, None)), PEN)
    spans = trace.spans([0.0, 1.0, 2.0, 6.0, 8.0])
    assert spans == [None, (100.0, 100.0), (20.0, 20.0), None]
    assert trace.peak(2.0, 4.0) == 100.0


def test_dots_don_t_spread() -> None:
    series = series_of([20.0, None, 21.0], interval=1.0)
    assert DotTrace(series, PEN).spans([0.0, 0.5, 1.5, 2.5]) == [(20.0, 20.0), None, (21.0, 21.0)]


def test_a_counter_shows_where_it_grew_and_by_how_much() -> None:
    trace = CountTrace(series_of([0.0] * 10 + [3.0] * 10, interval=0.1), PEN)
    assert trace.growth(0.0, 0.5) == 0
    assert trace.growth(0.9, 1.1) == 3
    assert trace.growth(1.2, 1.9) == 0


def test_factors_scale() -> None:
    span = SeriesTrace(series_of([20_000.0]), PEN, 1e-3).spans([0.0, 1.0])[0]
    assert span is not None
    assert math.isclose(span[0], 20.0)


def test_what_was_traced_is_drawn_where_slices_are_shorter_than_samples() -> None:
    """A trace is drawn in slices shorter than the sampling; wide or untraced slices use samples."""
    traced = series_of([3.0, 9.0, 3.0, 4.0], interval=0.005)
    both = SeriesTrace(series_of([1.0] * 50), PEN, exact=traced)
    assert both.spans([0.0, 0.02, 0.04]) == [(1.0, 1.0), (1.0, 1.0)]
    assert both.spans([0.0, 0.004, 0.008, 0.012]) == [(3.0, 3.0), (3.0, 9.0), (3.0, 9.0)]
    assert both.spans([0.5, 0.504, 0.508]) == [(1.0, 1.0), (1.0, 1.0)]
    assert both.peak(0.0, 1.0) == 9.0


def test_what_nobody_can_have_meant_is_a_gap() -> None:
    """An implausible value, sampled or traced, is a gap in the line and ignored by the axis."""
    series = series_of([20.0, 30.0, 2.0**31, 25.0])
    trace = SeriesTrace(series, PEN, 2.0, most=credible("cwnd"))
    assert trace.peak(0.0, 1.0) == 60.0
    assert trace.peak(0.03, 0.05) == 0.0
    assert trace.spans([0.0, 0.03, 0.05, 0.07]) == [(40.0, 60.0), None, (50.0, 50.0)]
    assert trace.spans([0.0, 0.1]) == [(40.0, 60.0)]
    assert replace(trace, exact=series).peak(0.0, 1.0) == 60.0
    assert SeriesTrace(series, PEN, most=credible("srtt_us")).peak(0.0, 1.0) == 2.0**31

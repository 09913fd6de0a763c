"""An interval that extends beyond the frame ends in an arrow, which the caption explains."""

import pytest

from tests.unit.reports import case_result, case_statistics

pytest.importorskip("matplotlib")

import numpy as np
from matplotlib import markers
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ccplay.analysis.results import CaseStatistics
from ccplay.report.data.charts import Chart, charts
from ccplay.report.figures import chart, style
from ccplay.report.page.report_directory import _caption

_CARETS = (markers.CARETUP, markers.CARETDOWN, markers.CARETLEFT, markers.CARETRIGHT)


def of(ratios: dict[str, list[float]], **parameters: float) -> Chart:
    """Return the chart of the checkpoint's ratio in cases with these runs."""
    runs = {
        name: [case_result(name, n, each, **parameters) for n, each in enumerate(values, 1)]
        for name, values in ratios.items()
    }
    cases: list[CaseStatistics] = [case_statistics(name, each) for name, each in runs.items()]
    return charts(cases, [run for each in runs.values() for run in each])[0]


def arrows(figure: Figure) -> list[Line2D]:
    return [line for axes in figure.axes for line in axes.lines if line.get_marker() in _CARETS]


def drawn(found: Chart) -> Figure:
    with style.look():
        return chart.draw(found, style.Inks([]))


def test_an_interval_that_leaves_the_frame_ends_in_arrows() -> None:
    """Two runs that differ by as much as their mean have a far wider interval than the frame.

    Its half width is 12.7 times half of their difference.
    """
    found = of({"a": [0.5, 1.5], "b": [1.0, 1.01]})
    assert found.cut
    figure = drawn(found)
    low, high = figure.axes[0].get_ylim()
    ends = {line.get_marker(): float(np.asarray(line.get_ydata())[0]) for line in arrows(figure)}
    assert ends == {markers.CARETUP: high, markers.CARETDOWN: low}
    assert "arrows: intervals that extend beyond the frame" in _caption(found)


def test_bars_to_the_right_have_arrows_to_the_sides() -> None:
    names = {f"a case with a very long name indeed, number {n}": [0.5, 1.5] for n in range(5)}
    found = {line.get_marker() for line in arrows(drawn(of(names)))}
    assert found == {markers.CARETLEFT, markers.CARETRIGHT}


def test_intervals_within_the_frame_have_none() -> None:
    found = of({"a": [1.0, 1.01, 1.02], "b": [0.9, 0.91, 0.92]})
    assert not found.cut
    assert not arrows(drawn(found))
    assert "arrows" not in _caption(found)


def test_single_runs_have_none() -> None:
    found = of({"a": [0.2], "b": [5.0]})
    assert not found.cut
    assert not arrows(drawn(found))

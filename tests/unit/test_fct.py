"""Completion times of short flows as figures: a panel for each class of sizes."""

import numpy as np

from ccplay.report.data.findings import distribution, distributions
from ccplay.report.figures.experiment_figures import draw_completion_times
from tests.unit.test_short_flows import told

LABELS = ("flow completion time (ms)", "share of transfers")


def test_a_run_has_a_distribution_for_each_class_of_sizes() -> None:
    found = distributions(told())
    assert found["fct", "transfers below 100 kB"].values == [20.0, 40.0]
    assert found["fct", "transfers below 100 kB"].shares == [0.5, 1.0]
    assert found["fct", "transfers 100 kB to 1 MB"].values == [100.0]
    assert found["fct", "transfers from 1 MB"].count == 1


def test_panels_share_an_axis_of_decades_and_a_case_has_one_colour() -> None:
    small, large = distribution([20.0, 40.0]), distribution([900.0])
    assert small is not None
    assert large is not None
    panels = [("below 100 kB", {"a": small, "b": large}), ("from 1 MB", {"b": large})]
    figure = draw_completion_times(LABELS, panels, ["a", "b"])
    left, right = figure.axes
    assert (left.get_xscale(), right.get_xscale()) == ("log", "log")
    assert left.get_xlim() == right.get_xlim()
    low, high = left.get_xlim()
    assert low < 20.0
    assert high > 900.0
    assert left.lines[1].get_color() == right.lines[0].get_color() != left.lines[0].get_color()
    assert np.asarray(left.lines[0].get_ydata()).tolist() == [0.0, 0.5, 1.0]
    (legend,) = figure.legends
    assert [each.get_text() for each in legend.get_texts()] == ["a", "b"]


def test_a_single_value_has_an_axis_too() -> None:
    """A recording may report that a transfer took no time at all."""
    for value in (0.0, 5.0):
        only = distribution([value])
        assert only is not None
        (axes,) = draw_completion_times(LABELS, [("", {"all": only})], ["all"]).axes
        low, high = axes.get_xlim()
        assert 0 < low < high

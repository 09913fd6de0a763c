"""Charts choose their axis and keep each flow's colour, and their labels never overlap."""

import math
import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ccplay.analysis.results import CaseStatistics
from ccplay.analysis.statistics import Statistic
from ccplay.report.data.charts import Chart, ChartLine, Estimate, charts
from ccplay.report.data.findings import distribution, distributions, together
from ccplay.report.data.material import MatrixAxis, axes, number
from ccplay.report.data.naming import Unit
from ccplay.scenario.values import Published
from tests.unit.reports import PUBLISHED, case_result, case_statistics, experiment, matrix, variants
from tests.unit.test_short_flows import told

pytest.importorskip("matplotlib")

from matplotlib import markers
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Ellipse, Rectangle
from matplotlib.text import Annotation

from ccplay.report.figures import backgrounds, style
from ccplay.report.figures.experiment_figures import (
    draw_cdf,
    draw_chart,
    draw_completion_times,
    draw_trade_off,
)
from ccplay.report.page.report_directory import _caption


def test_a_chart_runs_along_the_axis_of_numbers_with_the_most_values() -> None:
    cases = matrix(("50 ms", "100 ms"), (10, 25, 50))
    ratio, goodput = charts(cases, [])
    assert (ratio.axis.name, ratio.hue) == ("limit", "delay")
    assert [line.label for line in ratio.panels[0][1]] == ["50 ms", "100 ms"]
    assert [title for title, _ in goodput.panels] == ["flow 1", "flow 2"]
    assert ratio.reference == 1.0


def test_named_cases_are_categories_even_where_they_look_like_numbers() -> None:
    assert MatrixAxis("case", ("50 ms", "100 ms", "200 ms")).numbers is None
    assert MatrixAxis("delay", ("50 ms", "0.1 s")).numbers == (
        {"50 ms": 50.0, "0.1 s": 100.0},
        "ms",
    )


def test_figures_of_several_flows_are_one_chart() -> None:
    result = experiment()
    found = charts(result.statistics, result.cases)
    assert [each.name for each in found] == ["checkpoint-ratio", "flows-goodput-bps"]
    lines = found[1].panels[0][1]
    assert [line.flow for line in lines] == ["1", "2"]
    assert len(lines[0].estimates[0].singles) == 3
    assert found[0].published


def test_many_categories_have_a_panel_a_case_with_one_bar_each() -> None:
    """With many categories, each case gets a panel: groups of many bars would be illegible."""
    names = [f"cc{n}" for n in range(13)]
    cases = [
        case_statistics(run.name, [run])
        for family in ("alone", "loss 2 %")
        for n, name in enumerate(names)
        for run in [case_result(f"{family}, cc {name}", 1, n / 20, cc=name)]
    ]
    ratio = charts(cases, [])[0]
    assert (ratio.axis.name, ratio.hue) == ("cc", "")
    assert [title for title, _ in ratio.panels] == ["alone", "loss 2 %"]
    with style.look():
        figure = draw_chart(ratio, style.Inks([]))
    left, right = figure.axes
    assert left.get_xlim() == right.get_xlim()
    assert [text.get_text() for text in right.texts][:3] == ["0", "0.0500", "0.100"]


def test_what_was_published_of_a_whole_family_is_a_line_and_no_mark() -> None:
    ratio = charts(variants("reno", "vegas", published=PUBLISHED).statistics, [])[0]
    assert (ratio.published, ratio.published_of_all) == (False, True)
    [(_, [line])] = ratio.panels
    assert line.published == list(PUBLISHED)


def test_a_published_curve_is_drawn_over_ours_from_point_to_point() -> None:
    """Its line joins the means of what was published; points without a value are left out."""
    cases = matrix(("50 ms", "100 ms"), (10, 25, 300))
    theirs = {10: [0.5, 0.7], 25: [0.8], 300: []}
    metric = "checkpoint.ratio"
    given = [
        replace(
            case,
            published=[Published(metric, tuple(values), curve=True)]
            if (values := theirs[int(case.parameters["limit"])])
            else [],
        )
        for case in cases
    ]
    ratio = charts(given, [])[0]
    assert ratio.published
    assert all(line.joined == {10, 25} for _, lines in ratio.panels for line in lines)
    with style.look():
        [axes] = draw_chart(ratio, style.Inks([])).axes
    drawn = [np.asarray(line.get_ydata()).tolist() for line in axes.lines]
    assert drawn.count([0.6, 0.8]) == 2, "a curve over each line"
    assert drawn.count([0.5, 0.7, 0.8]) == 2, "with a mark at each value"


def test_a_chart_of_one_family_reports_of_which() -> None:
    """The title names the family if the other families lack the metric.

    It names none if all cases are of one family, or if the chart names the cases.
    """
    alone = variants("reno", "vegas").statistics
    other = [replace(each, name=f"idle, {each.name}", metrics={}) for each in alone]
    assert charts([*alone, *other], [])[0].title == "Checkpoint ratio, alone"
    assert charts(alone, [])[0].title == "Checkpoint ratio"
    first, second = experiment().statistics
    only = charts([first, replace(second, metrics={})], [])[0]
    assert only.title == "Checkpoint ratio"


def test_families_of_other_axes_have_charts_of_their_own() -> None:
    """As in the published figures, each with its own matrix."""
    one = [replace(e, name=f"one, {e.name}") for e in matrix(("50 ms", "100 ms"), (10, 25, 300))]
    two = [
        replace(each, name=f"two, rate {rate}", parameters={"rate": rate})
        for rate, each in enumerate(one[:2], 1)
    ]
    found = charts([*one, *two], [])
    titles = [(e.title, e.axis.name) for e in found if e.title.startswith("Checkpoint ratio")]
    assert titles == [("Checkpoint ratio, one", "limit"), ("Checkpoint ratio, two", "rate")]
    assert len({each.name for each in found}) == len(found)


def test_a_measurement_stands_behind_what_was_published_of_it() -> None:
    bars = [
        case_statistics(name, [case_result(name, 1, 0.5)], PUBLISHED)
        for name in ("a case of a long name", "another of a long name", "a third long name")
    ]
    with style.look():
        [axes] = draw_chart(charts(bars, [])[0], style.Inks([])).axes
    placed = [text.xy[0] for text in axes.texts if isinstance(text, Annotation)]
    assert placed == [max(PUBLISHED)] * 3


_SVG = "{http://www.w3.org/2000/svg}"
_XLINK = "{http://www.w3.org/1999/xlink}"


def test_cases_without_a_matrix_are_their_own_axis() -> None:
    [axis] = axes(experiment().statistics)
    assert axis.name == "case"
    assert len(axis.values) == 2


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("50 ms", (50.0, "ms")),
        ("1.5 Mbit/s", (1.5, "Mbit/s")),
        (25, (25.0, "")),
        ("2 %", (2.0, "%")),
        ("cubic", None),
        (True, None),
        ("1.2.3", None),
    ],
)
def test_parameters_are_read_as_numbers(value: str | float, found: object) -> None:
    assert number(value) == found


def test_a_flow_has_the_same_ink_whatever_else_is_drawn() -> None:
    inks = style.Inks(["1", "2", "w1"])
    assert inks["1"].colour == style.FLOWS[0]
    assert len({inks[name].colour for name in ("1", "2", "w1")}) == 3
    assert len({inks[name].marker for name in ("1", "2", "w1")}) == 3


def test_every_chart_can_be_drawn_twice_alike() -> None:
    """A report that is made again is identical: its SVG has no date and no random ids."""
    inks = style.Inks(["1", "2"])
    result = experiment()
    with style.look():
        for each in [
            *charts(result.statistics, result.cases),
            *charts(matrix(("50 ms", "100 ms"), (10, 25, 300)), []),
        ]:
            once, again = (style.svg_text(draw_chart(each, inks), each.name) for _ in range(2))
            assert once == again
            assert "<script" not in once


moments = st.lists(
    st.tuples(st.floats(min_value=0, max_value=60), st.text("abc xyz", min_size=1, max_size=50)),
    max_size=14,
)


@given(moments)
def test_labels_of_moments_do_not_overlap(some: list[tuple[float, str]]) -> None:
    some = sorted(some)
    placed = backgrounds.place(some, 60.0, 6.24)
    spans: dict[int, list[tuple[float, float]]] = {}
    for label in placed:
        at, long = label.t / 60 * 6.24, style.text_width_in(label.text)
        spans.setdefault(label.row, []).append(
            (at - long, at) if label.flipped else (at, at + long)
        )
    for row in spans.values():
        for (_, end), (start, _) in zip(sorted(row), sorted(row)[1:], strict=False):
            assert start >= end - 1e-6


def test_only_labels_without_room_are_cut() -> None:
    """Of eight long labels only the first four, which have too little room, are shortened."""
    said = "Reno alone: it fills the queue until a packet is lost"
    placed = backgrounds.place([(t, said) for t in (1, 8, 13, 17, 23, 27, 30, 33)], 36.0, 6.24)
    assert [label.text == said for label in placed] == [False] * 4 + [True] * 4


def test_hundreds_of_moments_have_numbers_instead_of_minutes_of_trying() -> None:
    moments = [(n * 4.0, f"flow {n} starts: cubic, s1 → d1") for n in range(300)]
    assert [each.text for each in backgrounds.place(moments, 1200.0, 6.24)][:2] == ["1", "2"]


@given(st.lists(st.floats(min_value=0, max_value=1e4), min_size=1, max_size=900))
def test_a_distribution_keeps_its_extremes(values: list[float]) -> None:
    found = distribution(values)
    assert found is not None
    assert (found.values[0], found.values[-1]) == (min(values), max(values))
    assert found.shares[-1] == pytest.approx(1.0)


def test_distributions_count_by_their_values() -> None:
    few, many = distribution([1.0]), distribution([2.0] * 9)
    assert few is not None
    assert many is not None
    both = together([few, many])
    assert both.quantile(0.1) == 1.0
    assert both.quantile(0.5) == 2.0
    assert both.count == 10


def test_labels_keep_their_digits_where_coordinates_are_cut() -> None:
    figure = Figure(figsize=(2, 2))
    figure.text(0.333333333, 0.5, "0.12345678")
    with style.look():
        text = style.svg_text(figure, "x")
    assert "0.12345678" in text
    assert "333333" not in text


def test_figures_of_one_page_are_well_formed_and_share_no_id() -> None:
    every: list[str] = []
    with style.look():
        for prefix in ("one", "other"):
            figure = Figure(figsize=(2, 2))
            axes = style.box(figure, 0.5, 0.5, 1, 1)
            axes.plot([0.5, 1, 1.5], [0.2, 0.4, 0.8], "o")
            text = style.svg_text(figure, prefix)
            ids = [found for each in ET.fromstring(text).iter() if (found := each.get("id"))]
            assert set(re.findall(r'(?:href="|url\()#(\w+)', text)) == set(ids)
            every += ids
    assert len(every) == len(set(every)) > 0


def test_strokes_are_one_line_with_gaps() -> None:
    with style.look():
        figure = Figure(figsize=(2, 2))
        axes = style.box(figure, 0.5, 0.5, 1, 1)
        axes.set_xlim(0, 10)
        style.strokes(axes, [1, 5, 9], (0.9, 1.0), color="red")
        assert len(axes.get_lines()) == 1
        assert axes.get_xlim() == (0, 10)
        root = ET.fromstring(style.svg_text(figure, "fig"))
    [path] = [e for e in root.iter(f"{_SVG}path") if "#ff0000" in (e.get("style") or "")]
    assert (path.get("d") or "").count("M") == 3


def test_a_bar_that_is_alone_stands_beside_its_name() -> None:
    """In a case with one flow its bar is centred, without an empty place for a second one."""
    known = Statistic(n=3, mean=1.0, sd=0.1, low=0.9, high=1.1)
    one = ChartLine("flow 1", "1", [Estimate(at, known, [], []) for at in ("alone", "both")])
    other = ChartLine("flow 2", "2", [Estimate("both", known, [], [])])
    drawn = Chart(
        name="x",
        title="x",
        label="goodput",
        unit=Unit(1.0, "Mbit/s"),
        counts="",
        axis=MatrixAxis("case", ("alone", "both")),
        hue="",
        panels=[("", [one, other])],
        reference=None,
    )
    with style.look():
        [axes] = draw_chart(drawn, style.Inks(["1", "2"])).axes
    middles = [p.get_x() + p.get_width() / 2 for p in axes.patches if isinstance(p, Rectangle)]
    assert middles == pytest.approx([0.0, 0.81, 1.19])


def test_many_names_in_panels_of_distributions_can_be_distinguished() -> None:
    """Thirteen unordered names have distinct colours and styles; four panels form a square."""
    known = distribution([180.0, 200.0, 360.0])
    assert known is not None
    lines = {f"cc{n}": known for n in range(13)}
    conditions = ("alone", "cross traffic", "loss 2 %", "loss 5 %")
    with style.look():
        figure = draw_cdf(("RTT", "share"), [(c, lines) for c in conditions], [], ordered=False)
    drawn = figure.axes[0].get_lines()
    assert len({(line.get_color(), str(line.get_linestyle())) for line in drawn}) == 13
    assert len({round(axes.get_position().x0, 3) for axes in figure.axes}) == 2
    left, _ = figure.axes[0].get_xlim()
    assert 100 < left < 180  # The axis does not begin at 0.


def test_a_trade_off_has_an_ellipse_of_the_standard_deviation_for_each_sender() -> None:
    """Along the axes the runs of a differ by 10 ms and 1 Mbit/s; b has one run, and no ellipse."""
    runs = [(90.0, 5.0), (110.0, 5.0), (100.0, 4.0), (100.0, 6.0)]
    figure = draw_trade_off({"path 1": {"a": runs, "b": [(20.0, 3.0)]}})
    (axes,) = figure.axes
    (ellipse,) = [each for each in axes.patches if isinstance(each, Ellipse)]
    assert tuple(ellipse.center) == (100.0, 5.0)
    sd = math.sqrt(200 / 3), math.sqrt(2 / 3)
    assert (ellipse.width / 2, ellipse.height / 2) == pytest.approx(sd)
    # Less delay is to the right.
    assert axes.get_xlim()[0] > axes.get_xlim()[1]


# --- an interval that extends beyond the frame ends in an arrow, which the caption explains -------

_CARETS = (markers.CARETUP, markers.CARETDOWN, markers.CARETLEFT, markers.CARETRIGHT)


def ratios_of(ratios: dict[str, list[float]], **parameters: float) -> Chart:
    """Return the chart of the checkpoint's ratio in cases with these runs."""
    runs = {
        name: [case_result(name, n, each, **parameters) for n, each in enumerate(values, 1)]
        for name, values in ratios.items()
    }
    cases: list[CaseStatistics] = [case_statistics(name, each) for name, each in runs.items()]
    return charts(cases, [run for each in runs.values() for run in each])[0]


def arrows(figure: Figure) -> list[Line2D]:
    return [line for axes in figure.axes for line in axes.lines if line.get_marker() in _CARETS]


def drawn_chart(found: Chart) -> Figure:
    with style.look():
        return draw_chart(found, style.Inks([]))


def test_an_interval_that_leaves_the_frame_ends_in_arrows() -> None:
    """Two runs that differ by as much as their mean have a far wider interval than the frame.

    Its half width is 12.7 times half of their difference.
    """
    found = ratios_of({"a": [0.5, 1.5], "b": [1.0, 1.01]})
    assert found.cut
    figure = drawn_chart(found)
    low, high = figure.axes[0].get_ylim()
    ends = {line.get_marker(): float(np.asarray(line.get_ydata())[0]) for line in arrows(figure)}
    assert ends == {markers.CARETUP: high, markers.CARETDOWN: low}
    assert "arrows: intervals that extend beyond the frame" in _caption(found)


def test_bars_to_the_right_have_arrows_to_the_sides() -> None:
    names = {f"a case with a very long name indeed, number {n}": [0.5, 1.5] for n in range(5)}
    found = {line.get_marker() for line in arrows(drawn_chart(ratios_of(names)))}
    assert found == {markers.CARETLEFT, markers.CARETRIGHT}


def test_intervals_within_the_frame_have_no_arrows() -> None:
    found = ratios_of({"a": [1.0, 1.01, 1.02], "b": [0.9, 0.91, 0.92]})
    assert not found.cut
    assert not arrows(drawn_chart(found))
    assert "arrows" not in _caption(found)


def test_single_runs_have_no_arrows() -> None:
    found = ratios_of({"a": [0.2], "b": [5.0]})
    assert not found.cut
    assert not arrows(drawn_chart(found))


# --- completion times of short flows: a panel for each class of sizes -----------------------------

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

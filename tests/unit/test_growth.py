"""Acknowledged segments over time: of single flows only, family by family."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccplay.analysis.results import Result
from ccplay.model.events import Ready
from ccplay.model.samples import Sweep
from ccplay.report.data.charts import families, growth
from ccplay.report.data.curves import Curve
from ccplay.state.lab_state import LabState
from ccplay.traffic.flow import FlowStarted
from tests.events import folded, tcp
from tests.unit.reports import case_result, case_statistics, material

MSS = 348


def session(*flows: str) -> LabState:
    """Return a session whose flows bring 100 segments each second from 2 s on."""
    state = folded(Ready(t=1.0))
    for flow in flows:
        state.apply(FlowStarted(t=2.0, flow=flow, src="h1", dst="h2", cc="reno", port=1))
    for tick in range(101):
        samples = tcp(flows, fill=1, mss=MSS, bytes_acked=tick * 2 * MSS + 1)
        state.apply(Sweep(t=2.0 + tick / 50, tcp=samples))
    return state


def test_a_flow_s_segments_over_time() -> None:
    line = growth(session("1"))
    assert line is not None
    assert line.t[0] == pytest.approx(0.0)  # However late the flow was.
    assert line.t[-1] == pytest.approx(2.0)
    assert line.y[0] == pytest.approx(0, abs=0.1)
    assert line.y[-1] == pytest.approx(200, abs=1)
    assert line.y == sorted(line.y)


def test_of_several_flows_none_is_chosen() -> None:
    assert growth(session("1", "2")) is None
    assert growth(LabState()) is None


def test_cases_are_compared_within_their_family() -> None:
    names = [
        ("alone, cc Reno", "Reno"),
        ("alone, cc Vegas", "Vegas"),
        ("loss 2 %, cc Reno", "Reno"),
    ]
    runs = [case_result(name, 1, 0.5, cc=cc) for name, cc in names]
    cases = [case_statistics(run.name, [run]) for run in runs]
    made = material(Result(scenario="x", title="x", machine=None, cases=runs, statistics=cases))
    lines = {run.slug: Curve([0.0, 1.0], [0.0, 9.0]) for run in made.runs}
    assert {name: list(each) for name, each in families(made, lines).items()} == {
        "alone": ["Reno", "Vegas"]
    }


def test_the_figure_distinguishes_more_lines_than_it_has_colours() -> None:
    pytest.importorskip("matplotlib")
    from ccplay.report.figures.experiment_figures import draw_growth

    lines = {f"variant {n}": Curve([0.0, 15.0], [0.0, 100.0 + n]) for n in range(13)}
    figure = draw_growth(lines, list(lines))
    drawn = figure.axes[0].get_lines()[:13]
    looks = {(line.get_color(), str(line.get_linestyle())) for line in drawn}
    assert len(looks) == 13
    assert {text.get_text() for text in figure.axes[0].texts} >= {"variant 0", "variant 12"}
    # Where another family lacks one, the others keep their looks.
    [last] = draw_growth({"variant 12": lines["variant 12"]}, list(lines)).axes[0].get_lines()[:1]
    assert last.get_color() == drawn[12].get_color()


@given(st.lists(st.floats(min_value=0, max_value=1), min_size=1, max_size=20))
def test_names_at_the_ends_of_lines_neither_overlap_nor_change_places(wanted: list[float]) -> None:
    pytest.importorskip("matplotlib")
    from ccplay.report.figures.experiment_figures import spread

    places = spread(wanted, 0.04)
    assert all(-1e-9 <= place <= 1 + 1e-9 for place in places)
    order = sorted(range(len(wanted)), key=lambda n: wanted[n])
    for below, above in pairwise(order):
        assert places[above] - places[below] >= 0.04 - 1e-9


def test_a_name_with_room_around_it_stands_where_its_line_ends() -> None:
    pytest.importorskip("matplotlib")
    from ccplay.report.figures.experiment_figures import spread

    assert spread([0.9, 0.1, 0.12], 0.1) == pytest.approx([0.9, 0.06, 0.16])

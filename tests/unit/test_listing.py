"""Which flows are seen and in which order: sorted, filtered, in groups; which rows are in sight."""

from types import SimpleNamespace
from typing import Any

import pytest

from ccplay.assets import assets
from ccplay.share.frames import COLUMNS, Listing, Playhead, Shown
from ccplay.state.lab_state import LabState
from ccplay.ui import lineup
from ccplay.ui.cells import UNICODE
from ccplay.ui.plot_ghosts import GroupTrace, StackedTrace
from ccplay.ui.plot_pane import title_row
from ccplay.ui.plot_row import PANES
from ccplay.ui.themes import read_look
from ccplay.ui.traffic_table import columns, in_sight
from ccplay.ui.view import View
from tests.events import folded
from tests.ui.synthetic import stream

T = 12.5


@pytest.fixture(scope="module")
def state() -> LabState:
    """Five flows, cubic and reno in turn."""
    return folded(*stream(pairs=5, flows=5, seconds=18))


def seen(state: LabState, selected: str = "1", **listing: Any) -> View:
    """The session at ``T``."""
    session: Any = SimpleNamespace(state=state, live=True, recorded=False, error=None)
    head = Playhead(recorded=False, t=T)
    head.jump(T, T)
    look = read_look(assets("themes") / "dark.toml")
    return View(session, Shown(head, selected, listing=Listing(**listing)), look, UNICODE)


def names(view: View) -> list[str]:
    return [each.name for each in lineup.listed(view)]


def test_unsorted_flows_stand_as_they_started(state: LabState) -> None:
    assert names(seen(state)) == ["1", "2", "3", "4", "5"]
    assert names(seen(state, reverse=True)) == ["5", "4", "3", "2", "1"]


def test_numbers_begin_with_the_greatest_and_words_with_the_first(state: LabState) -> None:
    view = seen(state, column="cwnd")
    values = [state.flows[name].series["cwnd"].at(view.tick) for name in names(view)]
    known = [each for each in values if each is not None]
    assert known == sorted(known, reverse=True)
    assert len(set(known)) > 1
    assert names(seen(state, column="cwnd", reverse=True)) != names(view)
    assert names(seen(state, column="cc")) == ["1", "3", "5", "2", "4"]


@pytest.mark.parametrize("column", COLUMNS)
def test_every_column_sorts_all_flows(state: LabState, column: str) -> None:
    assert sorted(names(seen(state, column=column))) == ["1", "2", "3", "4", "5"]


def test_the_columns_come_round(state: LabState) -> None:
    listing, found = Listing(reverse=True), []
    for _ in COLUMNS:
        listing = listing.next_column()
        found.append(listing.column)
    assert found == [*COLUMNS[1:], ""]
    assert not listing.reverse
    assert state.flows


@pytest.mark.parametrize(
    ("text", "left"),
    [("RENO", ["2", "4"]), ("d3", ["3"]), ("s5", ["5"]), ("no such", []), ("", list("12345"))],
)
def test_a_filter_matches_algorithm_and_host(state: LabState, text: str, left: list[str]) -> None:
    view = seen(state, text=text)
    assert names(view) == left
    assert sorted(flow.name for flow in lineup.drawn(view)) == left


def test_the_filter_line() -> None:
    listing = Listing(typing=True)
    for key, character in (("c", "c"), ("u", "u"), ("x", "x"), ("backspace", "\x7f")):
        listing = listing.typed(key, character)
    assert listing == Listing(typing=True, text="cu")
    assert listing.typed("enter", "\r") == Listing(text="cu")
    assert listing.typed("escape", "\x1b") == Listing()
    assert listing.typed("f5", None) == listing
    full = Listing(text="x" * 40, typing=True)
    assert full.typed("a", "a") == full


def test_groups_have_the_flows_of_an_algorithm(state: LabState) -> None:
    view = seen(state, selected="4", grouped=True)
    found = lineup.groups(view, lineup.listed(view))
    assert [(each.cc, [flow.name for flow in each.flows]) for each in found] == [
        ("cubic", ["1", "3", "5"]),
        ("reno", ["2", "4"]),
    ]
    assert [each.chosen(view) for each in found] == ["1", "4"]
    # Up and down go from group to group.
    assert [name for name in lineup.choices(view) if name in state.flows] == ["1", "4"]


def test_the_selected_flow_is_on_top_and_the_others_are_dimmed_in_a_crowd(state: LabState) -> None:
    pens = [each.pen for each in PANES["rtt"].traces(seen(state, selected="2")) if each.pen.glyph]
    assert [pen.dim for pen in pens] == [True, True, True, True, False]
    few = [each.pen for each in PANES["rtt"].traces(seen(state, text="reno")) if each.pen.glyph]
    assert [pen.dim for pen in few] == [False, False]


def test_the_selected_flow_alone(state: LabState) -> None:
    view = seen(state, selected="3", alone=True)
    assert [flow.name for flow in lineup.drawn(view)] == ["3"]
    left, right = title_row(PANES["cwnd"], view, 50)
    assert "1 of 5 flows" in "".join(text for text, _ in left)
    assert view.flow_glyph("2") not in "".join(text for text, _ in right)
    # All others are still in the table, to be selected.
    assert len(names(view)) == 5


def test_a_group_is_a_mean_over_its_flows(state: LabState) -> None:
    view = seen(state, grouped=True)
    found = [each for each in PANES["cwnd"].traces(view) if isinstance(each, GroupTrace)]
    assert sorted(len(each.parts) for each in found) == [2, 3]


def test_goodput_is_stacked_with_the_selected_flow_on_the_axis(state: LabState) -> None:
    view = seen(state, selected="3", stacked=True)
    layers = [each for each in PANES["throughput"].traces(view) if isinstance(each, StackedTrace)]
    assert len(layers) == 5
    assert [each.pen.glyph for each in layers if not each.below] == [view.flow_glyph("3")]
    assert not any(isinstance(each, StackedTrace) for each in PANES["cwnd"].traces(view))


def test_a_title_has_the_selected_flow_and_the_greatest(state: LabState) -> None:
    view = seen(state, selected="2")
    values = {name: flow.series["cwnd"].at(view.tick) or 0 for name, flow in state.flows.items()}
    del values["2"]
    greatest = sorted(values, key=lambda name: values[name], reverse=True)
    _, right = title_row(PANES["cwnd"], view, 30)
    text = "".join(text for text, _ in right)
    shown = [each for each in text.split() if each in UNICODE.flow_glyphs]
    expected = [view.flow_glyph(name) for name in ("2", *greatest)]
    assert 1 < len(shown) < 5
    assert shown == expected[: len(shown)]


@pytest.mark.parametrize("count", [1, 5, 8, 30, 1000])
@pytest.mark.parametrize("room", [1, 2, 5, 9])
def test_the_chosen_line_is_in_sight(count: int, room: int) -> None:
    for chosen in {0, count // 2, count - 1}:
        first, last = in_sight(count, room, chosen)
        assert first <= chosen < last
        assert last - first <= max(room - (count > room), 1)
        assert 0 <= first <= last <= count


def test_a_path_has_a_column_where_all_are_whole() -> None:
    assert columns(58, ["1"], ["reno"], ["s1 → d1"]).path
    assert not columns(58, ["1"], ["reno"], ["host-100 → host-200"]).path
    assert not columns(38, ["1"], ["reno"], ["s1 → d1"]).path


def test_a_flow_that_runs_back_points_left(state: LabState) -> None:
    view, flow = seen(state), state.flows["1"]
    assert lineup.path(view, flow) == "s1 → d1"
    back: Any = SimpleNamespace(kind="flow", src=flow.dst, dst=flow.src)
    assert lineup.path(view, back) == "s1 ← d1"


def test_flows_of_one_colour_have_different_lines() -> None:
    """The ninth flow has the colour of the first, so its line is dashed; no two look the same."""
    state = folded(*stream(pairs=8, flows=20, seconds=25))
    view = seen(state)
    looks = {(view.flow_ink(name), view.flow_kind(name)) for name in state.flows}
    assert len(looks) == len(state.flows) > 8
    assert view.flow_ink("1") == view.flow_ink("9")
    assert [view.flow_kind(each) for each in ("1", "8", "9")] == ["solid", "solid", "dashed"]

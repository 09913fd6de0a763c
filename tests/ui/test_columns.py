"""Columns of the table always show algorithms' names in full, even if others lose width."""

import pytest

from ccplay.assets import algorithms
from ccplay.ui.cells import abbreviated
from ccplay.ui.traffic_table import columns, with_sign

NARROW, WIDE = 38, 58
"""Widths of the table in cells on a screen of 80 and of 120 columns."""


@pytest.mark.parametrize("width", [NARROW, WIDE])
@pytest.mark.parametrize("cc", ["reno", "bic.bpf", "vegas.bpf", "westwood-plus.bpf", "x" * 40])
@pytest.mark.parametrize("name", ["1", "p12", "a-long-name"])
def test_nothing_is_wider_than_the_table(width: int, cc: str, name: str) -> None:
    cells = columns(width, [name], [cc])
    numbers = cells.numbers("cwnd", "rtt", "rate", "retr")
    assert cells.indent + cells.cc + len(numbers) <= width
    assert cells.cc > 0


@pytest.mark.parametrize("cc", algorithms())
def test_every_name_is_whole_on_a_wide_screen(cc: str) -> None:
    cells = columns(WIDE, ["1", "p1"], [cc])
    assert cells.cc > len(cc)
    assert cells.retr


@pytest.mark.parametrize("cc", ["reno", "bic.bpf", "htcp.bpf", "cubic.bpf", "vegas.bpf"])
def test_common_names_are_whole_beside_all_numbers(cc: str) -> None:
    cells = columns(NARROW, ["1", "p1"], [cc])
    assert cells.cc > len(cc)
    assert cells.retr


@pytest.mark.parametrize("cc", ["westwood.bpf", "highspeed.bpf"])
def test_for_longer_names_retransmits_give_way(cc: str) -> None:
    cells = columns(NARROW, ["1", "p1"], ["reno", cc])
    assert cells.cc > len(cc)
    assert "retr" not in cells.numbers("cwnd", "rtt", "rate", "retr")


@pytest.mark.parametrize("cc", algorithms())
@pytest.mark.parametrize("name", ["1", "w1"])
def test_every_name_is_whole_on_a_narrow_screen(cc: str, name: str) -> None:
    """Names are in full even if units and blanks lose their room; numbers stay separated."""
    cells = columns(NARROW, [name], ["reno", cc])
    assert cells.cc > len(cc)
    assert cells.numbers("9999", "999", "9.99M", "").split() == ["9999", "999", "9.99M"]


@pytest.mark.parametrize(("width", "rate"), [(NARROW, "rate"), (WIDE, "goodput")])
@pytest.mark.parametrize("word", ["flow", "cc", "cwnd", "rtt", "rate", "retr"])
@pytest.mark.parametrize("name", ["1", "p12"])
def test_the_sign_of_sorting_touches_its_own_word_alone(
    width: int, rate: str, word: str, name: str
) -> None:
    cells = columns(width, [name], ["reno"])
    numbers = cells.numbers("cwnd", "rtt", rate, "retr")
    head = f" {'flow':<{cells.indent - 1}}{'cc':<{cells.cc}}{numbers}"
    title = rate if word == "rate" else word
    written = "".join(with_sign(head, title, "v"))
    assert len(written) == len(head)
    assert written.split() == [f"v{each}" if each == title else each for each in head.split()]


def test_a_head_without_the_word_stays_as_it_is() -> None:
    assert with_sign(" flow cc", "path", "v") == (" flow cc", "", "")
    assert with_sign(" flow cc", "", "v") == (" flow cc", "", "")


@pytest.mark.parametrize(
    ("name", "shown"), [("polite", "polite "), ("a-name-of-16-cha", "a-name-o… ")]
)
def test_names_take_the_room_that_is_left_and_end_with_a_blank(name: str, shown: str) -> None:
    cells = columns(40, [name], ["vegas.bpf"])
    assert cells.named(name, "…") == shown
    assert cells.indent + cells.cc + len(cells.numbers("1", "2", "3", "4")) <= 40


def test_names_that_begin_alike_are_told_apart() -> None:
    """Two flows or two recordings never become the same text, as long as there is room."""
    names = ["alpha-one", "alpha-two", "vegas-alone", "1"]
    cells = columns(NARROW, names, ["westwood.bpf"])
    shown = [cells.named(each, "…").rstrip() for each in names]
    assert len(set(shown)) == len(names)
    assert abbreviated(frozenset(names), 3) == {
        "alpha-one": "a…e",
        "alpha-two": "a…o",
        "vegas-alone": "ve…",
        "1": "1",
    }
